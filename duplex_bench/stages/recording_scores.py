"""Labels, windows and measurements of a recording whose speech is known.

The user's pauses and turn ends become windows, and what the system did in them is measured as in a rollout. Who speaks
over whom is measured beside (ours).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.gate import DEFAULT_GATE, GateSettings
from duplex_bench.conversation.interruptions import (
    Interruption,
    InterruptionSettings,
    find_interruptions,
    interruption_measurements,
)
from duplex_bench.conversation.labels import Label, LabelRules, Word, label_conversation
from duplex_bench.conversation.recordings import (
    RecordingSettings,
    recording_measurements,
    recording_windows,
    still_going_measurements,
)
from duplex_bench.conversation.scoring import ScoringSettings
from duplex_bench.conversation.sessions import Session
from duplex_bench.records.audio import AudioSlice, TimedWord
from duplex_bench.records.items import HistoryTurn, Item, Reference, Stimulus, Window
from duplex_bench.records.score import Measurement, Score
from duplex_bench.reporting.estimates import AggregateSettings
from duplex_bench.stages.recording_audio import Recording
from duplex_bench.stages.recording_engines import SpeechSettings
from duplex_bench.stages.recording_speech import Speech

USER: Final = "left"
RECORDING_RULES: Final = LabelRules(failed_take_max_s=1.0)
"""Label rules for talk with a system (ours). Questions and answers are short: with P2's 5 s, an answer that is over
before the user speaks again within the look-ahead is a failed take inside a pause, and most turn ends disappear."""


@dataclass(frozen=True, slots=True)
class ScoreAudioSettings:
    """Every number that scores of a recording depend on."""

    gate: GateSettings = DEFAULT_GATE
    labels: LabelRules = RECORDING_RULES
    windows: RecordingSettings = field(default_factory=RecordingSettings)
    scoring: ScoringSettings = field(default_factory=ScoringSettings)
    interruptions: InterruptionSettings = field(default_factory=InterruptionSettings)
    speech: SpeechSettings = field(default_factory=SpeechSettings)
    statistics: AggregateSettings = field(default_factory=AggregateSettings)


@dataclass(frozen=True, slots=True)
class Scored:
    """A recording with everything that was found in it; labels and words have the user as left.

    ``no_words`` says why the system's words are not known, if they are not. ``notes`` are what a reader must know
    about the audio and where speech and words come from.
    """

    item: Item
    recording: Recording
    session: Session
    labels: tuple[Label, ...]
    interruptions: tuple[Interruption, ...]
    measurements: tuple[Measurement, ...]
    no_words: str | None
    notes: tuple[str, ...]


def measure(recording: Recording, speech: Speech, settings: ScoreAudioSettings) -> Scored:
    """Labels, windows and every measurement of a recording whose speech is known."""
    session = speech.session
    found = label_conversation(session.left.track, session.right.track, settings.labels)
    windows = recording_windows(found, USER, recording.duration_s, settings.windows)
    gate_s = recording.gate_s("system")
    name = session.session_id
    said = _timed(session.right.words)
    measured = recording_measurements(name, windows, gate_s, said, recording.duration_s, settings.scoring)
    if speech.no_words is not None:
        measured = [without_words(one, speech.no_words) for one in measured]
    going = still_going_measurements(
        windows, measured, found, gate_s, bridge_s=settings.scoring.bridge_s, settings=settings.windows
    )
    if speech.no_words is not None:
        going = [without_words(one, speech.no_words) for one in going]
    over = find_interruptions(
        merged(session.left.speech),
        merged(session.right.speech),
        user_word_times_s=[(word.start_s, word.end_s) for word in session.left.words],
        system_word_times_s=[(word.start_s, word.end_s) for word in session.right.words],
        labels=found,
        user_side=USER,
        settings=settings.interruptions,
    )
    interrupted = interruption_measurements(name, over)
    shown = [replace(window, labels={"speaker": "of the user"}) for window in windows]
    shown += _interruption_windows(over, {one.window_id for one in interrupted})
    unheard = () if session.left.speech else ("no speech was found on the user's channel: are the channels swapped?",)
    notes = (*unheard, *recording.notes, *speech.notes, *_told(session))
    return Scored(
        _item(recording, session, found, shown), recording, session, tuple(found), tuple(over),
        (*measured, *going, *interrupted), speech.no_words, notes,
    )  # fmt: skip


def without_words(one: Measurement, reason: str) -> Measurement:
    """A measurement of a recording whose words are not known: only silence at a pause is decided without them.

    A share whose silent windows alone have a score would be wrong, so no other metric keeps any.
    """
    if one.metric == "pause_silent":
        return replace(one, score=Score(float(one.details["pause_outcome"] == "silent")))
    return replace(one, score=Score(None, reason))


def merged(spans: Sequence[tuple[float, float]]) -> npt.NDArray[np.float64]:
    """Sorted (start, end) seconds with overlapping and touching ones joined, float64 (k, 2)."""
    joined: list[list[float]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    return np.asarray(joined, dtype=np.float64).reshape(-1, 2)


def _timed(words: Sequence[Word]) -> list[TimedWord]:
    return [TimedWord(word.text, word.start_s, word.end_s) for word in words]


def _interruption_windows(found: Sequence[Interruption], scored: set[str]) -> list[Window]:
    windows = []
    for number, one in enumerate(found):
        name = f"interruption-{number}"
        if name in scored:
            windows.append(Window(name, one.kind, one.at_s, one.until_s, {}, {"speaker": f"by the {one.by}"}))
    return windows


def _told(session: Session) -> list[str]:
    """Corrections as sentences, those that hold for both sides once."""
    sides: dict[str, list[str]] = {}
    for one in session.corrections:
        sides.setdefault(one.message, []).append(one.where)
    return [f"{' and '.join(where)}: {message}" for message, where in sides.items()]


def _item(recording: Recording, session: Session, labels: Sequence[Label], windows: Sequence[Window]) -> Item:
    live = AudioSlice(
        recording.source, 0, recording.n_samples, recording.sample_rate_hz, recording.user_content, channel=0
    )
    turns = tuple(
        HistoryTurn("user", _text(session.left.words, label), label.start_s, label.end_s)
        for label in labels
        if label.speaker == USER and label.kind in {"turn", "backchannel", "failed_take"}
    )
    kinds = {kind: sum(label.kind == kind for label in labels) for kind in dict.fromkeys(one.kind for one in labels)}
    reference = Reference(
        tuple(windows), transcript=turns, attributes={f"labels: {kind}": n for kind, n in kinds.items()}
    )
    return Item(
        session.session_id, "conversation", session.session_id, "recording", Stimulus("recording", live), reference,
        session.licence, session.language,
    )  # fmt: skip


def _text(words: Sequence[Word], label: Label) -> str:
    inside = [word.text for word in words if label.start_s <= (word.start_s + word.end_s) / 2 <= label.end_s]
    return " ".join(inside) or label.kind.replace("_", " ")
