"""Scores of repeats after the first: made beside those of the first, so that a table over all systems only reads."""

from typing import Final

import polars as pl

from duplex_bench.records import tables
from duplex_bench.records.items import Track
from duplex_bench.stages import evaluation
from duplex_bench.stages.later_repeats import later_verdicts
from duplex_bench.stages.measured import measured
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame, write_frame

LATER_SCORES: Final = "later_measurements"
COLUMNS: Final = ("system", "condition", "metric", "item_id", "window_id", "value", "reason")


def scored_again(
    workspace: Workspace,
    track: Track,
    items: pl.DataFrame,
    rollouts: pl.DataFrame,
    activity: pl.DataFrame,
    words: pl.DataFrame,
    system: str,
) -> pl.DataFrame:
    """``COLUMNS`` of every window of a system's later repeats, by the rules of the first."""
    ones = measured(items, rollouts, activity, words, others=True)
    verdicts = later_verdicts(workspace, track, system)
    given = pl.DataFrame(schema=dict(tables.JUDGEMENTS)) if verdicts is None else verdicts
    found, _ = evaluation.scored(workspace, track, ones, given, system)
    rows = [
        {
            "system": system, "condition": one.item.condition, "metric": each.metric, "item_id": one.item.item_id,
            "window_id": each.window_id, "value": each.score.value, "reason": each.score.reason,
        }
        for one, measurements in found
        for each in measurements
    ]  # fmt: skip
    return pl.DataFrame(rows, schema={name: tables.MEASUREMENTS[name] for name in COLUMNS})


def keep_later_scores(
    workspace: Workspace,
    track: Track,
    items: pl.DataFrame,
    rollouts: pl.DataFrame,
    activity: pl.DataFrame,
    words: pl.DataFrame,
    system: str,
) -> None:
    """Store the scores of a system's later repeats, or take away those of an earlier run that had repeats."""
    key = workspace.table_key((track, LATER_SCORES), system)
    if rollouts.filter(pl.col("repeat") > 0).height:
        write_frame(workspace.store, key, scored_again(workspace, track, items, rollouts, activity, words, system))
    else:
        workspace.store.delete(key)


def kept_later_scores(workspace: Workspace, track: Track, system: str) -> pl.DataFrame | None:
    """Stored scores of a system's later repeats; None where its scores were made without storing them."""
    key = workspace.table_key((track, LATER_SCORES), system)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None
