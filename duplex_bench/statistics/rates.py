"""Intervals of rates and of their differences that stay honest where no cluster differs from another."""

import numpy as np
import numpy.typing as npt

from duplex_bench.statistics.bootstrap import (
    DEFAULT_RESAMPLES,
    Multiplicities,
    cluster_bootstrap,
    paired_cluster_bootstrap,
)
from duplex_bench.statistics.clusters import present
from duplex_bench.statistics.intervals import Interval, alike, no_spread_interval


def rate_interval(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = 0.95,
) -> Interval:
    """Cluster bootstrap of a rate, widened for few clusters; ``no_spread_interval`` where all clusters are alike.

    Args:
        values: 0 to 1 (n,), NaN for missing.
        clusters: label of each (n,).
        rng: source of the draws.
        n_resamples: number of resamples.
        level: confidence level.

    Returns:
        The interval; NaN bounds with fewer than two clusters that hold a value.

    Raises:
        ValueError: shapes, level or counts out of range.
    """
    found = cluster_bootstrap(
        values, clusters, "mean", rng=rng, n_resamples=n_resamples, level=level, few_clusters=True
    )
    return _wide_enough(found, values, clusters, 0.0, level)


def rate_difference_interval(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator | None = None,
    draws: Multiplicities | None = None,
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = 0.95,
) -> Interval:
    """Paired cluster bootstrap of rate(a) - rate(b), as ``rate_interval``; arguments as ``paired_cluster_bootstrap``.

    Raises:
        ValueError: shapes differ, level or counts out of range, or neither ``rng`` nor ``draws``.
    """
    found = paired_cluster_bootstrap(
        a, b, clusters, "mean", rng=rng, draws=draws, n_resamples=n_resamples, level=level, few_clusters=True
    )
    differences = np.asarray(a, dtype=np.float64) - np.asarray(b, dtype=np.float64)
    return _wide_enough(found, differences, clusters, -1.0, level)


def _wide_enough(
    found: Interval, values: npt.ArrayLike, clusters: npt.ArrayLike, least: float, level: float
) -> Interval:
    if np.isnan(found.low) or not alike(np.array(found)):
        return found
    rows, labels = present(values, clusters)
    return no_spread_interval(float(rows.mean()), len(np.unique(labels)), least, 1.0, level)
