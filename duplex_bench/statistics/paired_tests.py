"""Tests of two systems on the same items: exact McNemar, clustered sign flips, equivalence."""

from math import nan
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from duplex_bench.statistics.bootstrap import DEFAULT_RESAMPLES, multiplicities, percentile_interval, replicates
from duplex_bench.statistics.clusters import cluster_sums, present
from duplex_bench.statistics.intervals import UNDEFINED, Interval

# Up to this many clusters all sign patterns are enumerated: 16,384 of them.
_ENUMERATED_CLUSTERS: Final = 14
# Sums of the same numbers in another order differ in the last bits; they are ties all the same.
_TIE: Final = 1e-12


def mcnemar_exact(only_a: int, only_b: int) -> float:
    """Two-sided exact McNemar test: twice the binomial tail of the smaller count at one half, at most 1.

    Args:
        only_a: items on which a passed and b did not.
        only_b: items on which b passed and a did not.

    Returns:
        The p-value; 1.0 without discordant items, which are no evidence either way.

    Raises:
        ValueError: a count is negative or not whole.
    """
    if only_a != int(only_a) or only_b != int(only_b) or min(only_a, only_b) < 0:
        raise ValueError(f"discordant counts {only_a} and {only_b}: give whole numbers, 0 or more")
    n = int(only_a) + int(only_b)
    if n == 0:
        return 1.0
    return min(1.0, 2 * float(bdtr(min(int(only_a), int(only_b)), n, 0.5)))


def sign_flip_test(
    differences: npt.ArrayLike, clusters: npt.ArrayLike, *, rng: np.random.Generator, n_permutations: int = 10_000
) -> float:
    """Two-sided permutation test of a mean difference of zero, flipping the sign of whole clusters.

    Up to 14 clusters every pattern is taken; beyond, ``n_permutations`` random ones, with the observed one counted
    in: p = (1 + hits) / (1 + n) (Phipson and Smyth 2010).

    Args:
        differences: a - b by item (n,); NaN where either is missing.
        clusters: label of each item (n,).
        rng: source of the flips.
        n_permutations: random patterns beyond 14 clusters.

    Returns:
        The p-value; NaN without a difference that is present.

    Raises:
        ValueError: shapes do not fit, or fewer than one permutation.
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations {n_permutations}: give at least 1")
    sums, _ = cluster_sums(differences, clusters)
    k = len(sums)
    if k == 0:
        return nan
    least = abs(float(sums.sum())) - _TIE * float(np.abs(sums).sum())
    if k <= _ENUMERATED_CLUSTERS:
        bits = (np.arange(2**k)[:, None] >> np.arange(k)) & 1
        return float((np.abs((1.0 - 2.0 * bits) @ sums) >= least).mean())
    flips = 1.0 - 2.0 * rng.integers(0, 2, size=(n_permutations, k))
    hits = int((np.abs(flips @ sums) >= least).sum())
    return (1 + hits) / (1 + n_permutations)


class Equivalence(NamedTuple):
    """Outcome of an equivalence test. ``equivalent`` is None, and the numbers NaN, below two clusters.

    ``interval`` has level 1 - 2 alpha; ``p`` is the larger of the two one-sided bootstrap p-values.
    """

    difference: float
    interval: Interval
    p: float
    margin: float
    equivalent: bool | None


def equivalence_test(
    differences: npt.ArrayLike,
    clusters: npt.ArrayLike,
    margin: float,
    *,
    rng: np.random.Generator,
    n_resamples: int = DEFAULT_RESAMPLES,
    alpha: float = 0.05,
) -> Equivalence:
    """Two one-sided tests (Schuirmann 1987) by cluster bootstrap: is the mean difference within +-``margin``?

    Equivalent if the 1 - 2 alpha percentile interval lies strictly inside the margin.

    Args:
        differences: a - b by item (n,); NaN where either is missing.
        clusters: label of each item (n,).
        margin: the largest difference that would not matter, in the differences' unit, above 0.
        rng: source of the draws.
        n_resamples: number of resamples.
        alpha: size of each one-sided test.

    Raises:
        ValueError: margin or alpha out of range, or shapes do not fit.
    """
    if not margin > 0:
        raise ValueError(f"margin {margin}: give the largest difference that would not matter, above 0")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha {alpha}: give a share between 0 and 0.5")
    rows, labels = present(differences, clusters)
    draws = multiplicities(labels, rng, n_resamples)
    if len(draws.labels) < 2:
        return Equivalence(nan, UNDEFINED, nan, margin, None)
    means = replicates(rows, labels, "mean", draws)
    interval = percentile_interval(means, 1 - 2 * alpha)
    beyond = max(int((means <= -margin).sum()), int((means >= margin).sum()))
    inside = -margin < interval.low and interval.high < margin
    return Equivalence(float(rows.mean()), interval, (1 + beyond) / (1 + n_resamples), margin, inside)
