"""Order statistics."""

from math import nan
from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Quartiles(NamedTuple):
    """First quartile, median, third quartile."""

    q1: float
    median: float
    q3: float


def quartiles(values: npt.ArrayLike) -> Quartiles:
    """Quartiles by linear interpolation (Hyndman and Fan's type 7) of the values (n,) that are not NaN; NaN if none."""
    numbers = np.asarray(values, dtype=np.float64)
    known = numbers[~np.isnan(numbers)]
    if len(known) == 0:
        return Quartiles(nan, nan, nan)
    q1, median, q3 = np.quantile(known, [0.25, 0.5, 0.75])
    return Quartiles(float(q1), float(median), float(q3))
