"""One estimate: the card's statistic of the windows that have a value, with its interval or the reason for none."""

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.statistics import (
    Multiplicities,
    alike,
    mean_replicates,
    no_spread_interval,
    percentile_interval,
    quartiles,
    wilson_interval,
)
from duplex_bench.statistics.weighted_median import weighted_medians

Row = dict[str, Any]

# Below this many clusters, or clusters with the rarer outcome, a bootstrap interval covers less than it says (ours).
FEW_CLUSTERS: Final = 10


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

    @property
    def alpha(self) -> float:
        """Size of a test: below it a corrected p-value tells two systems apart."""
        return round(1 - self.level, 12)


def bootstrap_statistic(card: MetricCard) -> Literal["mean", "median"]:
    """How a card's statistic is named to the bootstrap: a rate is a mean."""
    return "median" if card.statistic == "median" else "mean"


def center(values: npt.NDArray[np.float64], card: MetricCard) -> float:
    """The card's statistic of values (n,), n at least 1."""
    return float(np.median(values) if card.statistic == "median" else np.mean(values))


def known_or_none(value: float) -> float | None:
    """NaN, which statistics give where a number is undefined, as None, which tables hold."""
    return None if np.isnan(value) else float(value)


def cluster_index(clusters: pl.Series, draws: Multiplicities) -> npt.NDArray[np.int64]:
    """Position of each cluster's name among those resampled; far quicker than a search in an array of objects."""
    places = clusters.cast(pl.Enum(pl.Series(draws.labels, dtype=pl.String))).to_physical()
    return places.to_numpy().astype(np.int64)


def estimate(
    rows: pl.DataFrame, card: MetricCard, expected: int, draws: Multiplicities, settings: AggregateSettings
) -> Row:
    """Fields of one row of STATISTICS but its names: estimate, interval, counts, method or reason."""
    missing = rows["value"].is_null()
    scored = rows.select("value", "cluster").filter(~missing) if missing.any() else rows.select("value", "cluster")
    values, index = scored["value"].to_numpy(), cluster_index(scored["cluster"], draws)
    n_clusters = len(np.unique(index))
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
        again = resampled(values, index, card, draws)
        if alike(values if card.statistic == "median" else again):
            low, high, method, reason = _without_spread(values, n_clusters, card, settings)
        else:
            low, high = percentile_interval(again, settings.level, n_clusters)
            method = f"{percent} cluster bootstrap, {settings.n_resamples} resamples of {n_clusters} clusters"
            method += _caution(values, index, card)
    return {
        **counted,
        **shape,
        "estimate": center(values, card),
        "low": known_or_none(low),
        "high": known_or_none(high),
        "method": method,
        "reason": reason,
        "tie_group": None,
    }


def _without_spread(
    values: npt.NDArray[np.float64], n_clusters: int, card: MetricCard, settings: AggregateSettings
) -> tuple[float, float, str, str | None]:
    """Bounds, method and reason where every resample gives the same estimate, though not every rate is 0 or 1."""
    if card.statistic != "rate":
        return np.nan, np.nan, "no interval", f"no interval: all {n_clusters} clusters have the same value"
    low, high = no_spread_interval(center(values, card), n_clusters, 0.0, 1.0, settings.level)
    method = f"{100 * settings.level:g} % Wilson bound over {n_clusters} clusters, since all have the same rate"
    return low, high, method, None


def _caution(values: npt.NDArray[np.float64], index: npt.NDArray[np.int64], card: MetricCard) -> str:
    """What an interval cannot promise: docs/statistics.md has the simulations behind both limits."""
    n_clusters = len(np.unique(index))
    if n_clusters < FEW_CLUSTERS:
        return f"; {n_clusters} clusters are few: its true level may be lower"
    if card.statistic == "rate":
        rarer = 1.0 if values.mean() <= 0.5 else 0.0
        held = len(np.unique(index[values == rarer]))
        if held < FEW_CLUSTERS:
            return f"; the rarer outcome is in {held} clusters only: its true level may be lower"
    return ""


def resampled(
    values: npt.NDArray[np.float64], index: npt.NDArray[np.int64], card: MetricCard, draws: Multiplicities
) -> npt.NDArray[np.float64]:
    """The card's statistic on every resample."""
    if bootstrap_statistic(card) == "median":
        return weighted_medians(values, index, draws.counts)
    sums, sizes = (np.bincount(index, part, len(draws.labels))[:, None] for part in (values, None))
    return mean_replicates(sums, sizes, draws)[:, 0]


def _why_none(rows: pl.DataFrame, n_scored: int, card: MetricCard) -> str:
    missing = rows.filter(pl.col("value").is_null())
    reasons = missing.group_by("reason").len().sort(["len", "reason"], descending=[True, False]).to_dicts()
    text = "; ".join(f"{row['reason']} ({row['len']})" for row in reasons[:2])
    if n_scored == 0:
        return text or "no window was measured"
    needed = f"{n_scored} scored, at least {card.minimum_n} needed"
    return f"{needed}; others: {text}" if text else needed
