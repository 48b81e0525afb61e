"""Rankings as groups of systems that the data do not tell apart."""

import numpy as np
import numpy.typing as npt


def tie_groups(
    estimates: npt.ArrayLike, p_values: npt.ArrayLike, *, alpha: float = 0.05, higher_is_better: bool = True
) -> list[int | None]:
    """Group number of each system, 1 for the best.

    From the best down, a system shares the group of the group's best if the two are not told apart, else it opens
    the next group. So a group's members are tied with its leader, not always with one another.

    Args:
        estimates: (k,); NaN for a system without an estimate.
        p_values: pairwise p-values (k, k), corrected as the caller wishes, told apart below ``alpha``; or bool
            (k, k), True where the two are not told apart. NaN means that no test was possible: not told apart.
        alpha: level of the test.
        higher_is_better: False where small estimates are good.

    Returns:
        One number for each system; None without an estimate.

    Raises:
        ValueError: shapes do not fit.
    """
    values = np.asarray(estimates, dtype=np.float64)
    matrix = np.asarray(p_values)
    if values.ndim != 1 or matrix.shape != (len(values), len(values)):
        raise ValueError(f"{values.shape} estimates need p-values ({len(values)}, {len(values)}), got {matrix.shape}")
    tied = matrix if matrix.dtype == np.bool_ else ~(matrix.astype(np.float64) < alpha)
    groups: list[int | None] = [None] * len(values)
    ranked = np.argsort(-values if higher_is_better else values, kind="stable")
    leader, number = -1, 0
    for system in (int(place) for place in ranked if not np.isnan(values[place])):
        if leader < 0 or not tied[leader, system]:
            leader, number = system, number + 1
        groups[system] = number
    return groups
