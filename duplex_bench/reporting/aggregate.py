"""From measurements to statistics: estimates with intervals, paired comparisons, tie groups (design 10)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.tables import COMPARISONS, STATISTICS
from duplex_bench.reporting.inputs import POOLED, ReportInputError
from duplex_bench.statistics import (
    Multiplicities,
    bonferroni,
    holm,
    mcnemar_exact,
    minimum_detectable_difference,
    multiplicities,
    percentile_interval,
    quartiles,
    replicates,
    sign_flip_test,
    tie_groups,
    wilson_interval,
)
from duplex_bench.storage.digests import generator_from

SIGN_FLIP = "sign_flip"
MCNEMAR = "mcnemar_exact"
_WINDOW = ["item_id", "window_id"]

Cell = tuple[str, str, str]
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AggregateSettings:
    """Numbers of the aggregation.

    ``n_resamples``: cluster bootstrap (P2: 2,000). ``n_permutations``: sign flips beyond 14 clusters (ours).
    ``level``: confidence level; tests are at 1 - level. ``power``: of the minimum detectable difference (ours).
    ``paper_metrics``: metrics in the Bonferroni family of the paper-comparable test (P1: 10 pairs x 2 metrics).
    ``all_metrics_in_pairs``: compare systems on every metric, not on headline metrics only (ours).
    """

    n_resamples: int = 2000
    n_permutations: int = 10_000
    level: float = 0.95
    power: float = 0.8
    paper_metrics: int = 2
    all_metrics_in_pairs: bool = False


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
    would call it certain. Multiparty metrics that exist in several conditions get a row for all of them too;
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
            or a rate outside [0, 1].
    """
    settings = settings or AggregateSettings()
    _check(measurements, cards)
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
        estimates = [
            {**base, "system": name, **_estimate(rows.filter(pl.col("system") == name), card, counts[name], draws,
                                                 settings)}
            for name in names
        ]  # fmt: skip
        if card.headline or settings.all_metrics_in_pairs:
            pairs = [{**base, **pair} for pair in _pairs(rows, names, card, draws, settings, (track, condition))]
            _tie(estimates, pairs, card, 1 - settings.level)
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
    windows = measurements.select("condition", "metric", *_WINDOW).unique()
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
    known = measurements.filter(pl.col("value").is_not_null()).sort("system", *_WINDOW)
    rows: list[Row] = []
    for card in cards:
        mine = known.filter(pl.col("metric") == card.id)
        conditions = sorted(mine["condition"].unique())[:2]
        if len(conditions) < 2:
            continue
        names = ("conditions/1", track, *conditions)
        draws = multiplicities(mine["cluster"].to_numpy(), generator_from(*names), settings.n_resamples)
        for system in sorted(mine["system"].unique()):
            sides = [
                mine.filter((pl.col("system") == system) & (pl.col("condition") == condition))
                for condition in conditions
            ]
            if not all(side.height for side in sides):
                continue
            center = [_center(side["value"].to_numpy(), card) for side in sides]
            first, second = (
                replicates(side["value"].to_numpy(), side["cluster"].to_numpy(), _statistic(card), draws)
                for side in sides
            )
            clusters = pl.concat([side["cluster"] for side in sides]).n_unique()
            low, high = percentile_interval(first - second, settings.level) if clusters > 1 else (np.nan, np.nan)
            rows.append(
                {"system": system, "metric": card.id, "first": conditions[0], "second": conditions[1],
                 "difference": center[0] - center[1], "low": _known(low), "high": _known(high),
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
    twice = measurements.group_by("system", "metric", *_WINDOW).len().filter(pl.col("len") > 1)
    if twice.height:
        row = twice.sort("system", "metric", *_WINDOW).row(0, named=True)
        raise ReportInputError(
            f"table measurements scores window {row['window_id']} of item {row['item_id']} for {row['system']}, "
            f"{row['metric']} {row['len']} times: give one repeat, the headline one"
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
    ordered = measurements.sort("system", *_WINDOW)
    for metric in sorted({key[2] for key in counts}, key=lambda name: order[name]):
        mine = ordered.filter(pl.col("metric") == metric)
        conditions = sorted({key[1] for key in counts if key[2] == metric})
        for condition in conditions:
            by_system = {key[0]: n for key, n in counts.items() if key[1:] == (condition, metric)}
            yield metric, condition, mine.filter(pl.col("condition") == condition), by_system
        if pools and len(conditions) > 1:
            pooled: dict[str, int] = {}
            for key, n in counts.items():
                if key[2] == metric:
                    pooled[key[0]] = pooled.get(key[0], 0) + n
            yield metric, POOLED, mine, pooled


def _statistic(card: MetricCard) -> Any:
    return "median" if card.statistic == "median" else "mean"


def _center(values: npt.NDArray[np.float64], card: MetricCard) -> float:
    return float(np.median(values) if card.statistic == "median" else np.mean(values))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _estimate(
    rows: pl.DataFrame, card: MetricCard, expected: int, draws: Multiplicities, settings: AggregateSettings
) -> Row:
    scored = rows.filter(pl.col("value").is_not_null())
    values, clusters = scored["value"].to_numpy(), scored["cluster"].to_numpy()
    n_clusters = scored["cluster"].n_unique()
    counted = {"statistic": card.statistic, "n_scored": scored.height, "n_expected": expected, "n_clusters": n_clusters}
    empty: Row = dict.fromkeys(("estimate", "low", "high", "q1", "q3", "tie_group"))
    if scored.height < max(card.minimum_n, 1):
        return {**counted, **empty, "method": "", "reason": _why_none(rows, scored.height, card)}
    shape: Row = {"q1": None, "q3": None}
    if card.statistic != "rate":
        spread = quartiles(values)
        shape = {"q1": spread.q1, "q3": spread.q3}
    percent = f"{100 * settings.level:g} %"
    reason = None
    if n_clusters < 2:
        low = high = np.nan
        method, reason = "no interval", "no interval: all windows are of one cluster"
    elif card.statistic == "rate" and (np.all(values == 0.0) or np.all(values == 1.0)):
        low, high = wilson_interval(int(values[0]) * n_clusters, n_clusters, settings.level)
        method = f"{percent} Wilson interval over {n_clusters} clusters, since every window has the same value"
    else:
        low, high = percentile_interval(replicates(values, clusters, _statistic(card), draws), settings.level)
        method = f"{percent} cluster bootstrap, {settings.n_resamples} resamples of {n_clusters} clusters"
    return {
        **counted,
        **shape,
        "estimate": _center(values, card),
        "low": _known(low),
        "high": _known(high),
        "method": method,
        "reason": reason,
        "tie_group": None,
    }


def _why_none(rows: pl.DataFrame, n_scored: int, card: MetricCard) -> str:
    missing = rows.filter(pl.col("value").is_null())
    reasons = missing.group_by("reason").len().sort(["len", "reason"], descending=[True, False]).to_dicts()
    text = "; ".join(f"{row['reason']} ({row['len']})" for row in reasons[:2])
    if n_scored == 0:
        return text or "no window was measured"
    needed = f"{n_scored} scored, at least {card.minimum_n} needed"
    return f"{needed}; others: {text}" if text else needed


def _pairs(
    rows: pl.DataFrame,
    names: Sequence[str],
    card: MetricCard,
    draws: Multiplicities,
    settings: AggregateSettings,
    seed_names: tuple[str, str],
) -> list[Row]:
    values = {
        name: rows.filter((pl.col("system") == name) & pl.col("value").is_not_null()).select(
            *_WINDOW, "cluster", "value"
        )
        for name in names
    }
    found: list[Row] = []
    marginal: list[Row] = []
    for a, b in combinations(names, 2):
        shared = values[a].join(values[b], on=_WINDOW, suffix="_b").sort(_WINDOW)
        n_clusters = shared["cluster"].n_unique()
        if shared.height < max(card.minimum_n, 1) or n_clusters < 2:
            continue
        ours, theirs = shared["value"].to_numpy(), shared["value_b"].to_numpy()
        clusters = shared["cluster"].to_numpy()
        ours_again, theirs_again = (replicates(side, clusters, _statistic(card), draws) for side in (ours, theirs))
        low, high = percentile_interval(ours_again - theirs_again, settings.level)
        rng = generator_from("sign-flip/1", *seed_names, card.id, a, b)
        by_cluster = shared.group_by("cluster").agg((pl.col("value") - pl.col("value_b")).mean().alias("d"))
        pair: Row = {
            "system_a": a,
            "system_b": b,
            "difference": _center(ours, card) - _center(theirs, card),
            "low": _known(low),
            "high": _known(high),
            "n_pairs": shared.height,
            "n_clusters": n_clusters,
            "minimum_detectable": _known(
                minimum_detectable_difference(
                    n_clusters, float(np.std(by_cluster.sort("cluster")["d"].to_numpy(), ddof=1)), settings.power,
                    settings.level,
                )
            ),
        }  # fmt: skip
        p = sign_flip_test(ours - theirs, clusters, rng=rng, n_permutations=settings.n_permutations)
        found.append({**pair, "p": p, "p_corrected": None, "correction": "holm", "test": SIGN_FLIP})
        if card.statistic == "rate" and np.isin(ours, (0.0, 1.0)).all() and np.isin(theirs, (0.0, 1.0)).all():
            p = mcnemar_exact(int(((ours == 1) & (theirs == 0)).sum()), int(((ours == 0) & (theirs == 1)).sum()))
            marginal.append({**pair, "p": p, "correction": "bonferroni", "test": MCNEMAR})
    for row, corrected in zip(found, holm([row["p"] for row in found]), strict=True):
        row["p_corrected"] = _known(corrected)
    family = max(len(marginal) * settings.paper_metrics, 1)
    for row in marginal:
        row["p_corrected"] = bonferroni(row["p"], family)
        row["correction"] = f"bonferroni over {family}"
    return found + marginal


def _tie(estimates: list[Row], pairs: list[Row], card: MetricCard, alpha: float) -> None:
    """Write tie groups into ``estimates``: systems that the headline test does not tell apart share one."""
    if card.direction == "none":
        return
    place = {row["system"]: index for index, row in enumerate(estimates)}
    p_values = np.full((len(place), len(place)), np.nan)
    for pair in pairs:
        if pair["test"] == SIGN_FLIP:
            a, b = place[pair["system_a"]], place[pair["system_b"]]
            p_values[a, b] = p_values[b, a] = pair["p_corrected"]
    goodness = [
        np.nan if row["estimate"] is None else -abs(row["estimate"] - (card.target or 0.0))
        if card.direction == "target" else row["estimate"]
        for row in estimates
    ]  # fmt: skip
    groups = tie_groups(goodness, p_values, alpha=alpha, higher_is_better=card.direction != "lower")
    for row, group in zip(estimates, groups, strict=True):
        row["tie_group"] = group
