"""The report, from the stored tables of both tracks."""

from collections.abc import Mapping
from typing import Any

import dagster as dg
import polars as pl

from duplex_bench.defs.partitions import CARDS
from duplex_bench.lib.io_manager import OPTIONAL
from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.records.items import Track
from duplex_bench.stages import code_versions
from duplex_bench.stages import report as report_stage
from duplex_bench.stages.quality import voice_quality
from duplex_bench.stages.recognition import recogniser_quality

TRACKS: tuple[Track, ...] = ("multiparty", "conversation")
NAMES = ("items", *report_stage.PER_SYSTEM, "statistics", "comparisons", "figures")


# Tables that belong to a track, not to a system.
BESIDE = ("inventory", "construction", "transcript_decisions", "corpus_inventory", "gate_calibration",
          "recogniser_quality")  # fmt: skip

# What the release bundle is written from.
RELEASED = (
    ("systems", "cards"),
    *((track, name) for track in TRACKS for name in ("items", *report_stage.PER_SYSTEM, "statistics", "comparisons")),
    ("multiparty", "pairs"),
    ("multiparty", "transcript_reference"),
    *(("conversation", name) for name in ("lively_sessions", "labels", "points", "bounds")),
)


def _where_made(*key: str) -> dg.AssetIn:
    # A report of one track alone is a report: the other's tables arrive as None.
    return dg.AssetIn(dg.AssetKey(key), metadata={OPTIONAL: True})


def _ins() -> Mapping[str, dg.AssetIn]:
    found = {f"{track}_{name}": _where_made(track, name) for track in TRACKS for name in NAMES}
    found["inventory"] = _where_made("multiparty", "inventory")
    found["construction"] = _where_made("multiparty", "construction")
    found["transcript_decisions"] = _where_made("multiparty", "transcript_decisions")
    found["corpus_inventory"] = _where_made("conversation", "inventory")
    found["gate_calibration"] = _where_made("conversation", "gate_calibration")
    found["corpus_figures"] = _where_made("conversation", "corpus_figures")
    found["candidates"] = _where_made("conversation", "candidates")
    found["voices"] = dg.AssetIn(dg.AssetKey(["results", "voice_quality"]))
    found["recogniser_quality"] = _where_made("results", "recogniser_quality")
    return found


@dg.asset(
    key=["results", "voice_quality"],
    group_name="results",
    code_version=code_versions.of("multiparty", "voice_quality"),
    kinds={"audio"},
    description="The cast listened to by measurement: error rate, level, pitch, distance between voices.",
)
def voices(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Measure the voices."""
    return reported(voice_quality(workspace.open()))


@dg.asset(
    key=["results", "recogniser_quality"],
    group_name="results",
    code_version=code_versions.of("multiparty", "recogniser_quality"),
    kinds={"audio"},
    # It hears again what the voices' table heard: after it, those clips are in the cache.
    deps=[dg.AssetKey(["results", "voice_quality"])],
    description="Recogniser and detectors on known sound: words, times, short replies, no speech, sensitivity.",
)
def recogniser(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Measure the recogniser and the detectors."""
    return reported(recogniser_quality(workspace.open()))


@dg.asset(
    key=["results", "report"],
    group_name="results",
    code_version=code_versions.of("multiparty", "report"),
    kinds={"html"},
    ins=_ins(),
    description="The static report: leaderboards, players, tables, figures, failures, provenance.",
)
def report(workspace: WorkspaceResource, **stored: Any) -> dg.Output[pl.DataFrame]:
    """Build the report."""
    opened = workspace.open()
    tracks = [
        report_stage.track_tables(track, {name: stored[f"{track}_{name}"] for name in NAMES}, opened.profile)
        for track in TRACKS
        if all(stored[f"{track}_{name}"] is not None for name in NAMES)
    ]
    shown = [track for track in tracks if track.rollouts.height]
    if not shown:
        raise ValueError("no track has been run to its statistics: run one, then build the report again")
    result = report_stage.report(
        opened,
        shown,
        list(CARDS.values()),
        {track.track: _figures(track.track, stored) for track in shown},
        stored["candidates"],
        stored["voices"],
        more=[stored[name] for name in BESIDE if stored[name] is not None],
    )
    return reported(result)


def _figures(track: Track, stored: Mapping[str, Any]) -> pl.DataFrame:
    """The figures of a track; those of its corpus first."""
    of_corpus = [stored["corpus_figures"]] if track == "conversation" and stored["corpus_figures"] is not None else []
    frames: list[pl.DataFrame] = [*of_corpus, stored[f"{track}_figures"]]
    # Figures of an earlier version have fewer columns.
    return pl.concat(frames, how="diagonal")


@dg.asset(
    key=["results", "release"],
    group_name="results",
    code_version=code_versions.of("multiparty", "release"),
    kinds={"bundle"},
    deps=[*(dg.AssetKey(list(key)) for key in RELEASED)],
    description="The public bundle of a run: scores, what systems said, labels, prompts, cards; no corpus audio.",
)
def release(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Write the bundle."""
    # The bundle is written from what is stored, whichever of it was made.
    from duplex_bench.stages.release.build import build_release

    return reported(build_release(workspace.open()))
