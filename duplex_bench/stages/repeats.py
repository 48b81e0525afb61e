"""How much of a score is the item and how much the run: variance over repeated rollouts of one stimulus (ours)."""

import math
from collections.abc import Iterator

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages import evaluation
from duplex_bench.stages.later_repeats import later_verdicts
from duplex_bench.stages.measured import measured
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
    values = pl.concat([track.measurements.select(_COLUMNS), *_later(workspace, track)])
    rows = [_row(key, part) for key, part in _groups(values)]
    return Table(
        f"{track.track}-repeats",
        f"{track.title}: the same stimulus run again",
        "Variance over repeated rollouts of one stimulus (one-way random effects). sd_between_runs: what running it "
        "again moves a single score by; sd_between_windows: how far windows differ beyond that; share_of_runs: the "
        "runs' share of the sum. repeats_differ: share of the windows scored more than once whose scores are not all "
        "equal. Estimates and intervals elsewhere rest on the first repeat.",
        pl.DataFrame(rows, schema=SCHEMA),
    )


_COLUMNS = ("system", "condition", "metric", "item_id", "window_id", "value", "reason")


def _later(workspace: Workspace, track: TrackTables) -> Iterator[pl.DataFrame]:
    schema = {name: track.measurements.schema[name] for name in _COLUMNS}
    for (system,), mine in track.rollouts.sort("system").group_by("system", maintain_order=True):
        of_system = pl.col("system") == system
        ones = measured(track.items, mine, track.activity.filter(of_system), track.words.filter(of_system), others=True)
        verdicts = later_verdicts(workspace, track.track, str(system))
        verdicts = track.judgements.clear() if verdicts is None else verdicts
        found, _ = evaluation.scored(workspace, track.track, ones, verdicts, str(system))
        rows = [
            {
                "system": system, "condition": one.item.condition, "metric": each.metric,
                "item_id": one.item.item_id, "window_id": each.window_id, "value": each.score.value,
                "reason": each.score.reason,
            }
            for one, measurements in found
            for each in measurements
        ]  # fmt: skip
        yield pl.DataFrame(rows, schema=schema)


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
