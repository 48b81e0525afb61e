"""Medians of one set of values under many sets of whole-number weights, without sorting each resample."""

from math import ceil, sqrt

import numpy as np
import numpy.typing as npt

from duplex_bench.statistics.clusters import Floats


def weighted_medians(values: Floats, index: npt.NDArray[np.int64], counts: Floats) -> Floats:
    """Median of ``values`` with each repeated as often as its cluster was drawn.

    The values are sorted once and cut into blocks; one matrix product gives the weight of each block in each
    resample, and only the block that holds the middle is looked into.

    Args:
        values: (n,), finite.
        index: cluster of each value (n,), a column of ``counts``.
        counts: whole-number weights (n_resamples, n_clusters).

    Returns:
        float64 (n_resamples,): mean of the two middle values for even totals; NaN where the total is 0.
    """
    n_resamples, n_clusters = counts.shape
    n = len(values)
    if n == 0:
        return np.full(n_resamples, np.nan)
    order = np.argsort(values, kind="stable")
    size = ceil(sqrt(n))
    n_blocks = ceil(n / size)
    # Past the end: the largest value again, in an extra cluster that is never drawn.
    ranked = np.full(n_blocks * size, values[order[-1]])
    ranked[:n] = values[order]
    owner = np.full(n_blocks * size, n_clusters)
    owner[:n] = index[order]
    owned = np.zeros((n_clusters + 1, n_blocks))
    np.add.at(owned, (owner, np.repeat(np.arange(n_blocks), size)), 1.0)
    weights = np.hstack([counts, np.zeros((n_resamples, 1))])
    below = np.cumsum(weights @ owned, axis=1)
    total = below[:, -1]
    lower = _at(np.floor((total - 1) / 2), below, weights, ranked, owner, size)
    upper = _at(np.floor(total / 2), below, weights, ranked, owner, size)
    return np.where(total > 0, (lower + upper) / 2, np.nan)


def _at(
    position: Floats, below: Floats, weights: Floats, ranked: Floats, owner: npt.NDArray[np.int64], size: int
) -> Floats:
    """The value at 0-based ``position`` of each resample's sorted values."""
    rows = np.arange(len(below))
    block = (below > position[:, None]).argmax(axis=1)
    before = np.where(block > 0, below[rows, block - 1], 0.0)
    places = block[:, None] * size + np.arange(size)
    inside = before[:, None] + np.cumsum(weights[rows[:, None], owner[places]], axis=1)
    chosen: Floats = ranked[places[rows, (inside > position[:, None]).argmax(axis=1)]]
    return chosen
