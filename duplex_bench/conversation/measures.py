"""What a system did at a person's pause (design 15.2; P2 section 3.5, item 1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import bridge

Spans = npt.NDArray[np.float64] | Sequence[Sequence[float]] | Sequence[tuple[float, float]]
PauseKind = Literal["silent", "wordless", "takeover", "after"]


class MeasureError(ValueError):
    """Intervals, word times or a window that cannot be measured."""


@dataclass(frozen=True, slots=True)
class PauseOutcome:
    """What happened at one pause; exactly one outcome, and what stands behind it.

    Attributes:
        outcome: ``takeover``: a word-bearing interval overlaps the pause. ``after``: none does, one follows the
            pause. ``wordless``: above-gate audio, no word-bearing interval. ``silent``: nothing above the gate.
        takeover_latency_s: first word of the interval that took the floor minus the pause start, never below 0;
            None unless ``takeover``.
        already_speaking: speech that began before the pause start was still going at it.
        spoke_before: some speech lay wholly before the pause; it does not count towards the outcome.
        first_word_s: onset of the first counted word on the listener timeline, never before the pause start; None
            without a word.
        wordless_in_pause: an interval without words overlaps the pause.
        words_outside: words that overlap no interval; they bear no interval and change no outcome.
    """

    outcome: PauseKind
    takeover_latency_s: float | None = None
    already_speaking: bool = False
    spoke_before: bool = False
    first_word_s: float | None = None
    wordless_in_pause: bool = False
    words_outside: int = 0


def as_spans(values: Spans, what: str) -> npt.NDArray[np.float64]:
    """``values`` as float64 (k, 2) seconds, sorted by start.

    Raises:
        MeasureError: not pairs, not finite, or ending before they start.
    """
    spans = np.asarray(values, dtype=np.float64)
    if spans.size == 0:
        return np.empty((0, 2), dtype=np.float64)
    if spans.ndim != 2 or spans.shape[1] != 2:
        raise MeasureError(f"{what}: expected (start, end) pairs in seconds, got an array of shape {spans.shape}")
    bad = ~np.isfinite(spans).all(axis=1) | (spans[:, 1] < spans[:, 0])
    if bad.any():
        row = int(np.argmax(bad))
        raise MeasureError(f"{what}, row {row}: {tuple(spans[row])} is not a finite start before its end")
    return spans[np.lexsort((spans[:, 1], spans[:, 0]))]


def overlap_matrix(intervals: npt.NDArray[np.float64], words: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which interval (rows) is overlapped by which word (columns); both half open, seconds, (k, 2) and (m, 2).

    A word without length overlaps the interval that holds its instant.
    """
    starts, ends = intervals[:, :1], intervals[:, 1:]
    word_starts, word_ends = words[None, :, 0], words[None, :, 1]
    reaches = (word_ends > starts) | ((word_starts == word_ends) & (word_starts >= starts))
    overlaps: npt.NDArray[np.bool_] = reaches & (word_starts < ends)
    return overlaps


def classify_pause(
    intervals_s: Spans, word_times_s: Spans, pause_s: Sequence[float], *, bridge_s: float = 0.0
) -> PauseOutcome:
    """What a system did at a pause, by design 15.2.

    The scored region starts at the pause start. An interval is word-bearing when at least one word overlaps it. The
    latency belongs to the first word-bearing interval that overlaps the pause: the onset of its first word, even if
    that word falls after the pause end, minus the pause start, floored at 0.

    Args:
        intervals_s: gate intervals of the listener audio, (k, 2) seconds, half open.
        word_times_s: word starts and ends, (m, 2) seconds, of the same audio.
        pause_s: pause start and end, seconds.
        bridge_s: gaps up to this length are joined before asking whether the system is already speaking at the
            pause start (design 5), and the latency is then taken from the joined interval. The outcome itself never
            depends on it. 0 joins only intervals that touch.

    Raises:
        MeasureError: spans that are not finite, ordered pairs, or a pause without length.
    """
    intervals = as_spans(intervals_s, "intervals_s")
    words = as_spans(word_times_s, "word_times_s")
    pause = as_spans([tuple(pause_s)], "pause_s")
    pause_start, pause_end = float(pause[0, 0]), float(pause[0, 1])
    if pause_end <= pause_start:
        raise MeasureError(f"pause_s: ({pause_start}, {pause_end}) has no length")

    overlaps = overlap_matrix(intervals, words)
    counted = intervals[:, 1] > pause_start
    bearing = overlaps.any(axis=1) & counted
    in_pause = counted & (intervals[:, 0] < pause_end)
    runs = bridge(intervals, bridge_s) if len(intervals) else intervals
    under_way = (runs[:, 0] < pause_start) & (runs[:, 1] > pause_start)

    took = np.flatnonzero(bearing & in_pause)
    first = np.flatnonzero(bearing)
    first_word_s: float | None = None
    if len(first):
        region = _run_of(intervals[first[0]], runs)
        onset = float(words[overlap_matrix(region, words)[0], 0].min())
        first_word_s = max(onset, pause_start)
    outcome: PauseKind
    if len(took):
        outcome = "takeover"
    elif len(first):
        outcome = "after"
    else:
        outcome = "wordless" if counted.any() else "silent"
    return PauseOutcome(
        outcome=outcome,
        takeover_latency_s=first_word_s - pause_start if outcome == "takeover" and first_word_s is not None else None,
        already_speaking=bool(under_way.any()),
        spoke_before=bool((intervals[:, 1] <= pause_start).any()),
        first_word_s=first_word_s,
        wordless_in_pause=bool((in_pause & ~bearing).any()),
        words_outside=int((~overlaps.any(axis=0)).sum()),
    )


def _run_of(interval: npt.NDArray[np.float64], runs: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    holds = (runs[:, 0] <= interval[0]) & (runs[:, 1] >= interval[1])
    run: npt.NDArray[np.float64] = runs[holds][:1]
    return run
