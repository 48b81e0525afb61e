"""Intervals for proportions, and the pair that every interval is returned as."""

from math import nan, sqrt
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri


class Interval(NamedTuple):
    """Lower and upper bound; both NaN where no interval can be given."""

    low: float
    high: float


UNDEFINED = Interval(nan, nan)
# Values are rates, seconds and ratios: what differs by less was rounded otherwise, and is the same.
SAME: Final = 1e-9


def checked_level(level: float) -> float:
    """``level`` if it is a confidence level; raises ValueError otherwise."""
    if not 0 < level < 1:
        raise ValueError(f"level {level}: give a share between 0 and 1, such as 0.95")
    return level


def wilson_interval(k: int, n: int, level: float = 0.95) -> Interval:
    """Score interval of a proportion (Wilson 1927): p such that |k/n - p| <= z sqrt(p(1-p)/n).

    For independent trials; windows of one conversation are not, use ``cluster_bootstrap`` for them.

    Args:
        k: successes, 0 to n.
        n: trials; 0 gives NaN bounds.
        level: confidence level.

    Raises:
        ValueError: counts or level out of range.
    """
    checked_level(level)
    if n < 0 or not 0 <= k <= n:
        raise ValueError(f"{k} successes of {n} trials: give 0 <= k <= n")
    if n == 0:
        return UNDEFINED
    z = float(ndtri(0.5 + level / 2))
    share = k / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return Interval(0.0 if k == 0 else centre - half, 1.0 if k == n else centre + half)


def no_spread_interval(value: float, n_clusters: int, least: float, most: float, level: float = 0.95) -> Interval:
    """Interval of a bounded mean that is the same in every cluster, which resampling would call certain.

    Other clusters may have another value: their share is at most Wilson's upper bound w for 0 of ``n_clusters``, and
    their value anything the bounds allow, so [value - w (value - least), value + w (most - value)]. For a rate of 0 or
    1 this is Wilson's interval over clusters (ours, from Wilson 1927).

    Args:
        value: the mean of every cluster, ``least`` to ``most``.
        n_clusters: clusters seen; 0 gives NaN bounds.
        least: smallest mean there can be.
        most: largest.
        level: confidence level.

    Raises:
        ValueError: ``value`` outside the bounds, or counts or level out of range.
    """
    if not least - SAME <= value <= most + SAME:
        raise ValueError(f"value {value} is not within {least} to {most}")
    value = min(max(value, least), most)
    share = wilson_interval(0, n_clusters, level).high
    return Interval(value - share * (value - least), value + share * (most - value))


def alike(numbers: npt.NDArray[np.float64]) -> bool:
    """Whether numbers (n,) are one number but for rounding; NaN are passed over."""
    known = numbers[~np.isnan(numbers)]
    return len(known) == 0 or float(np.ptp(known)) <= SAME
