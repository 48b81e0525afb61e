"""How much of a metric's variance lies between items and how much between runs of one item."""

from math import nan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duplex_bench.statistics.clusters import present


class VarianceComponents(NamedTuple):
    """Variances in the value's unit squared. NaN: ``run`` without repeats, ``item`` without two items and repeats."""

    item: float
    run: float
    n_items: int
    n_values: int


def variance_components(values: npt.ArrayLike, items: npt.ArrayLike) -> VarianceComponents:
    """One-way random effects by analysis of variance, unequal repeats allowed (Searle, Casella, McCulloch 1992, 3.6).

    run = MSW; item = (MSB - MSW) / n0 with n0 = (N - sum n_i^2 / N) / (a - 1), at least 0.

    Args:
        values: one per run (n,); NaN for missing.
        items: item of each run (n,).

    Raises:
        ValueError: lengths differ.
    """
    numbers, labels = present(values, items)
    names, index = np.unique(labels, return_inverse=True)
    n, a = len(numbers), len(names)
    if n == a:
        return VarianceComponents(nan, nan, a, n)
    sizes = np.bincount(index, minlength=a)
    means = np.bincount(index, numbers, a) / sizes
    within = float(np.square(numbers - means[index]).sum()) / (n - a)
    if a < 2:
        return VarianceComponents(nan, within, a, n)
    between = float((sizes * np.square(means - numbers.mean())).sum()) / (a - 1)
    effective = (n - float(np.square(sizes).sum()) / n) / (a - 1)
    return VarianceComponents(max(0.0, (between - within) / effective), within, a, n)
