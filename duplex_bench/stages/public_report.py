"""The public build of a run's report, from stored tables: nothing that people said is in it."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.reporting.inputs import SiteSettings, TrackTables
from duplex_bench.stages.report import PER_SYSTEM, report, track_tables
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.stored_run import TRACKS, required, stored, systems_with
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame
from duplex_bench.systems.card import SystemCard

# Tables that belong to a track or to the whole run, in the order of the report.
_BESIDE = (
    ("multiparty", "inventory"), ("multiparty", "construction"), ("multiparty", "transcript_decisions"),
    ("conversation", "inventory"), ("conversation", "gate_calibration"), ("results", "recogniser_quality"),
)  # fmt: skip


def public_folder(workspace: Workspace) -> Path:
    """Where the public build of this profile's report lies: beside the local one."""
    return workspace.report_folder.with_name(f"{workspace.report_folder.name}-public")


def public_report(workspace: Workspace, cards: Sequence[SystemCard]) -> StageResult:
    """Build the report that may be published (``reporting.public_filter`` says what is left out).

    Args:
        workspace: of a run whose statistics and figures are made.
        cards: every card that a system of the run may have.

    Raises:
        ValueError: no track was run, or a table of one is missing; the message says what to run.
    """
    tracks = [track for track in TRACKS if stored(workspace, track, "statistics") is not None]
    if not tracks:
        raise ValueError(f"profile {workspace.profile.name} has no statistics here: run `duplex-bench run` first")
    more = [_of_run(workspace, *key) for key in _BESIDE]
    return report(
        workspace,
        [_tables(workspace, track) for track in tracks],
        cards,
        {track: _figures(workspace, track) for track in tracks},
        stored(workspace, "conversation", "candidates"),
        _of_run(workspace, "results", "voice_quality"),
        out=public_folder(workspace),
        more=[frame for frame in more if frame is not None],
        settings=SiteSettings(build="public"),
    )


def _tables(workspace: Workspace, track: Track) -> TrackTables:
    found: dict[str, object] = {
        name: {system: required(workspace, track, name, system) for system in systems_with(workspace, track, name)}
        for name in PER_SYSTEM
    }
    for name in ("items", "statistics", "comparisons"):
        found[name] = required(workspace, track, name)
    return track_tables(track, found, workspace.profile)


def _figures(workspace: Workspace, track: Track) -> pl.DataFrame:
    of_corpus = stored(workspace, "conversation", "corpus_figures") if track == "conversation" else None
    frames = [*([] if of_corpus is None else [of_corpus]), required(workspace, track, "figures")]
    return pl.concat(frames, how="diagonal")


def _of_run(workspace: Workspace, group: str, name: str) -> pl.DataFrame | None:
    key = workspace.table_key((group, name), None)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None
