"""Pause and turn-end behaviour in a recording of a real session with a system: no adapter, no rollout (ours).

In a rollout the person's side is fixed. In a recording the person reacts to the system: a pause at which the system
took the floor for good is, in the labels, a turn end. Pause shares of recordings therefore understate takeovers, and
are not comparable with those of rollouts; ``still_going_measurements`` counts both.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import bridge
from duplex_bench.conversation.candidates import LabelIndex
from duplex_bench.conversation.cards import PAUSE_METRICS, TURN_END_METRICS, card
from duplex_bench.conversation.label_types import Label, Speaker
from duplex_bench.conversation.measures import Spans, as_spans
from duplex_bench.conversation.scoring import ScoringSettings, score_window
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Window
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.score import Measurement, Score

_NOT_IN_RECORDINGS: Final = frozenset(
    {"pause_no_audio", "at_cap", "duration_ratio", "word_ratio", "token_f1", "cosine"}
)
RECORDING_METRICS: Final = tuple(
    metric for metric in (*PAUSE_METRICS, *TURN_END_METRICS) if metric not in _NOT_IN_RECORDINGS
)
"""What can be said without a planned run and a person's reply to compare with."""


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """Which of the user's boundaries are scored (the label gates of P2 that need no second person).

    Attributes:
        min_pause_s: shortest pause (P2).
        min_context_s: least time the user's turn has lasted at the boundary (P2).
        resume_within_s: a user who speaks again this soon after a turn end, while the system speaks, is taken to have
            been still going (the look-ahead of design 15.1).
    """

    min_pause_s: float = 0.6
    min_context_s: float = 1.0
    resume_within_s: float = 5.0


def recording_windows(
    labels: Sequence[Label], user_side: Speaker, duration_s: float, settings: RecordingSettings | None = None
) -> list[Window]:
    """The user's pauses and turn ends in a labelled recording, in order of time.

    The mark ``until_s`` is where what follows is no longer about the boundary: at a pause the end of the stretch in
    which the user resumes, at a turn end the user's next turn or the end of the recording.
    """
    chosen = settings or RecordingSettings()
    turns, pauses = LabelIndex(labels, user_side, "turn"), LabelIndex(labels, user_side, "pause")
    windows: list[Window] = []
    for pause in pauses.labels:
        turn = turns.holding(pause.start_s, pause.end_s)
        if turn is None or pause.start_s - turn.start_s < chosen.min_context_s:
            continue
        if pause.end_s - pause.start_s < chosen.min_pause_s:
            continue
        following = pauses.first_from(pause.end_s)
        until_s = turn.end_s if following is None else min(turn.end_s, following.start_s)
        windows.append(Window("", "pause", pause.start_s, pause.end_s, {"resume_end_s": until_s, "until_s": until_s}))
    for turn in turns.labels:
        if turn.end_s - turn.start_s < chosen.min_context_s or turn.end_s >= duration_s:
            continue
        again = turns.first_from(turn.end_s)
        until_s = duration_s if again is None else again.start_s
        windows.append(Window("", "turn_end", turn.end_s, turn.end_s, {"until_s": until_s}))
    windows.sort(key=lambda window: (window.start_s, window.kind))
    return [
        Window(
            f"{window.kind}-{number}", window.kind, window.start_s, window.end_s, window.marks, {"speaker": user_side}
        )
        for number, window in enumerate(windows)
    ]


def recording_measurements(
    item_id: str,
    windows: Sequence[Window],
    system_gate_s: Spans,
    system_words: Sequence[TimedWord],
    duration_s: float,
    settings: ScoringSettings | None = None,
) -> list[Measurement]:
    """Scores of every window of a recording, by the measures that score rollouts.

    Speech and words that begin at or after a window's ``until_s`` are not about it. Words without times are left out.

    Raises:
        MeasureError: intervals or word times are malformed.
    """
    gate = as_spans(system_gate_s, "system_gate_s")
    timed = [word for word in system_words if word.start_s is not None and word.end_s is not None]
    found: list[Measurement] = []
    for window in windows:
        until_s = window.marks["until_s"]
        measured = score_window(
            item_id,
            window,
            None,
            gate[gate[:, 0] < until_s],
            [word for word in timed if word.start_s is not None and word.start_s < until_s],
            outcome=Outcome.COMPLETED,
            timeline_s=duration_s,
            vectors=None,
            settings=settings,
        )
        found += [one for one in measured if one.metric in RECORDING_METRICS]
    return found


def still_going_measurements(
    windows: Sequence[Window],
    measured: Sequence[Measurement],
    labels: Sequence[Label],
    system_gate_s: Spans,
    *,
    bridge_s: float = 0.25,
    settings: RecordingSettings | None = None,
) -> list[Measurement]:
    """``floor_taken_while_going`` at every pause, and at every turn end after which the user was still going.

    Args:
        windows: of ``recording_windows``.
        measured: of ``recording_measurements`` on those windows; a pause counts as its takeover score does.
        labels: of the recording.
        system_gate_s: the system's speech, (k, 2) seconds.
        bridge_s: gaps up to this do not interrupt speech (design 5).
        settings: how soon a user who resumes counts as still going.

    Raises:
        MeasureError: intervals are malformed.
    """
    chosen = settings or RecordingSettings()
    runs = bridge(as_spans(system_gate_s, "system_gate_s"), bridge_s)
    by_id = {window.window_id: window for window in windows}
    metric = "floor_taken_while_going"
    found: list[Measurement] = []
    for one in measured:
        window = by_id[one.window_id]
        if one.metric == "pause_takeover":
            details = {**one.details, "counted_as": "pause"}
            found.append(
                Measurement(one.item_id, one.window_id, metric, card(metric).version, one.score, one.at_s, details)
            )
        elif one.metric == "response_rate":
            resumed = _resumption(window, labels, runs, chosen.resume_within_s)
            if resumed is not None:
                began_s, resumed_s = resumed
                details = {
                    "counted_as": "turn end after which the user went on",
                    "turn_end_s": window.start_s,
                    "system_began_s": began_s,
                    "user_resumed_s": resumed_s,
                }
                found.append(
                    Measurement(one.item_id, one.window_id, metric, card(metric).version, Score(1.0), began_s, details)
                )
    return found


def _resumption(
    window: Window, labels: Sequence[Label], runs: npt.NDArray[np.float64], within_s: float
) -> tuple[float, float] | None:
    """Where the system's speech began and the user went on under it, if that is what followed a turn end."""
    side = window.labels["speaker"]
    mine = [label for label in labels if label.speaker == side and label.kind in {"turn", "failed_take"}]
    again_s = min((label.start_s for label in mine if label.start_s > window.start_s), default=None)
    if again_s is None or again_s - window.start_s > within_s:
        return None
    turn_start_s = max(label.start_s for label in mine if label.start_s < window.start_s)
    over = runs[(runs[:, 0] > turn_start_s) & (runs[:, 0] <= again_s) & (runs[:, 1] > again_s)]
    return (float(over[0, 0]), again_s) if len(over) else None
