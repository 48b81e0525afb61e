"""Agreement between two raters."""

from collections import Counter
from collections.abc import Hashable, Sequence
from math import nan


def cohen_kappa(a: Sequence[Hashable], b: Sequence[Hashable]) -> float:
    """Cohen's kappa (1960): (p_o - p_e) / (1 - p_e) over two raters' labels of the same items.

    Returns:
        Kappa; NaN without items, or where both raters use one and the same label throughout (chance agreement 1).

    Raises:
        ValueError: different numbers of labels.
    """
    if len(a) != len(b):
        raise ValueError(f"{len(a)} and {len(b)} labels: both raters label the same items")
    n = len(a)
    if n == 0:
        return nan
    # Counts, not shares, so that chance agreement of exactly 1 is seen as such.
    agreed = sum(x == y for x, y in zip(a, b, strict=True)) * n
    left, right = Counter(a), Counter(b)
    chance = sum(count * right[label] for label, count in left.items())
    return nan if chance == n * n else (agreed - chance) / (n * n - chance)
