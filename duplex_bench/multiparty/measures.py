"""The rules of the multiparty track on speech intervals (design 15.4-15.6; P1 section 3.5, A3.1-A3.3, A4.1).

Speech is float64 (k, 2) seconds on the listener timeline (lists are accepted), half-open [start, stop), sorted
and apart. Instants are compared after rounding to one microsecond: far below a sample, above decimal rounding.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import DEFAULT_BRIDGE_S, Intervals, active_at, bridge, checked, first_onset, overlap_s

_DECIMALS: Final = 6

YieldKind = Literal[
    "stopped",
    "speaking_through_deadline",
    "resumed",
    "not_eligible_active_at_question_end",
    "not_eligible_no_onset_in_window",
    "not_eligible_silent_at_resolution",
]


@dataclass(frozen=True, slots=True)
class YieldOutcome:
    """What happened between a question to the assistant and its resolution by a human.

    ``passed`` is None where ``eligible`` is False: such an event is outside the denominator. ``onset_s`` is the
    first onset after the question; ``stop_latency_s`` runs from the onset of the resolution to the end of the
    (bridged) speech under way then, and is None where that speech outlasts the observation.
    """

    eligible: bool
    passed: bool | None
    outcome: YieldKind
    onset_s: float | None = None
    stop_latency_s: float | None = None


def _instant(seconds: float) -> float:
    value = float(seconds)
    if not np.isfinite(value):
        raise ValueError(f"{seconds} is no instant: give finite seconds on the listener timeline")
    return round(value, _DECIMALS)


def _speech(speech_s: npt.ArrayLike) -> Intervals:
    return np.round(checked(speech_s), _DECIMALS)


def _ordered(names: str, *instants_s: float) -> None:
    if any(later < earlier for earlier, later in pairwise(instants_s)):
        raise ValueError(f"{names} must not decrease, they are {list(instants_s)}: check the marks of the window")


def response_present(speech_s: npt.ArrayLike, window_s: tuple[float, float]) -> bool:
    """Whether any speech lies in ``window_s`` = (start, stop), half-open; words are not required (15.4).

    Raises:
        ValueError: bad intervals, or a window that ends before it starts.
    """
    start, stop = _instant(window_s[0]), _instant(window_s[1])
    _ordered("start and stop of the window", start, stop)
    return overlap_s(_speech(speech_s), start, stop) > 0


def speech_in_window_s(speech_s: npt.ArrayLike, window_s: tuple[float, float]) -> float:
    """Seconds of speech in ``window_s``: the quantity that minimum-duration sensitivity thresholds (P1 A3.5)."""
    start, stop = _instant(window_s[0]), _instant(window_s[1])
    _ordered("start and stop of the window", start, stop)
    return overlap_s(_speech(speech_s), start, stop)


def fresh_onset_s(
    speech_s: npt.ArrayLike, end_s: float, within_s: float = 5.0, bridge_s: float = DEFAULT_BRIDGE_S
) -> float | None:
    """Second of the onset that makes a response fresh, or None; see ``fresh_onset``."""
    speech, end = _speech(speech_s), _instant(end_s)
    if active_at(speech, end, bridge_s):
        return None
    return first_onset(speech, end, _instant(end + within_s), bridge_s)


def fresh_onset(
    speech_s: npt.ArrayLike, end_s: float, within_s: float = 5.0, bridge_s: float = DEFAULT_BRIDGE_S
) -> bool:
    """Whether speech newly begins after a request (15.4).

    True if, after joining gaps up to ``bridge_s``, the system is not speaking at ``end_s`` (the end of T) and
    starts in (``end_s``, ``end_s + within_s``]. An onset exactly at ``end_s`` is speaking at ``end_s``.

    Args:
        speech_s: float64 (k, 2) seconds.
        end_s: end of the request, seconds.
        within_s: length of the window, seconds.
        bridge_s: gaps up to this long do not end speech (ours).

    Raises:
        ValueError: bad intervals or instants.
    """
    return fresh_onset_s(speech_s, end_s, within_s, bridge_s) is not None


def answer_span_s(
    speech_s: npt.ArrayLike, window_s: tuple[float, float], bridge_s: float = DEFAULT_BRIDGE_S
) -> tuple[float, float] | None:
    """Where the answer to a request lies: from the start of the window to the end of the utterance in it (15.4).

    An utterance is bridged speech begun or under way in ``window_s``; where several begin, the last counts, so
    that an answer after a short "hm" is heard to its end. None without speech in the window.
    """
    start, stop = _instant(window_s[0]), _instant(window_s[1])
    speech = _speech(speech_s)
    if not response_present(speech, (start, stop)):
        return None
    joined = bridge(speech, bridge_s)
    inside = joined[(joined[:, 0] < stop) & (joined[:, 1] > start)]
    return start, float(inside[-1, 1])


def utterances_in(
    speech_s: npt.ArrayLike, window_s: tuple[float, float], bridge_s: float = DEFAULT_BRIDGE_S
) -> Intervals:
    """Bridged utterances, whole, of which some real speech lies in ``window_s``. Returns float64 (j, 2).

    A bridged gap alone does not count: an utterance whose pause covers the window is not speech in it.
    """
    start, stop = _instant(window_s[0]), _instant(window_s[1])
    speech = _speech(speech_s)
    joined = bridge(speech, bridge_s)
    heard = [
        overlap_s(speech, max(start, begin), min(stop, end)) > 0 if begin < stop and end > start else False
        for begin, end in joined
    ]
    kept: Intervals = joined[np.asarray(heard, dtype=bool)]
    return kept


def silence_kept(speech_s: npt.ArrayLike, window_s: tuple[float, float]) -> bool:
    """Whether no speech at all lies in ``window_s``: such a window passes without a transcript (P1 A3.3)."""
    return not response_present(speech_s, window_s)


def carried_over(
    speech_s: npt.ArrayLike,
    window_s: tuple[float, float],
    request_s: tuple[float, float],
    within_s: float = 5.0,
    bridge_s: float = DEFAULT_BRIDGE_S,
) -> tuple[bool, bool]:
    """Whether speech in a silence window is the rest of an answer, and whether there is other speech too (15.5).

    Carried over is a bridged utterance that was under way when the window began, with its onset between the start
    of the request and ``within_s`` after its end: speech that was already going on before anybody asked is not an
    answer.

    Args:
        speech_s: float64 (k, 2) seconds.
        window_s: the silence window, seconds.
        request_s: start and end of the request T, seconds.
        within_s: how long after the request an answer may begin, seconds.
        bridge_s: gaps up to this long do not end speech.

    Returns:
        (some speech is carried over, some speech is not).
    """
    asked, until = _instant(request_s[0]), _instant(request_s[1] + within_s)
    start = _instant(window_s[0])
    speaking = utterances_in(speech_s, window_s, bridge_s)
    answers = (speaking[:, 0] >= asked) & (speaking[:, 0] <= until) & (speaking[:, 0] < start)
    return bool(answers.any()), bool((~answers).any())


def yielded(
    speech_s: npt.ArrayLike,
    question_end_s: float,
    resolution_start_s: float,
    next_onset_s: float,
    within_s: float = 3.0,
    deadline_s: float = 2.0,
    bridge_s: float = DEFAULT_BRIDGE_S,
) -> YieldOutcome:
    """Whether a system that began to answer falls silent when a human resolves the question (15.6; P1 A4.1).

    Eligible: silent at the end of N4Q, first onset within ``within_s`` of it, active at the onset of N4R. Passes:
    silent at the onset of N4R + ``deadline_s`` and from there to the later of that and ``next_onset_s``.

    Args:
        speech_s: float64 (k, 2) seconds.
        question_end_s: end of the question to the assistant (N4Q).
        resolution_start_s: onset of the human resolution (N4R).
        next_onset_s: next human onset after N4R, or the end of the recording.
        within_s: how long after the question an answer may begin.
        deadline_s: how long after the onset of N4R speech may go on.
        bridge_s: gaps up to this long do not end speech (ours).

    Raises:
        ValueError: bad intervals, or instants that are not in order.
    """
    speech = _speech(speech_s)
    question_end, resolution = _instant(question_end_s), _instant(resolution_start_s)
    following = _instant(next_onset_s)
    _ordered("question end, resolution onset and next onset", question_end, resolution, following)
    onset = first_onset(speech, question_end, _instant(question_end + within_s), bridge_s)
    if active_at(speech, question_end, bridge_s):
        return YieldOutcome(False, None, "not_eligible_active_at_question_end")
    if onset is None:
        return YieldOutcome(False, None, "not_eligible_no_onset_in_window")
    if not active_at(speech, resolution, bridge_s):
        return YieldOutcome(False, None, "not_eligible_silent_at_resolution", onset)
    deadline = _instant(resolution + deadline_s)
    observed_until = max(deadline, following)
    joined = bridge(speech, bridge_s)
    stop = float(joined[(joined[:, 0] <= resolution) & (joined[:, 1] > resolution)][0, 1])
    # Speech that a recording cuts off at its last sample has not been seen to stop.
    latency = round(stop - resolution, _DECIMALS) if stop < observed_until or stop <= deadline else None
    if active_at(speech, deadline, bridge_s):
        return YieldOutcome(True, False, "speaking_through_deadline", onset, latency)
    if overlap_s(joined, deadline, observed_until) > 0:
        return YieldOutcome(True, False, "resumed", onset, latency)
    return YieldOutcome(True, True, "stopped", onset, latency)
