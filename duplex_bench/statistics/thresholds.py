"""A threshold from the data alone."""

from math import nan

import numpy as np
import numpy.typing as npt


def otsu_threshold(values: npt.ArrayLike) -> float:
    """Threshold of largest between-class variance (Otsu 1979), over every cut between distinct values, no bins.

    Args:
        values: (n,), finite.

    Returns:
        Midpoint of the two values around the best cut (the lowest of equal cuts); NaN without two distinct values.

    Raises:
        ValueError: a value is not finite, or another shape.
    """
    ranked = np.sort(np.asarray(values, dtype=np.float64))
    if ranked.ndim != 1 or not np.isfinite(ranked).all():
        raise ValueError("otsu_threshold takes finite values (n,)")
    n = len(ranked)
    cuts = np.flatnonzero(np.diff(ranked) > 0) + 1
    if len(cuts) == 0:
        return nan
    sums = np.cumsum(ranked - ranked.mean())
    below = sums[cuts - 1] / cuts
    above = (sums[-1] - sums[cuts - 1]) / (n - cuts)
    best = cuts[int(np.argmax(cuts * (n - cuts) * (below - above) ** 2))]
    return float((ranked[best - 1] + ranked[best]) / 2)
