"""Percentile bootstrap that resamples whole clusters (conversations, scenarios).

A resample draws as many clusters as there are, with replacement; what matters of it is how often each cluster was
drawn. These multiplicities, (n_resamples, n_clusters), turn means and ratios into one matrix product and medians
into weighted medians. One matrix serves every system and metric, which also pairs their replicates.
(Efron and Tibshirani 1993, chapters 8 and 13; Cameron, Gelbach and Miller 2008 for clusters; docs/statistics.md has
the coverage.)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

from duplex_bench.statistics.clusters import Floats, present
from duplex_bench.statistics.intervals import UNDEFINED, Interval, checked_level
from duplex_bench.statistics.weighted_median import weighted_medians

Statistic = Literal["mean", "median", "ratio"] | Callable[[Floats], float]

DEFAULT_RESAMPLES: Final = 2000


@dataclass(frozen=True, slots=True)
class Multiplicities:
    """How often each cluster was drawn. ``labels`` (k,) sorted; ``counts`` float64 (n_resamples, k), whole numbers."""

    labels: npt.NDArray[Any]
    counts: Floats

    def index(self, clusters: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Position of each of ``clusters`` among ``labels``; raises ValueError for one that was not drawn from."""
        wanted = np.asarray(clusters)
        place = np.minimum(np.searchsorted(self.labels, wanted), max(len(self.labels) - 1, 0))
        if len(wanted) and (len(self.labels) == 0 or (self.labels[place] != wanted).any()):
            raise ValueError("a row's cluster is not among those resampled: draw multiplicities from all clusters")
        return place.astype(np.int64)


def multiplicities(
    clusters: npt.ArrayLike, rng: np.random.Generator, n_resamples: int = DEFAULT_RESAMPLES
) -> Multiplicities:
    """Draws for the distinct labels in ``clusters``, to share between systems and metrics.

    Raises:
        ValueError: fewer than one resample.
    """
    if n_resamples < 1:
        raise ValueError(f"n_resamples {n_resamples}: give at least 1")
    labels = np.unique(np.asarray(clusters))
    k = len(labels)
    counts = rng.multinomial(k, np.full(k, 1 / k), size=n_resamples) if k else np.zeros((n_resamples, 0))
    return Multiplicities(labels, counts.astype(np.float64))


def drawn_or_given(
    labels: npt.ArrayLike, rng: np.random.Generator | None, draws: Multiplicities | None, n_resamples: int
) -> Multiplicities:
    """``draws``, or new ones for ``labels``.

    Raises:
        ValueError: neither ``draws`` nor ``rng`` is given.
    """
    if draws is not None:
        return draws
    if rng is None:
        raise ValueError("give rng, or draws that were made before")
    return multiplicities(labels, rng, n_resamples)


def replicates(values: npt.ArrayLike, clusters: npt.ArrayLike, statistic: Statistic, draws: Multiplicities) -> Floats:
    """The statistic on every resample: float64 (n_resamples,), NaN where a resample holds no value.

    Args:
        values: (n,), NaN for missing; for "ratio" (n, 2): numerators and denominators, sum over sum.
        clusters: label of each row (n,).
        statistic: "mean", "median", "ratio", or a function of the resampled values (m,) or (m, 2) to a number.
        draws: multiplicities of at least these clusters.

    Raises:
        ValueError: shapes do not fit, an infinite value, or an unknown statistic.
    """
    rows, labels = present(values, clusters)
    index = draws.index(labels)
    if rows.ndim != (2 if statistic == "ratio" else rows.ndim if callable(statistic) else 1):
        raise ValueError(f"values of shape {rows.shape} do not fit statistic {statistic!r}")
    k = len(draws.labels)
    if statistic in ("mean", "ratio"):
        # One product for numerator and denominator: reading the counts is most of the cost.
        sums = (rows, None) if statistic == "mean" else rows.T
        upper, lower = (np.bincount(index, column, k)[:, None] for column in sums)
        return mean_replicates(upper, lower, draws)[:, 0]
    if statistic == "median":
        return weighted_medians(rows, index, draws.counts)
    if not callable(statistic):
        raise ValueError(f"statistic {statistic!r}: give mean, median, ratio or a function")
    times = draws.counts.astype(np.int64)
    samples = (np.repeat(rows, drawn[index], axis=0) for drawn in times)
    return np.array([statistic(sample) if len(sample) else np.nan for sample in samples], dtype=np.float64)


def mean_replicates(sums: npt.ArrayLike, sizes: npt.ArrayLike, draws: Multiplicities) -> Floats:
    """Means of many sets of values on every resample, by one matrix product.

    Args:
        sums: sum of the values in each cluster (k, m), a column for each set, rows in the order of ``draws.labels``.
        sizes: number of values in each (k, m); for a ratio the sum of its denominators.
        draws: multiplicities of these k clusters.

    Returns:
        float64 (n_resamples, m); NaN where a resample holds no value of a set.

    Raises:
        ValueError: shapes do not fit.
    """
    upper, lower = np.asarray(sums, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    if upper.ndim != 2 or upper.shape != lower.shape or len(upper) != len(draws.labels):
        raise ValueError(f"sums {upper.shape} and sizes {lower.shape} do not fit {len(draws.labels)} clusters")
    both = draws.counts @ np.hstack([upper, lower])
    m = upper.shape[1]
    return _divide(both[:, :m], both[:, m:])


def percentile_intervals(
    estimates: Floats, level: float = 0.95, n_clusters: Sequence[int] | None = None
) -> list[Interval]:
    """``percentile_interval`` of each column of (n_resamples, m), with the number of clusters of each."""
    tails = [_tail(level, None if n_clusters is None else n_clusters[place]) for place in range(estimates.shape[1])]
    if np.isnan(estimates).any() or len(set(tails)) > 1:
        return [_central(column, tail) for column, tail in zip(estimates.T, tails, strict=True)]
    if not tails:
        return []
    bounds = np.quantile(estimates, [tails[0], 1 - tails[0]], axis=0)
    return [Interval(float(low), float(high)) for low, high in bounds.T]


def percentile_interval(estimates: Floats, level: float = 0.95, n_clusters: int | None = None) -> Interval:
    """Central interval of replicates, of those that are defined; NaN bounds if none is.

    Args:
        estimates: float64 (n_resamples,).
        level: confidence level.
        n_clusters: where given, the tails are made smaller to Phi(-t sqrt(k / (k - 1))), t the quantile of Student's
            t with k - 1 degrees of freedom: with few clusters plain percentiles are too narrow, by the factor
            sqrt((k - 1) / k) and by taking the normal quantile for t (Hesterberg 2015, "expanded percentile").
    """
    return _central(estimates, _tail(level, n_clusters))


def _tail(level: float, n_clusters: int | None) -> float:
    """Share of the replicates below the interval."""
    tail = (1 - checked_level(level)) / 2
    if n_clusters is None or n_clusters < 2:
        return tail
    return float(ndtr(stdtrit(n_clusters - 1, tail) * sqrt(n_clusters / (n_clusters - 1))))


def _central(estimates: Floats, tail: float) -> Interval:
    known = estimates[~np.isnan(estimates)]
    if len(known) == 0:
        return UNDEFINED
    low, high = np.quantile(known, [tail, 1 - tail])
    return Interval(float(low), float(high))


def cluster_bootstrap(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    statistic: Statistic,
    *,
    rng: np.random.Generator,
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = 0.95,
    few_clusters: bool = False,
) -> Interval:
    """Percentile interval of a statistic under resampling of whole clusters.

    Where every cluster has the same value the interval is a point: that says that the sample does not vary, not
    that the truth is known; a report should show ``wilson_interval`` beside it.

    Args:
        values: (n,), NaN for missing; for "ratio" (n, 2): numerators and denominators, sum over sum.
        clusters: label of each row (n,).
        statistic: "mean", "median", "ratio", or a function of the resampled values to a number.
        rng: source of the draws.
        n_resamples: number of resamples.
        level: confidence level.
        few_clusters: widen for the number of clusters, see ``percentile_interval``.

    Returns:
        The interval; NaN bounds with fewer than two clusters that hold a value.

    Raises:
        ValueError: shapes, level or counts out of range.
    """
    checked_level(level)
    rows, labels = present(values, clusters)
    draws = multiplicities(labels, rng, n_resamples)
    if len(draws.labels) < 2:
        return UNDEFINED
    again = replicates(rows, labels, statistic, draws)
    return percentile_interval(again, level, len(draws.labels) if few_clusters else None)


def paired_cluster_bootstrap(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: npt.ArrayLike,
    statistic: Statistic = "mean",
    *,
    rng: np.random.Generator | None = None,
    draws: Multiplicities | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = 0.95,
    few_clusters: bool = False,
) -> Interval:
    """Percentile interval of statistic(a) - statistic(b), both on the same resample of clusters.

    Only rows that have both values count, so that the two sides are the same items.

    Args:
        a: (n,) or, for "ratio", (n, 2); NaN for missing.
        b: the same shape, row by row the same items.
        clusters: label of each row (n,).
        statistic: as in ``cluster_bootstrap``.
        rng: source of the draws; not needed with ``draws``.
        draws: multiplicities of at least these clusters, to share between comparisons.
        n_resamples: number of resamples, without ``draws``.
        level: confidence level.
        few_clusters: widen for the number of clusters, see ``percentile_interval``.

    Returns:
        The interval; NaN bounds with fewer than two clusters in common.

    Raises:
        ValueError: shapes differ, level or counts out of range, or neither ``rng`` nor ``draws``.
    """
    checked_level(level)
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.shape != right.shape:
        raise ValueError(f"a {left.shape} and b {right.shape} are not the same items")
    width = 1 if left.ndim == 1 else left.shape[1]
    rows, labels = present(np.hstack([left.reshape(-1, width), right.reshape(-1, width)]), clusters)
    draws = drawn_or_given(labels, rng, draws, n_resamples)
    k = len(np.unique(labels))
    if k < 2:
        return UNDEFINED
    sides = (rows[:, :width], rows[:, width:]) if left.ndim == 2 else (rows[:, 0], rows[:, 1])
    ours, theirs = (replicates(side, labels, statistic, draws) for side in sides)
    return percentile_interval(ours - theirs, level, k if few_clusters else None)


def _divide(upper: Floats, lower: Floats) -> Floats:
    quotient: Floats = np.divide(upper, lower, out=np.full(upper.shape, np.nan), where=lower != 0)
    return quotient
