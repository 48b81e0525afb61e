"""Items: what a system is run on, split into what it may see (stimulus) and what it may not (reference)."""

from dataclasses import dataclass, field
from typing import Literal

from duplex_bench.records.audio import AudioSlice, TimedWord

Track = Literal["multiparty", "conversation"]
Protocol = Literal["multiparty", "pause", "turn_end", "recall", "recording"]


@dataclass(frozen=True, slots=True)
class HistoryTurn:
    """A completed turn before the live stream; times on the clock of the history audio, ending where live begins."""

    role: Literal["user", "assistant"]
    text: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Stimulus:
    """All that a system may see. Its digest (``storage.digests.stimulus_digest``) keys rollouts.

    Protocol ``recording`` marks what was recorded elsewhere and is never run. ``live`` is streamed in real time from
    listener-timeline second 0. ``history_user`` and ``history_assistant`` are the two channels before it, of equal
    length. ``after`` is heard behind it in place of silence, and is no part of the user's turn (reply playback).
    ``history_words`` are the assistant's words in the history's audio, turns and asides alike, on its clock: for
    systems that are forced through it word by word. They are no part of the digest but of the keys of those systems.
    """

    protocol: Protocol
    live: AudioSlice
    identity_prompt: str | None = None
    history: tuple[HistoryTurn, ...] = ()
    history_user: AudioSlice | None = None
    history_assistant: AudioSlice | None = None
    after: AudioSlice | None = None
    history_words: tuple[TimedWord, ...] = ()


@dataclass(frozen=True, slots=True)
class Window:
    """The region of a rollout in which one behaviour is scored; seconds on the listener timeline.

    ``kind`` is one of: request (T), silence (N1-N3 and others), yield (N4Q to N4R), pause, turn_end.
    ``marks`` holds further instants by name (for yield: question_end_s, resolution_start_s, next_onset_s;
    for pause: resume_end_s), ``labels`` further names (turn_type, addressee, speaker, utterance_id).
    """

    window_id: str
    kind: str
    start_s: float
    end_s: float
    marks: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HumanReply:
    """What the person said at a turn end, measured by the same gate as a system's reply."""

    text: str
    duration_s: float
    n_words: int
    audio: AudioSlice | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """What scoring knows and a system never sees: windows, gold answer, human reply, and attributes to group by."""

    windows: tuple[Window, ...]
    gold_answer: str | None = None
    human_reply: HumanReply | None = None
    transcript: tuple[HistoryTurn, ...] = ()
    attributes: dict[str, str | float | int | bool] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Item:
    """One stimulus with its reference. ``cluster`` (scenario or conversation) is the unit that statistics resample.

    ``condition`` is explicit or implicit on the multiparty track and the point kind on the conversation track.
    """

    item_id: str
    track: Track
    cluster: str
    condition: str
    stimulus: Stimulus
    reference: Reference
    licence: str
    language: str = "en"
