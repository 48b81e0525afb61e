"""Rank correlation, and how well a number separates two classes."""

from math import nan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.stats import rankdata, spearmanr


class Correlation(NamedTuple):
    """Spearman's rho, its two-sided p-value (t approximation), and the number of pairs it rests on."""

    rho: float
    p: float
    n: int


def spearman(x: npt.ArrayLike, y: npt.ArrayLike) -> Correlation:
    """Spearman's rank correlation of pairs (n,), ties at mean rank; pairs with a NaN are left out.

    Returns:
        NaN below three pairs or where a side is constant.

    Raises:
        ValueError: lengths differ.
    """
    left, right = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if left.shape != right.shape or left.ndim != 1:
        raise ValueError(f"x {left.shape} and y {right.shape}: give pairs")
    both = ~(np.isnan(left) | np.isnan(right))
    left, right = left[both], right[both]
    if len(left) < 3 or np.ptp(left) == 0 or np.ptp(right) == 0:
        return Correlation(nan, nan, len(left))
    result = spearmanr(left, right)
    return Correlation(float(result.statistic), float(result.pvalue), len(left))


def auc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> float:
    """Area under the ROC curve: chance that a positive scores above a negative, ties half (Mann and Whitney 1947).

    Args:
        scores: (n,), finite.
        positive: bool (n,).

    Returns:
        0 to 1; NaN if a class is empty.

    Raises:
        ValueError: lengths differ or a score is NaN.
    """
    values, flags = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    if values.shape != flags.shape or values.ndim != 1:
        raise ValueError(f"scores {values.shape} and classes {flags.shape}: give one class for each score")
    if np.isnan(values).any():
        raise ValueError("a score is NaN: leave the row out")
    n_positive = int(flags.sum())
    n_negative = len(flags) - n_positive
    if n_positive == 0 or n_negative == 0:
        return nan
    ranks = rankdata(values)
    return float((ranks[flags].sum() - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
