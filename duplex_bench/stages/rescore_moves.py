"""What a rescoring moved: estimates, single windows, and who ranks above whom."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.inputs import POOLED

_CELL = ["track", "system", "condition", "metric"]
_STATISTICS = ("estimate", "low", "high", "n_scored", "tie_group", "reason")

RANKINGS_SCHEMA = {
    "track": pl.String, "condition": pl.String, "metric": pl.String, "system_a": pl.String, "system_b": pl.String,
    "before": pl.String, "after": pl.String,
}  # fmt: skip
TIED, ABOVE, BELOW, UNRANKED = "tied", "above", "below", "not ranked"


def moved_windows(before: pl.DataFrame, after: pl.DataFrame, track: Track) -> pl.DataFrame:
    """Scores whose value, reason or metric version changed, or that only one side has, the largest changes first.

    Args:
        before: schema MEASUREMENTS.
        after: schema MEASUREMENTS, of the same rollouts.
        track: name of the track.

    Returns:
        Ids and names with columns ``before``, ``after``, ``reason_before``, ``reason_after``.
    """
    names = ["measurement_id", "system", "item_id", "window_id", "condition", "metric"]
    kept = [*names, "value", "reason", "metric_version"]
    # A reason is None exactly where a value is not, so that null is a value to compare here.
    joined = before.select(kept).join(
        after.select(kept), on=names, how="full", suffix="_after", coalesce=True, nulls_equal=True
    )
    changed = joined.filter(
        pl.col("value").ne_missing(pl.col("value_after"))
        | pl.col("reason").ne_missing(pl.col("reason_after"))
        | pl.col("metric_version").ne_missing(pl.col("metric_version_after"))
    )
    return (
        changed.rename({"value": "before", "value_after": "after", "reason": "reason_before",
                        "metric_version": "metric_version_before"})
        .with_columns(pl.lit(track).alias("track"), (pl.col("after") - pl.col("before")).alias("moved"))
        .sort(pl.col("moved").abs(), "measurement_id", "system", descending=[True, False, False], nulls_last=True)
        .select("track", *names, "before", "after", "moved", "reason_before", "reason_after",
                "metric_version_before", "metric_version_after")
    )  # fmt: skip


def moved_estimates(before: pl.DataFrame, after: pl.DataFrame, windows: pl.DataFrame) -> pl.DataFrame:
    """Every estimate of either statistics table, side by side; ``moved`` is after minus before.

    ``windows_changed`` counts the rows of ``windows`` (of ``moved_windows``) in the cell; in a pooled condition they
    are counted under the conditions that it pools, and it is null.
    """
    joined = before.select(*_CELL, *_STATISTICS).join(
        after.select(*_CELL, *_STATISTICS), on=_CELL, how="full", suffix="_after", coalesce=True
    )
    counted = windows.group_by(_CELL).agg(pl.len().cast(pl.Int64).alias("windows_changed"))
    return (
        joined.rename({name: f"{name}_before" for name in _STATISTICS})
        .join(counted, on=_CELL, how="left")
        .with_columns(
            (pl.col("estimate_after") - pl.col("estimate_before")).alias("moved"),
            pl.when(pl.col("condition") != POOLED).then(pl.col("windows_changed").fill_null(0))
            .otherwise(pl.col("windows_changed")),
        )
        .sort(_CELL)
        .select(
            *_CELL, "estimate_before", "estimate_after", "moved", "low_before", "high_before", "low_after",
            "high_after", "n_scored_before", "n_scored_after", "windows_changed", "tie_group_before",
            "tie_group_after", "reason_before", "reason_after",
        )
    )  # fmt: skip


def only_moved(moves: pl.DataFrame) -> pl.DataFrame:
    """Rows of ``moved_estimates`` with another estimate, interval, count or tie group than before, largest moves first.

    Rows that only one side has are left out: ``one_sided`` names their systems.
    """
    both = moves.filter(pl.col("n_scored_before").is_not_null() & pl.col("n_scored_after").is_not_null())
    looked_at = ("estimate", "low", "high", "n_scored", "tie_group")
    moved = pl.any_horizontal(pl.col(f"{name}_before").ne_missing(pl.col(f"{name}_after")) for name in looked_at)
    return both.filter(moved).sort(
        pl.col("moved").abs(), *_CELL, descending=[True, *[False] * len(_CELL)], nulls_last=True
    )


def one_sided(moves: pl.DataFrame) -> list[str]:
    """Systems with estimates that only one side has, sorted: a reader or bound that this code names otherwise."""
    alone = moves.filter(pl.col("n_scored_before").is_null() | pl.col("n_scored_after").is_null())
    return sorted(alone["system"].unique())


def changed_rankings(before: pl.DataFrame, after: pl.DataFrame, cards: Sequence[MetricCard]) -> pl.DataFrame:
    """Pairs of systems that stand otherwise to one another than before, by tie group: above, below, tied.

    Only metrics that rank (a direction, and tie groups) are looked at. A pair is told from ``system_a``'s side.
    """
    ranked = {card.id for card in cards if card.direction != "none"}
    rows: list[dict[str, Any]] = []
    places = [_places(table, ranked) for table in (before, after)]
    for cell in sorted(places[0].keys() | places[1].keys()):
        was, now = (found.get(cell, {}) for found in places)
        for a, b in combinations(sorted(was.keys() | now.keys()), 2):
            old, new = _relation(was, a, b), _relation(now, a, b)
            if old != new:
                rows.append(dict(zip(RANKINGS_SCHEMA, (*cell, a, b, old, new), strict=True)))
    return pl.DataFrame(rows, schema=RANKINGS_SCHEMA)


def _places(table: pl.DataFrame, ranked: set[str]) -> dict[tuple[str, str, str], dict[str, int]]:
    found: dict[tuple[str, str, str], dict[str, int]] = {}
    kept = table.filter(pl.col("metric").is_in(sorted(ranked)) & pl.col("tie_group").is_not_null())
    for row in kept.iter_rows(named=True):
        found.setdefault((row["track"], row["condition"], row["metric"]), {})[row["system"]] = row["tie_group"]
    return found


def _relation(places: dict[str, int], a: str, b: str) -> str:
    if a not in places or b not in places:
        return UNRANKED
    if places[a] == places[b]:
        return TIED
    return ABOVE if places[a] < places[b] else BELOW
