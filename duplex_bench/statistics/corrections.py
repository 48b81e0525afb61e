"""Corrections of p-values for many comparisons."""

from math import isnan

import numpy as np
import numpy.typing as npt


def bonferroni(p: float, m: int) -> float:
    """min(1, p m): ``p`` corrected for ``m`` comparisons; NaN stays NaN.

    Raises:
        ValueError: ``p`` outside [0, 1] or ``m`` below 1.
    """
    if m < 1:
        raise ValueError(f"{m} comparisons: give at least 1")
    if isnan(p):
        return p
    if not 0 <= p <= 1:
        raise ValueError(f"p {p} lies outside [0, 1]")
    return min(1.0, p * m)


def holm(ps: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Step-down corrected p-values (Holm 1979), in the order given.

    The i-th smallest of m is multiplied by m - i + 1, then made monotone and cut at 1. NaN marks a comparison
    that was not made: it stays NaN and does not count.

    Args:
        ps: p-values (m,).

    Returns:
        float64 (m,).

    Raises:
        ValueError: a p-value outside [0, 1].
    """
    values = np.asarray(ps, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(values))
    if ((values[known] < 0) | (values[known] > 1)).any():
        raise ValueError("a p-value lies outside [0, 1]")
    corrected = np.full(values.shape, np.nan)
    ascending = known[np.argsort(values[known], kind="stable")]
    stepped = values[ascending] * np.arange(len(ascending), 0, -1)
    corrected[ascending] = np.minimum(1.0, np.maximum.accumulate(stepped))
    return corrected
