"""From the stored tables of a run to those of its release: what may be given, with the terms on every row."""

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.tables import (
    ACTIVITY,
    COMPARISONS,
    ITEMS,
    JUDGEMENTS,
    MEASUREMENTS,
    ROLLOUTS,
    STATISTICS,
    WORDS,
)
from duplex_bench.reporting import withholding
from duplex_bench.reporting.run_tables import TRACKS
from duplex_bench.reporting.site.chunks import read_events
from duplex_bench.reporting.withholding import (
    mapped,
    placeless,
    public_reference,
    public_stimulus,
    public_verdicts,
    without_places,
)
from duplex_bench.stages import summary
from duplex_bench.stages.profile import Profile
from duplex_bench.stages.release.layout import AUDIO, NUMBERS_LICENCE, OUTPUT_LICENCE, TABLES
from duplex_bench.stages.stored_run import BESIDE, required, stored, systems_with, tracks_run
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_bytes
from duplex_bench.storage.frames import read_frame

# Kinds of events whose text is the system's own; a server also repeats what it heard.
_OWN_TEXT = ("text", "state")


class ReleaseError(ValueError):
    """The run cannot be released as it is, or a bundle does not hold what it must; the message names the remedy."""


def text_is_ours(profile: Profile, track: Track) -> bool:
    """Whether the words of a track's scenarios or conversations were made by this package's engines.

    A user's own scenarios and every corpus of recordings are taken for somebody's: their words stay here, whatever
    their licence says, since it is not ours to judge.
    """
    if track == "multiparty":
        return not profile.multiparty.scenario_file
    return profile.conversation.corpus.kind == "synthetic"


def public_tables(workspace: Workspace) -> dict[str, pl.DataFrame]:
    """Every table of the bundle by name, in the schemas of ``layout.TABLES``; without rows where there is nothing.

    Raises:
        ReleaseError: statistics that do not follow from the scores and the code as they are now.
        ValueError: nothing was run, or a table or event log is missing.
    """
    parts: dict[str, list[pl.DataFrame]] = {name: [] for name in TABLES}
    for track in tracks_run(workspace):
        for name, frame in _of_track(workspace, track).items():
            parts[name].append(frame)
    parts["cards"] = [_cards(workspace)]
    return {name: _shaped(name, frames) for name, frames in parts.items()}


def _shaped(name: str, frames: list[pl.DataFrame]) -> pl.DataFrame:
    schema = dict(TABLES[name])
    if not frames:
        return pl.DataFrame(schema=schema)
    return pl.concat([frame.select(*schema).cast(schema) for frame in frames])  # type: ignore[arg-type]


def _of_track(workspace: Workspace, track: Track) -> dict[str, pl.DataFrame]:
    closed = not text_is_ours(workspace.profile, track)
    items = required(workspace, track, "items").select(*ITEMS)
    source = items.select("item_id", pl.col("licence").alias("source_licence"))
    systems = systems_with(workspace, track, "measurements")

    def joined(name: str, schema: Mapping[str, Any]) -> pl.DataFrame:
        return summary.joined({system: required(workspace, track, name, system) for system in systems}, schema)

    def termed(frame: pl.DataFrame, licence: str) -> pl.DataFrame:
        given = frame.with_columns(pl.lit(track).alias("track"), pl.lit(licence).alias("licence"))
        return (
            given.join(source, on="item_id", how="left", maintain_order="left") if "item_id" in frame.columns else given
        )

    rollouts = joined("rollouts", ROLLOUTS)
    scores = public_scores(joined("measurements", MEASUREMENTS), closed=closed, of_system=True)
    beside = stored(workspace, track, BESIDE[track])
    bounds = None if beside is None else public_scores(beside.select(*MEASUREMENTS), closed=closed, of_system=False)
    found = {
        "items": items.with_columns(
            pl.lit(closed).alias("withheld"),
            mapped("stimulus", public_stimulus),
            *([mapped("reference", public_reference)] if closed else []),
        ),
        "rollouts": termed(public_rollouts(rollouts, closed=closed), OUTPUT_LICENCE).join(
            _model_licences(workspace, systems), on="system", how="left", maintain_order="left"
        ),
        "activity": termed(joined("activity", ACTIVITY), OUTPUT_LICENCE),
        "words": termed(joined("words", WORDS), OUTPUT_LICENCE),
        "events": termed(_events(workspace, rollouts), OUTPUT_LICENCE),
        "judgements": termed(public_judgements(joined("judgements", JUDGEMENTS), closed=closed), NUMBERS_LICENCE),
        "measurements": termed(scores, NUMBERS_LICENCE),
        **_summary(workspace, track, scores, bounds),
        **_made(workspace, track, closed=closed),
    }
    if bounds is not None:
        found["bounds"] = termed(bounds, NUMBERS_LICENCE)
    return found


def public_scores(frame: pl.DataFrame, *, closed: bool, of_system: bool) -> pl.DataFrame:
    """Measurements with reasons and details that may be given; ``closed`` where the words are not ours."""
    frame = frame.with_columns(mapped("reason", without_places))
    return withholding.public_scores(frame, of_system=of_system) if closed else frame


def public_judgements(frame: pl.DataFrame, *, closed: bool) -> pl.DataFrame:
    """Verdicts; the judge's words are withheld where it may have quoted, and a digest tells which they were."""
    told = frame.with_columns(mapped("raw", lambda text: digest_bytes(text.encode())).alias("raw_sha256"))
    return public_verdicts(told) if closed else told


def public_rollouts(frame: pl.DataFrame, *, closed: bool) -> pl.DataFrame:
    """Rollouts with the place of their audio in the bundle."""
    place = pl.format(f"{AUDIO}/{{}}.flac", pl.col("listener_audio")).alias("audio")
    told = frame.with_columns(place, mapped("reason", without_places))
    return told.with_columns(mapped("reason", lambda text: (text or "").partition(":")[0])) if closed else told


def _events(workspace: Workspace, rollouts: pl.DataFrame) -> pl.DataFrame:
    """Marks of every event log, as the report draws them: no audio chunks, states where they change."""
    rows: list[dict[str, object]] = []
    for system, key, digest in rollouts.select("system", "rollout_key", "events").iter_rows():
        for place, mark in enumerate(read_events(workspace.blobs, digest)):
            text = mark["text"] if mark["kind"] in _OWN_TEXT else ""
            told = {"place": place, "kind": mark["kind"], "at_s": mark["t"], "text": text}
            rows.append({"system": system, "rollout_key": key, **told})
    wanted = {name: kind for name, kind in TABLES["events"].items() if name not in {"track", "licence"}}
    return pl.DataFrame(rows, schema=wanted)


def _summary(
    workspace: Workspace, track: Track, scores: pl.DataFrame, bounds: pl.DataFrame | None
) -> dict[str, pl.DataFrame]:
    """Statistics made from the scores that are given, so that no reason in them quotes what is withheld."""
    by_system = {str(names[0]): rows for names, rows in scores.group_by(["system"], maintain_order=True)}
    estimates, comparisons = summary.aggregate(workspace, track, by_system, bounds)
    before = stored(workspace, track, "statistics")
    if before is not None and not same_estimates(before, estimates.frame):
        raise ReleaseError(
            f"the statistics of {track} do not follow from the scores and the code as they are now: run duplex-bench "
            f"report --profile {workspace.profile.name}, then release again"
        )
    licence = pl.lit(NUMBERS_LICENCE).alias("licence")
    return {
        "statistics": estimates.frame.select(*STATISTICS).with_columns(licence),
        "comparisons": comparisons.frame.select(*COMPARISONS).with_columns(licence),
    }


def same_estimates(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether two tables of statistics hold the same numbers."""
    names = ["system", "condition", "metric", "estimate", "low", "high", "n_scored"]
    return a.select(names).sort(names[:3]).equals(b.select(names).sort(names[:3]))


def same_comparisons(a: pl.DataFrame, b: pl.DataFrame) -> bool:
    """Whether two tables of comparisons hold the same numbers."""
    keys = ["condition", "metric", "system_a", "system_b", "test"]
    return a.select(*COMPARISONS).sort(keys).equals(b.select(*COMPARISONS).sort(keys))


def _made(workspace: Workspace, track: Track, *, closed: bool) -> dict[str, pl.DataFrame]:
    """What the track's stimuli were made from, as far as it is ours to give."""
    if track == "multiparty":
        pairs = stored(workspace, track, "pairs")
        if pairs is None or closed:
            return {}
        licence = required(workspace, track, "items")["licence"].unique().sort().str.join("; ").item()
        return {"scripts": pairs.with_columns(pl.lit(track).alias("track"), pl.lit(licence).alias("licence"))}
    sessions = stored(workspace, track, "lively_sessions")
    if sessions is None:
        return {}
    terms = sessions.select("session_id", "licence")
    found = {}
    for name in ("labels", "points"):
        frame = stored(workspace, track, name)
        if frame is not None:
            given = frame.drop("context_text", "point", strict=False).with_columns(pl.lit(track).alias("track"))
            found[name] = given.join(terms, on="session_id", how="left", maintain_order="left")
    return found


def _card_tables(workspace: Workspace) -> dict[str, pl.DataFrame]:
    wanted = {system for track in TRACKS for system in systems_with(workspace, track, "measurements")}
    keys = {system: workspace.table_key(("systems", "cards"), system) for system in sorted(wanted)}
    lacking = [system for system, key in keys.items() if not workspace.store.exists(key)]
    if lacking:
        raise ReleaseError(
            f"the card of {lacking[0]} is not stored with the run: run duplex-bench run --profile "
            f"{workspace.profile.name} --system {lacking[0]} again"
        )
    return {system: read_frame(workspace.store, key) for system, key in keys.items()}


def _cards(workspace: Workspace) -> pl.DataFrame:
    """Cards without paths and addresses of the machine: an interpreter's place says nothing about a system."""
    frames = [
        frame.with_columns(pl.lit(json.dumps(placeless(json.loads(frame["card"].item())))).alias("card"))
        for frame in _card_tables(workspace).values()
    ]
    return pl.concat([frame.select(*TABLES["cards"]) for frame in frames])


def _model_licences(workspace: Workspace, systems: tuple[str, ...]) -> pl.DataFrame:
    tables = _card_tables(workspace)
    rows = [{"system": system, "model_licence": tables[system]["licence"].item()} for system in systems]
    return pl.DataFrame(rows, schema={"system": pl.String, "model_licence": pl.String})


def public_settings(profile: Profile) -> dict[str, Any]:
    """The profile without paths and addresses of the machine."""
    told: dict[str, Any] = placeless(dataclasses.asdict(profile))
    return told
