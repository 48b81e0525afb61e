"""Permutation test of a mean difference that flips the sign of whole clusters, one test or many at once."""

from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.statistics.clusters import Floats, cluster_sums

DEFAULT_PERMUTATIONS: Final = 10_000
# Up to this many clusters all sign patterns are enumerated: 16,384 of them.
_ENUMERATED_CLUSTERS: Final = 14
# Sums of the same numbers in another order differ in the last bits; they are ties all the same.
_TIE: Final = 1e-12
# Signs held at a time, as float64.
_BLOCK: Final = 2_000_000


def sign_flip_test(
    differences: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_permutations: int = DEFAULT_PERMUTATIONS,
) -> float:
    """Two-sided permutation test of a mean difference of zero, flipping the sign of whole clusters.

    Args:
        differences: a - b by item (n,); NaN where either is missing.
        clusters: label of each item (n,).
        rng: source of the flips.
        n_permutations: random patterns beyond 14 clusters that differ.

    Returns:
        The p-value; NaN without a difference that is present.

    Raises:
        ValueError: shapes do not fit, or fewer than one permutation.
    """
    sums, _ = cluster_sums(differences, clusters)
    sizes, _ = cluster_sums(np.abs(np.asarray(differences, dtype=np.float64)), clusters)
    # Differences that cancel leave the rounding of their sum, which is no difference.
    sums[np.abs(sums) <= _TIE * sizes] = 0.0
    return float(sign_flip_tests(sums[:, None], rng=rng, n_permutations=n_permutations)[0])


def sign_flip_tests(
    sums: npt.ArrayLike, *, rng: np.random.Generator, n_permutations: int = DEFAULT_PERMUTATIONS
) -> Floats:
    """``sign_flip_test`` of many comparisons on the same clusters: they share their flips, each test is its own.

    A cluster whose differences add up to zero gives the same sum under either sign, so that only the others count:
    up to 14 of them every pattern is taken; beyond, ``n_permutations`` random ones with the observed one counted in,
    p = (1 + hits) / (1 + n) (Phipson and Smyth 2010).

    Args:
        sums: sum of the differences in each cluster (k, m), a column for each comparison; NaN where a cluster has none.
        rng: source of the flips.
        n_permutations: random patterns.

    Returns:
        The p-values (m,); NaN for a column without a sum that is present.

    Raises:
        ValueError: another shape, or fewer than one permutation.
    """
    if n_permutations < 1:
        raise ValueError(f"n_permutations {n_permutations}: give at least 1")
    given = np.asarray(sums, dtype=np.float64)
    if given.ndim != 2:
        raise ValueError(f"sums of shape {given.shape}: give one row for each cluster, one column for each comparison")
    known = ~np.isnan(given).all(axis=0)
    totals = np.nan_to_num(given, nan=0.0)
    moving = (totals != 0).sum(axis=0)
    found = np.full(totals.shape[1], np.nan)
    for column in np.flatnonzero(known & (moving <= _ENUMERATED_CLUSTERS)):
        found[column] = _enumerated(totals[totals[:, column] != 0, column])
    many = np.flatnonzero(known & (moving > _ENUMERATED_CLUSTERS))
    if len(many):
        chosen = totals[:, many]
        hits = _random_hits(chosen[(chosen != 0).any(axis=1)], rng, n_permutations)
        found[many] = (1 + hits) / (1 + n_permutations)
    return found


def _least(totals: Floats) -> Floats:
    least: Floats = np.abs(totals.sum(axis=0)) - _TIE * np.abs(totals).sum(axis=0)
    return least


def _enumerated(totals: Floats) -> float:
    bits = (np.arange(2 ** len(totals))[:, None] >> np.arange(len(totals))) & 1
    return float((np.abs((1.0 - 2.0 * bits) @ totals) >= _least(totals)).mean())


def _random_hits(totals: Floats, rng: np.random.Generator, n_permutations: int) -> npt.NDArray[np.int64]:
    """How many random sign patterns give each column a sum as far from zero as the observed one."""
    k = len(totals)
    least = _least(totals)
    hits = np.zeros(totals.shape[1], dtype=np.int64)
    whole = totals.sum(axis=0)
    rows = max(1, _BLOCK // k)
    for start in range(0, n_permutations, rows):
        n = min(rows, n_permutations - start)
        bits = np.unpackbits(np.frombuffer(rng.bytes(n * ((k + 7) // 8)), dtype=np.uint8).reshape(n, -1), axis=1)
        # A sign is 1 - 2 bit: the sum under flips is the whole less twice what is flipped.
        flipped = bits[:, :k].astype(np.float64) @ totals
        hits += (np.abs(whole - 2.0 * flipped) >= least).sum(axis=0)
    return hits
