"""How much of a score is the item and how much the run: variance over repeated rollouts of one stimulus (ours)."""

import math
from collections.abc import Iterator

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.later_scores import COLUMNS, kept_later_scores, scored_again
from duplex_bench.stages.workspace import Workspace
from duplex_bench.statistics import variance_components

SCHEMA = {
    "system": pl.String, "condition": pl.String, "metric": pl.String, "n_windows": pl.Int64, "n_repeated": pl.Int64,
    "n_values": pl.Int64, "mean": pl.Float64, "repeats_differ": pl.Float64, "sd_between_windows": pl.Float64,
    "sd_between_runs": pl.Float64, "share_of_runs": pl.Float64, "reason": pl.String,
}  # fmt: skip


def repeat_variance(workspace: Workspace, track: TrackTables) -> Table | None:
    """A row a system, condition and metric, over all repeats; None where every stimulus was run once.

    Rollouts of later repeats are scored here by the rules of the first, with the verdicts that the judge was asked for.
    Where it was not (``judge.later_repeats``), metrics that it decides stand with that as their reason.
    """
    if not track.rollouts.filter(pl.col("repeat") > 0).height:
        return None
    # A system at a time: the scores of all repeats of all systems together would not fit beside the tables.
    rows = [_row(key, part) for values in _by_system(workspace, track) for key, part in _groups(values)]
    rows.sort(key=lambda row: (str(row["condition"]), str(row["metric"]), str(row["system"])))
    return Table(
        f"{track.track}-repeats",
        f"{track.title}: the same stimulus run again",
        "Variance over repeated rollouts of one stimulus (one-way random effects). sd_between_runs: what running it "
        "again moves a single score by; sd_between_windows: how far windows differ beyond that; share_of_runs: the "
        "runs' share of the sum. repeats_differ: share of the windows scored more than once whose scores are not all "
        "equal. Estimates and intervals elsewhere rest on the first repeat.",
        pl.DataFrame(rows, schema=SCHEMA),
    )


def _by_system(workspace: Workspace, track: TrackTables) -> Iterator[pl.DataFrame]:
    """Scores of all repeats of one system after another; what was not stored with the scores is scored now."""
    of_rollouts = track.rollouts["system"].unique().to_list()
    for system in sorted({*of_rollouts, *track.measurements["system"].unique()}):
        mine = pl.col("system") == system
        later = kept_later_scores(workspace, track.track, system)
        if later is None:
            later = scored_again(
                workspace, track.track, track.items, track.rollouts.filter(mine), track.activity.filter(mine),
                track.words.filter(mine), system,
            )  # fmt: skip
        yield pl.concat([track.measurements.lazy().filter(mine).select(COLUMNS).collect(), later])


def _groups(values: pl.DataFrame) -> Iterator[tuple[tuple[object, ...], pl.DataFrame]]:
    ordered = values.sort("condition", "metric", "system", "item_id", "window_id", maintain_order=True)
    yield from ordered.group_by("condition", "metric", "system", maintain_order=True)


def _row(key: tuple[object, ...], part: pl.DataFrame) -> dict[str, object]:
    condition, metric, system = key
    window = pl.concat_str("item_id", "window_id", separator=" ")
    with_value = part.filter(pl.col("value").is_not_null()).with_columns(window.alias("window"))
    by_window = with_value.group_by("window").agg(pl.len().alias("n"), pl.col("value").n_unique().alias("different"))
    repeated = by_window.filter(pl.col("n") > 1)
    row: dict[str, object] = {
        "system": system, "condition": condition, "metric": metric, "n_windows": by_window.height,
        "n_repeated": repeated.height, "n_values": with_value.height, "mean": with_value["value"].mean(),
    }  # fmt: skip
    if not repeated.height:
        reasons = part.filter(pl.col("value").is_null())["reason"].drop_nulls()
        told = str(reasons.mode().sort()[0]) if len(reasons) else "scored once"
        return {**row, "reason": f"no window has a score of two repeats; the others: {told}"}
    parts = variance_components(with_value["value"].to_numpy(), with_value["window"].to_numpy())
    total = parts.item + parts.run
    return {
        **row,
        "repeats_differ": (repeated["different"] > 1).mean(),
        "sd_between_windows": None if math.isnan(parts.item) else math.sqrt(parts.item),
        "sd_between_runs": math.sqrt(parts.run),
        "share_of_runs": parts.run / total if total > 0 else None,
    }
