"""Scores on the windows that people accepted, beside those on all (ours: the paper's check had no log)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from duplex_bench.review.agreement import window_status
from duplex_bench.review.judgements import WindowCheck


class PointScore(NamedTuple):
    """One system's value of one metric at one point, and how such values are summed up."""

    point_id: str
    system: str
    condition: str
    metric: str
    statistic: Literal["rate", "mean", "median"]
    value: float


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """One system's metric over all its scored points, and over those that two people accepted and nobody rejected.

    ``n_open`` points have fewer than two verdicts, ``n_split`` some for and some against. Without an accepted point
    the estimate on accepted ones is None.
    """

    system: str
    condition: str
    metric: str
    n_all: int
    estimate_all: float
    n_accepted: int
    estimate_accepted: float | None
    difference: float | None
    n_rejected: int
    n_split: int
    n_open: int


def accepted_rows(checks: Sequence[WindowCheck], scores: Sequence[PointScore]) -> list[AcceptedRow]:
    """One row a system, condition and metric, sorted; none where nobody has checked a window yet."""
    if not checks:
        return []
    by_point: dict[str, list[WindowCheck]] = {}
    for check in checks:
        by_point.setdefault(check.point_id, []).append(check)
    status = {
        point_id: window_status(by_point.get(point_id, ()), point_id)
        for point_id in {score.point_id for score in scores}
    }
    groups: dict[tuple[str, str, str], list[PointScore]] = {}
    for score in scores:
        groups.setdefault((score.condition, score.metric, score.system), []).append(score)
    return [_row(mine, status) for _, mine in sorted(groups.items())]


def _row(mine: Sequence[PointScore], status: dict[str, str]) -> AcceptedRow:
    first = mine[0]
    kept = [score.value for score in mine if status[score.point_id] == "accepted"]
    every = _center([score.value for score in mine], first.statistic)
    accepted = _center(kept, first.statistic) if kept else None
    counts = {name: sum(status[score.point_id] == name for score in mine) for name in ("rejected", "split", "open")}
    return AcceptedRow(
        first.system, first.condition, first.metric, len(mine), every, len(kept), accepted,
        None if accepted is None else accepted - every, counts["rejected"], counts["split"], counts["open"],
    )  # fmt: skip


def _center(values: Sequence[float], statistic: Literal["rate", "mean", "median"]) -> float:
    return float(np.median(values) if statistic == "median" else np.mean(values))
