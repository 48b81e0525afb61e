"""Tests of two systems on the same items: exact McNemar, equivalence. Clustered sign flips: ``sign_flips``."""

from math import nan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import bdtr

from duplex_bench.statistics.bootstrap import (
    DEFAULT_RESAMPLES,
    Multiplicities,
    drawn_or_given,
    percentile_interval,
    replicates,
)
from duplex_bench.statistics.clusters import present
from duplex_bench.statistics.intervals import UNDEFINED, Interval


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
    rng: np.random.Generator | None = None,
    draws: Multiplicities | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
    alpha: float = 0.05,
) -> Equivalence:
    """Two one-sided tests (Schuirmann 1987) by cluster bootstrap: is the mean difference within +-``margin``?

    Equivalent if the 1 - 2 alpha percentile interval, widened for few clusters, lies strictly inside the margin.

    Args:
        differences: a - b by item (n,); NaN where either is missing.
        clusters: label of each item (n,).
        margin: the largest difference that would not matter, in the differences' unit, above 0.
        rng: source of the draws; not needed with ``draws``.
        draws: multiplicities of at least these clusters, to share between tests.
        n_resamples: number of resamples, without ``draws``.
        alpha: size of each one-sided test.

    Raises:
        ValueError: margin or alpha out of range, shapes do not fit, or neither ``rng`` nor ``draws``.
    """
    if not margin > 0:
        raise ValueError(f"margin {margin}: give the largest difference that would not matter, above 0")
    if not 0 < alpha < 0.5:
        raise ValueError(f"alpha {alpha}: give a share between 0 and 0.5")
    rows, labels = present(differences, clusters)
    draws = drawn_or_given(labels, rng, draws, n_resamples)
    k = len(np.unique(labels))
    if k < 2:
        return Equivalence(nan, UNDEFINED, nan, margin, None)
    means = replicates(rows, labels, "mean", draws)
    interval = percentile_interval(means, 1 - 2 * alpha, k)
    means = means[~np.isnan(means)]
    beyond = max(int((means <= -margin).sum()), int((means >= margin).sum()))
    inside = -margin < interval.low and interval.high < margin
    return Equivalence(float(rows.mean()), interval, (1 + beyond) / (1 + len(means)), margin, inside)
