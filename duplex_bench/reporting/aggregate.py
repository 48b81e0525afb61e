"""From measurements to statistics: estimates with intervals, paired comparisons, tie groups (design 10)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.tables import COMPARISONS, STATISTICS
from duplex_bench.reporting.comparisons import WINDOW, pairs_of, without_spread, write_tie_groups
from duplex_bench.reporting.estimates import (
    AggregateSettings,
    Row,
    center,
    cluster_index,
    estimate,
    known_or_none,
    resampled,
)
from duplex_bench.reporting.inputs import ADDRESSING, POOLED, ReportInputError
from duplex_bench.statistics import Multiplicities, alike, multiplicities, percentile_interval
from duplex_bench.storage.digests import generator_from

__all__ = ["AggregateSettings", "Aggregates", "condition_differences", "expected_windows", "statistics_table"]

Cell = tuple[str, str, str]


class Aggregates(NamedTuple):
    """Frames in the schemas STATISTICS and COMPARISONS."""

    statistics: pl.DataFrame
    comparisons: pl.DataFrame


def statistics_table(
    measurements: pl.DataFrame,
    cards: Sequence[MetricCard],
    *,
    track: Track,
    expected: Mapping[Cell, int] | None = None,
    settings: AggregateSettings | None = None,
) -> Aggregates:
    """Aggregate one track's measurements of one repeat.

    Estimates are the card's statistic over windows with a value, with a percentile interval from resampling whole
    clusters. A rate whose windows all have one value gets a Wilson interval over clusters instead, since resampling
    would call it certain. Multiparty metrics that exist in both addressing forms get a row for both together;
    conversation points are never pooled across types (design 8). Every draw is named by track and condition, and
    rows are sorted first, so that neither the order of rows nor the process changes a digit.

    Args:
        measurements: schema MEASUREMENTS; a row without a value counts as expected, not scored, never as zero.
        cards: the track's metric cards; metrics without a card raise.
        track: name of the track.
        expected: windows expected by (system, condition, metric); where absent, the windows that have a row. Windows
            of rollouts that were excluded have no row, so that the caller should count them here.
        settings: numbers of the aggregation.

    Returns:
        ``statistics`` sorted by metric, condition, system; ``comparisons`` holds for each pair of systems the sign
        flip test (Holm over the pairs of a metric and condition; of the mean paired difference, also where the
        estimate is a median) and for rates exact McNemar (Bonferroni).

    Raises:
        ReportInputError: a metric without a card, two rows for one window of a system, fewer expected than stored,
            a rate outside [0, 1], or a value that is no number.
    """
    settings = settings or AggregateSettings()
    # Details and identities are most of a large table, and no statistic needs them.
    _check(measurements, cards)
    measurements = measurements.select("system", *WINDOW, "cluster", "condition", "metric", "value", "reason")
    order = {card.id: place for place, card in enumerate(cards)}
    by_id = {card.id: card for card in cards}
    statistics: list[Row] = []
    comparisons: list[Row] = []
    # Metrics with the same clusters share their draws: one matrix is most of the cost.
    drawn: dict[tuple[str, tuple[str, ...]], Multiplicities] = {}
    for metric, condition, rows, counts in _cells(measurements, expected or {}, order, pools=track == "multiparty"):
        card = by_id[metric]
        names = sorted(counts)
        base = {"track": track, "condition": condition, "metric": metric}
        clusters = tuple(rows["cluster"].unique().sort())
        if (condition, clusters) not in drawn:
            rng = generator_from("bootstrap/1", track, condition)
            drawn[condition, clusters] = multiplicities(np.array(clusters), rng, settings.n_resamples)
        draws = drawn[condition, clusters]
        of_system = rows.partition_by("system", as_dict=True)
        estimates = [
            {**base, "system": name, **estimate(of_system.get((name,), rows.clear()), card, counts[name], draws,
                                                 settings)}
            for name in names
        ]  # fmt: skip
        if card.headline or settings.all_metrics_in_pairs:
            pairs = [{**base, **pair} for pair in pairs_of(rows, names, card, draws, settings, (track, condition))]
            write_tie_groups(estimates, pairs, card, settings.alpha)
            comparisons += pairs
        statistics += estimates
    return Aggregates(
        pl.DataFrame(statistics, schema=dict(STATISTICS)), pl.DataFrame(comparisons, schema=dict(COMPARISONS))
    )


def expected_windows(measurements: pl.DataFrame, rollouts: pl.DataFrame) -> dict[Cell, int]:
    """Windows to expect by (system, condition, metric): those that any system of the track has a row for.

    A window counts for a system if the system was to run its item, so that rollouts that failed are expected and not
    scored; items that do not apply to a system are not expected of it.
    """
    windows = measurements.select("condition", "metric", *WINDOW).unique()
    to_run = rollouts.filter(pl.col("outcome") != Outcome.NOT_APPLICABLE).select("system", "item_id").unique()
    counted = windows.join(to_run, on="item_id").group_by("system", "condition", "metric").len()
    return {(row["system"], row["condition"], row["metric"]): int(row["len"]) for row in counted.to_dicts()}


def condition_differences(
    measurements: pl.DataFrame, cards: Iterable[MetricCard], *, track: Track, settings: AggregateSettings | None = None
) -> pl.DataFrame:
    """Difference between the first two conditions (sorted) of each system and metric, resampling shared clusters.

    Returns:
        Columns system, metric, first, second, difference (first minus second), low, high, n_clusters; only metrics
        measured in both conditions.
    """
    settings = settings or AggregateSettings()
    kept = ["system", *WINDOW, "cluster", "condition", "metric", "value"]
    by_metric = measurements.select(kept).filter(pl.col("value").is_not_null()).partition_by("metric", as_dict=True)
    drawn: dict[tuple[str, ...], Multiplicities] = {}
    rows: list[Row] = []
    for card in cards:
        mine = by_metric.get((card.id,), measurements.select(kept).clear()).sort("system", *WINDOW)
        conditions = sorted(mine["condition"].unique())[:2]
        if len(conditions) < 2:
            continue
        names = ("conditions/1", track, *conditions)
        labels = (*names, *mine["cluster"].unique().sort())
        if labels not in drawn:
            drawn[labels] = multiplicities(mine["cluster"].to_numpy(), generator_from(*names), settings.n_resamples)
        draws = drawn[labels]
        parts = mine.partition_by("system", "condition", as_dict=True)
        for system in sorted(mine["system"].unique()):
            sides = [parts[system, condition] for condition in conditions if (system, condition) in parts]
            if len(sides) < 2:
                continue
            centers = [center(side["value"].to_numpy(), card) for side in sides]
            first, second = (
                resampled(side["value"].to_numpy(), cluster_index(side["cluster"], draws), card, draws)
                for side in sides
            )
            clusters = pl.concat([side["cluster"] for side in sides]).n_unique()
            low, high = np.nan, np.nan
            if clusters > 1:
                change = first - second
                low, high = (
                    without_spread(centers[0] - centers[1], clusters, card, settings)
                    if alike(change)
                    else percentile_interval(change, settings.level, clusters)
                )
            rows.append(
                {"system": system, "metric": card.id, "first": conditions[0], "second": conditions[1],
                 "difference": centers[0] - centers[1], "low": known_or_none(low), "high": known_or_none(high),
                 "n_clusters": clusters}
            )  # fmt: skip
    schema = {"system": pl.String, "metric": pl.String, "first": pl.String, "second": pl.String,
              "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64, "n_clusters": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def _check(measurements: pl.DataFrame, cards: Sequence[MetricCard]) -> None:
    known = {card.id for card in cards}
    unknown = sorted(set(measurements["metric"]) - known)
    if unknown:
        raise ReportInputError(f"table measurements has metrics without a card: {', '.join(unknown)}: give their cards")
    twice = measurements.group_by("system", "metric", *WINDOW).len().filter(pl.col("len") > 1)
    if twice.height:
        row = twice.sort("system", "metric", *WINDOW).row(0, named=True)
        raise ReportInputError(
            f"table measurements scores window {row['window_id']} of item {row['item_id']} for {row['system']}, "
            f"{row['metric']} {row['len']} times: give one repeat, the headline one"
        )
    undefined = measurements.filter(pl.col("value").is_nan() | pl.col("value").is_infinite())
    if undefined.height:
        row = undefined.row(0, named=True)
        raise ReportInputError(
            f"table measurements, row {row['measurement_id']}: value {row['value']} of {row['metric']} is no number; "
            "a missing score has a reason and no value: score it again"
        )
    rates = [card.id for card in cards if card.statistic == "rate"]
    outside = measurements.filter(pl.col("metric").is_in(rates) & ~pl.col("value").is_between(0.0, 1.0))
    if outside.height:
        row = outside.row(0, named=True)
        raise ReportInputError(
            f"table measurements, row {row['measurement_id']}: {row['metric']} is a rate, its value "
            f"{row['value']} is not between 0 and 1: score it again"
        )


def _cells(
    measurements: pl.DataFrame, expected: Mapping[Cell, int], order: Mapping[str, int], *, pools: bool
) -> Iterator[tuple[str, str, pl.DataFrame, dict[str, int]]]:
    """Metric, condition, its rows in a fixed order, and the windows expected of each system."""
    stored = {
        (row["system"], row["condition"], row["metric"]): int(row["len"])
        for row in measurements.group_by("system", "condition", "metric").len().to_dicts()
    }
    for key, n in stored.items():
        if expected.get(key, n) < n:
            raise ReportInputError(
                f"{n} windows of {key[0]}, {key[1]}, {key[2]} are stored but {expected[key]} expected: count again"
            )
    counts = {**stored, **expected}
    by_metric = measurements.partition_by("metric", as_dict=True)
    for metric in sorted({key[2] for key in counts}, key=lambda name: order[name]):
        mine = by_metric.pop((metric,), measurements.clear()).sort("system", *WINDOW)
        conditions = sorted({key[1] for key in counts if key[2] == metric})
        for condition in conditions:
            by_system = {key[0]: n for key, n in counts.items() if key[1:] == (condition, metric)}
            yield metric, condition, mine.filter(pl.col("condition") == condition), by_system
        # Other acoustics are the same scenes again: pooled with them, a scene would count twice.
        together = [condition for condition in conditions if condition in ADDRESSING]
        if pools and len(together) > 1:
            pooled: dict[str, int] = {}
            for key, n in counts.items():
                if key[2] == metric and key[1] in together:
                    pooled[key[0]] = pooled.get(key[0], 0) + n
            yield metric, POOLED, mine.filter(pl.col("condition").is_in(together)), pooled
