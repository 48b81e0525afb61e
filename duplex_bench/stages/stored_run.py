"""The tables of a run as they lie in the store: who was run, and what was kept of it."""

from pathlib import PurePosixPath

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame

TRACKS: tuple[Track, ...] = ("multiparty", "conversation")
# Rows in the schema of measurements that belong to no partition: bounds, and who reads the transcript.
BESIDE = {"multiparty": "transcript_reference", "conversation": "bounds"}


def stored(workspace: Workspace, track: Track, name: str, system: str | None = None) -> pl.DataFrame | None:
    """A table of the run, or None where it was never made."""
    key = workspace.table_key((track, name), system)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None


def required(workspace: Workspace, track: Track, name: str, system: str | None = None) -> pl.DataFrame:
    """A table of the run.

    Raises:
        ValueError: it was never made; the message says what to run.
    """
    found = stored(workspace, track, name, system)
    if found is None:
        of = f" of {system}" if system else ""
        raise ValueError(
            f"profile {workspace.profile.name} has no table {track}/{name}{of} here: "
            f"run duplex-bench run --profile {workspace.profile.name} --track {track} first"
        )
    return found


def systems_with(workspace: Workspace, track: Track, name: str) -> tuple[str, ...]:
    """Systems that have a table of this name, sorted."""
    folder = workspace.table_key((track, name), "any").rsplit("/", 1)[0]
    return tuple(sorted(PurePosixPath(key).stem for key in workspace.store.keys(folder)))


def tracks_run(workspace: Workspace, name: str = "measurements") -> tuple[Track, ...]:
    """Tracks of which at least one system has a table of this name.

    Raises:
        ValueError: none; the message says what to run.
    """
    found = tuple(track for track in TRACKS if systems_with(workspace, track, name))
    if not found:
        raise ValueError(
            f"profile {workspace.profile.name} has no {name} in {workspace.data}: "
            f"run duplex-bench run --profile {workspace.profile.name} first, or name the folder with --data"
        )
    return found
