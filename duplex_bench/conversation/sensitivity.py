"""How the takeover rate depends on the label's boundaries, the pause's length and the curation ranking (P2 App. E).

Everything is recomputed from stored intervals and word times; no rollout runs again.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from duplex_bench.conversation.measures import MeasureError, Spans, classify_pause
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item

_MINIMUM_N = 10
_TERCILES = ("lowest third", "middle third", "highest third")


@dataclass(frozen=True, slots=True)
class StoredPause:
    """One scored pause rollout: its window and ranking, and what was measured on the listener audio."""

    item_id: str
    cluster: str
    pause_s: tuple[float, float]
    ranking: float
    gate_s: Spans
    word_times_s: Spans


@dataclass(frozen=True, slots=True)
class BoundaryShift:
    """The label moved: seconds added to the start and to the end of every pause."""

    name: str
    start_s: float
    end_s: float


AS_LABELLED = "as labelled"
SHIFTS: tuple[BoundaryShift, ...] = (
    BoundaryShift(AS_LABELLED, 0.0, 0.0),
    BoundaryShift("end -250 ms", 0.0, -0.25),
    BoundaryShift("end +250 ms", 0.0, 0.25),
    BoundaryShift("start +250 ms", 0.25, 0.0),
)
"""The perturbations of P2 table 11."""

LENGTH_EDGES_S: tuple[float, ...] = (0.6, 0.8, 1.0, 1.5, 2.5, math.inf)
"""Bins of pause length, [low, high). P2 names "under 0.8 s" and "over 2.5 s"; the edges between are ours."""


@dataclass(frozen=True, slots=True)
class TakeoverRow:
    """Takeovers in one group of pauses. ``rate`` is None, with the reason, where there are too few.

    ``low`` and ``high`` bound what groups them: seconds of the pause, the ranking, or the two shifts in seconds; None
    where there is no bound.
    ``outcomes`` holds 0.0 or 1.0 for each pause and ``clusters`` its conversation, for intervals.
    """

    analysis: str
    group: str
    low: float | None
    high: float | None
    n: int
    n_takeover: int
    rate: float | None
    reason: str | None
    outcomes: tuple[float, ...]
    clusters: tuple[str, ...]


def stored_pause(item: Item, gate_s: Spans, words: Sequence[TimedWord]) -> StoredPause:
    """A pause item with what was measured on a rollout; words without times are left out.

    Raises:
        MeasureError: the item is not a pause.
    """
    window = item.reference.windows[0]
    if window.kind != "pause":
        raise MeasureError(f"item {item.item_id}: sensitivity is about pauses, not {window.kind}")
    times = [(word.start_s, word.end_s) for word in words if word.start_s is not None and word.end_s is not None]
    ranking = float(item.reference.attributes["ranking"])
    return StoredPause(item.item_id, item.cluster, (window.start_s, window.end_s), ranking, gate_s, times)


def takeover_under_shifts(
    pauses: Sequence[StoredPause], shifts: Sequence[BoundaryShift] = SHIFTS, minimum_n: int = 1
) -> list[TakeoverRow]:
    """Takeover rate with every pause's start and end moved (P2 table 11).

    A pause that a shift leaves without length is out of that row's n.
    """
    rows: list[TakeoverRow] = []
    for shift in shifts:
        moved = [(pause, (pause.pause_s[0] + shift.start_s, pause.pause_s[1] + shift.end_s)) for pause in pauses]
        kept = [(pause, window) for pause, window in moved if window[1] > window[0]]
        rows.append(_row("boundary shift", shift.name, shift.start_s, shift.end_s, kept, minimum_n))
    return rows


def takeover_by_length(
    pauses: Sequence[StoredPause], edges_s: Sequence[float] = LENGTH_EDGES_S, minimum_n: int = _MINIMUM_N
) -> list[TakeoverRow]:
    """Takeover rate by labelled pause length (P2 figure 7: bins hold at least ten rollouts).

    Raises:
        ValueError: edges that do not rise, or a pause outside all of them.
    """
    if len(edges_s) < 2 or any(high <= low for low, high in pairwise(edges_s)):
        raise ValueError(f"edges_s {tuple(edges_s)}: give at least two, each above the one before")

    # Window edges lie on samples, so a pause of 0.6 s may measure 0.59996 s: the whole millisecond decides.
    def length_s(pause: StoredPause) -> float:
        return round(pause.pause_s[1] - pause.pause_s[0], 3)

    outside = [pause.item_id for pause in pauses if not edges_s[0] <= length_s(pause) < edges_s[-1]]
    if outside:
        raise ValueError(f"pause {outside[0]} is outside the bins {tuple(edges_s)}: widen edges_s")
    rows: list[TakeoverRow] = []
    for low, high in pairwise(edges_s):
        group = [(pause, pause.pause_s) for pause in pauses if low <= length_s(pause) < high]
        name = f"{low:g} s and more" if math.isinf(high) else f"{low:g} to {high:g} s"
        rows.append(_row("pause length", name, low, None if math.isinf(high) else high, group, minimum_n))
    return rows


def takeover_by_tercile(pauses: Sequence[StoredPause], minimum_n: int = _MINIMUM_N) -> list[TakeoverRow]:
    """Takeover rate by tercile of the curation ranking (P2 table 13); ties are broken by item id."""
    ordered = sorted(pauses, key=lambda pause: (pause.ranking, pause.item_id))
    cuts = [round(len(ordered) * part / len(_TERCILES)) for part in range(len(_TERCILES) + 1)]
    rows: list[TakeoverRow] = []
    for name, first, last in zip(_TERCILES, cuts[:-1], cuts[1:], strict=True):
        group = ordered[first:last]
        low, high = (group[0].ranking, group[-1].ranking) if group else (None, None)
        rows.append(_row("ranking tercile", name, low, high, [(p, p.pause_s) for p in group], minimum_n))
    return rows


def takeover_curve(pauses: Sequence[StoredPause], end_shifts_s: Sequence[float]) -> list[TakeoverRow]:
    """Takeover rate as every pause end moves, one row for each shift in seconds."""
    shifts = [BoundaryShift(f"end {shift_s * 1000:+.0f} ms", 0.0, shift_s) for shift_s in end_shifts_s]
    return takeover_under_shifts(pauses, shifts)


def _row(
    analysis: str,
    group: str,
    low: float | None,
    high: float | None,
    pauses: Sequence[tuple[StoredPause, tuple[float, float]]],
    minimum_n: int,
) -> TakeoverRow:
    outcomes = tuple(float(_took(pause, window)) for pause, window in pauses)
    n = len(outcomes)
    enough = n >= max(minimum_n, 1)
    return TakeoverRow(
        analysis=analysis,
        group=group,
        low=low,
        high=high,
        n=n,
        n_takeover=int(sum(outcomes)),
        rate=float(np.mean(outcomes)) if enough else None,
        reason=None if enough else f"{n} pauses, at least {max(minimum_n, 1)} wanted",
        outcomes=outcomes,
        clusters=tuple(pause.cluster for pause, _ in pauses),
    )


def _took(pause: StoredPause, window: tuple[float, float]) -> bool:
    return classify_pause(pause.gate_s, pause.word_times_s, window).outcome == "takeover"
