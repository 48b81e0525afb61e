"""Pause and turn-end behaviour in a recording of a real session with a system: no adapter, no rollout (ours).

In a rollout the person's side is fixed. In a recording the person reacts to the system: a pause at which the system
took the floor for good is, in the labels, a turn end. Pause shares of recordings therefore understate takeovers, and
are not comparable with those of rollouts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from duplex_bench.conversation.candidates import LabelIndex
from duplex_bench.conversation.cards import PAUSE_METRICS, TURN_END_METRICS
from duplex_bench.conversation.label_types import Label, Speaker
from duplex_bench.conversation.measures import Spans, as_spans
from duplex_bench.conversation.scoring import ScoringSettings, score_window
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Window
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.score import Measurement

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
    """

    min_pause_s: float = 0.6
    min_context_s: float = 1.0


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
