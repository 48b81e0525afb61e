"""Questions about speech intervals: is it speaking now, when does it begin, for how long (design 5).

Intervals are float64 (k, 2) in seconds, half-open [start, stop), sorted and apart from each other.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

Intervals = npt.NDArray[np.float64]

# Seconds written in decimal do not subtract exactly (0.55 - 0.30 > 0.25): far below one sample at any rate.
_ROUNDING_S: Final = 1e-9
DEFAULT_BRIDGE_S: Final = 0.25
"""Gaps up to this many seconds do not end activity (ours); one setting for all systems and both tracks."""


class IntervalError(ValueError):
    """Intervals are not finite, not sorted, or overlap."""


def checked(intervals_s: npt.ArrayLike) -> Intervals:
    """Intervals as float64 (k, 2); touching neighbours are allowed.

    Raises:
        IntervalError: another shape, not finite, reversed, unsorted or overlapping; names the row.
    """
    intervals = np.asarray(intervals_s, dtype=np.float64)
    if intervals.size == 0:
        return np.empty((0, 2), dtype=np.float64)
    if intervals.ndim != 2 or intervals.shape[1] != 2:
        raise IntervalError(f"intervals have shape {intervals.shape}: give (k, 2) [start, stop) seconds")
    for bad, complaint in (
        (~np.isfinite(intervals).all(axis=1), "is not finite"),
        (intervals[:, 0] >= intervals[:, 1], "does not end after it starts"),
    ):
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise IntervalError(f"interval {row} {intervals[row].tolist()} {complaint}")
    early = np.flatnonzero(intervals[1:, 0] < intervals[:-1, 1])
    if len(early):
        row = int(early[0]) + 1
        raise IntervalError(
            f"interval {row} {intervals[row].tolist()} starts before the one before it ends: sort, merge"
        )
    return intervals


def bridge(intervals_s: npt.ArrayLike, bridge_s: float = DEFAULT_BRIDGE_S) -> Intervals:
    """Join neighbours whose gap is at most ``bridge_s`` seconds. Returns float64 (j, 2), j <= k.

    Raises:
        IntervalError: bad intervals, or a bridge that is negative or not finite.
    """
    intervals = checked(intervals_s)
    if not (np.isfinite(bridge_s) and bridge_s >= 0):
        raise IntervalError(f"bridge_s {bridge_s}: give 0 or more seconds")
    if len(intervals) == 0:
        return intervals
    apart = intervals[1:, 0] - intervals[:-1, 1] > bridge_s + _ROUNDING_S
    starts = intervals[np.concatenate([[True], apart]), 0]
    stops = intervals[np.concatenate([apart, [True]]), 1]
    return np.stack([starts, stops], axis=1)


def active_at(intervals_s: npt.ArrayLike, t_s: float, bridge_s: float = DEFAULT_BRIDGE_S) -> bool:
    """Whether it is speaking at second ``t_s`` after bridging; a start counts, a stop does not."""
    joined = bridge(intervals_s, bridge_s)
    index = int(np.searchsorted(joined[:, 0], t_s, side="right")) - 1
    return index >= 0 and t_s < float(joined[index, 1])


def first_onset(
    intervals_s: npt.ArrayLike, after_s: float, until_s: float, bridge_s: float = DEFAULT_BRIDGE_S
) -> float | None:
    """Second of the first start of bridged activity in (``after_s``, ``until_s``]; None if there is none."""
    starts = bridge(intervals_s, bridge_s)[:, 0]
    inside = starts[(starts > after_s) & (starts <= until_s)]
    return float(inside[0]) if len(inside) else None


def clip_intervals(intervals_s: npt.ArrayLike, start_s: float, stop_s: float) -> Intervals:
    """The parts of the intervals inside [``start_s``, ``stop_s``), not bridged. Returns float64 (j, 2)."""
    clipped = np.clip(checked(intervals_s), start_s, max(start_s, stop_s))
    inside: Intervals = clipped[clipped[:, 1] > clipped[:, 0]]
    return inside


def overlap_s(intervals_s: npt.ArrayLike, start_s: float, stop_s: float) -> float:
    """Seconds of the intervals inside [``start_s``, ``stop_s``), not bridged."""
    return total_s(clip_intervals(intervals_s, start_s, stop_s))


def total_s(intervals_s: npt.ArrayLike) -> float:
    """Seconds inside the intervals, not bridged."""
    intervals = checked(intervals_s)
    return float((intervals[:, 1] - intervals[:, 0]).sum())
