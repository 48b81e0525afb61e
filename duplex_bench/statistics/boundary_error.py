"""Intervals that hold sampling error and the error of the labels together."""

import numpy as np
import numpy.typing as npt

from duplex_bench.statistics.bootstrap import DEFAULT_RESAMPLES, mean_replicates, multiplicities, percentile_interval
from duplex_bench.statistics.clusters import Floats
from duplex_bench.statistics.intervals import UNDEFINED, Interval, checked_level


def boundary_interval(
    values: npt.ArrayLike,
    clusters: npt.ArrayLike,
    *,
    rng: np.random.Generator,
    n_resamples: int = DEFAULT_RESAMPLES,
    level: float = 0.95,
) -> Interval:
    """Percentile interval of a mean whose values depend on boundaries that are known with an error.

    Each resample of clusters is scored under one draw of the boundaries, so that the replicates vary by both (a
    bootstrap nested in multiple draws of the labels; Efron 1994, Rubin 1987).

    Args:
        values: (n_draws, n): the value of each item under each draw of its boundaries; NaN where a draw leaves none.
        clusters: label of each item (n,).
        rng: source of the resamples.
        n_resamples: number of resamples; draw d serves every n_draws-th of them.
        level: confidence level.

    Returns:
        The interval, widened for few clusters; NaN bounds with fewer than two clusters.

    Raises:
        ValueError: shapes or level out of range, or no draw.
    """
    checked_level(level)
    drawn, labels = np.asarray(values, dtype=np.float64), np.asarray(clusters)
    if drawn.ndim != 2 or len(drawn) < 1 or drawn.shape[1] != len(labels):
        raise ValueError(f"values {drawn.shape} and clusters {labels.shape}: give one row a draw, one column an item")
    draws = multiplicities(labels, rng, n_resamples)
    k = len(draws.labels)
    if k < 2:
        return UNDEFINED
    index = draws.index(labels)
    held = ~np.isnan(drawn)
    sums, sizes = (
        np.column_stack([np.bincount(index, part, k) for part in parts])
        for parts in (np.where(held, drawn, 0.0), held.astype(np.float64))
    )
    means: Floats = mean_replicates(sums, sizes, draws)
    rows = np.arange(n_resamples)
    return percentile_interval(means[rows, rows % len(drawn)], level, k)
