"""Agreement between two judges, or a judge and a person, on the same questions."""

from collections.abc import Mapping
from math import nan
from typing import NamedTuple

from duplex_bench.statistics import Interval, cohen_kappa, wilson_interval


class Agreement(NamedTuple):
    """How far two judges agree. ``share`` and ``kappa`` rest on the ``n_both`` questions that both decided.

    Questions that only one decided, or neither, are counted apart: they are no disagreement.
    """

    share: float
    share_interval: Interval
    kappa: float
    n_both: int
    n_only_a: int
    n_only_b: int
    n_neither: int


def agreement(a: Mapping[str, str | None], b: Mapping[str, str | None]) -> Agreement:
    """Share of equal verdicts with its Wilson interval, and Cohen's kappa.

    Args:
        a: verdict (None: no verdict) by question id.
        b: the same for the other judge; only questions put to both count.

    Returns:
        NaN for share and kappa where no question was decided by both.
    """
    asked = sorted(a.keys() & b.keys())
    both = [(x, y) for x, y in ((a[question], b[question]) for question in asked) if x is not None and y is not None]
    equal = sum(x == y for x, y in both)
    only_a = sum(a[question] is not None and b[question] is None for question in asked)
    only_b = sum(a[question] is None and b[question] is not None for question in asked)
    return Agreement(
        share=equal / len(both) if both else nan,
        share_interval=wilson_interval(equal, len(both)),
        kappa=cohen_kappa([x for x, _ in both], [y for _, y in both]),
        n_both=len(both),
        n_only_a=only_a,
        n_only_b=only_b,
        n_neither=len(asked) - len(both) - only_a - only_b,
    )
