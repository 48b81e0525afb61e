"""How small a difference the data could have shown."""

from math import nan, sqrt

from scipy.stats import t

from duplex_bench.statistics.intervals import checked_level


def minimum_detectable_difference(n_clusters: int, sd: float, power: float = 0.8, level: float = 0.95) -> float:
    """Smallest mean paired difference that a two-sided test at 1 - ``level`` finds with chance ``power``.

    (t_{1 - alpha/2} + t_{power}) sd / sqrt(n) with n - 1 degrees of freedom: the usual approximation to the
    noncentral t (Cohen 1988, 2.3).

    Args:
        n_clusters: clusters that hold a difference; below 2 gives NaN.
        sd: standard deviation of the clusters' mean differences, in the difference's unit.
        power: chance of finding it.
        level: confidence level of the test.

    Raises:
        ValueError: a share out of range or a negative ``sd``.
    """
    checked_level(level)
    if not 0 < power < 1:
        raise ValueError(f"power {power}: give a share between 0 and 1")
    if sd < 0:
        raise ValueError(f"sd {sd}: a standard deviation is 0 or more")
    if n_clusters < 2:
        return nan
    freedom = n_clusters - 1
    return float((t.ppf(0.5 + level / 2, freedom) + t.ppf(power, freedom)) * sd / sqrt(n_clusters))
