"""Every boundary at which a point could lie: within-turn pauses and turn ends (P2 3.3, Table 4 first row)."""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from duplex_bench.audio.activity import Intervals
from duplex_bench.conversation.label_types import SPEAKERS, Label, Speaker, Word, other

PointKind = Literal["pause", "turn_end"]


@dataclass(frozen=True, slots=True)
class LabelledSession:
    """What curation needs of one conversation; all times in seconds of the recording.

    Attributes:
        session_id: stable name of the conversation.
        labels: of both speakers, from the label engine or a review.
        words: timed words of each speaker.
        gate_s: energy-gate intervals of each speaker's channel, float64 (k, 2).
    """

    session_id: str
    labels: Sequence[Label]
    words: Mapping[Speaker, Sequence[Word]]
    gate_s: Mapping[Speaker, Intervals]


@dataclass(frozen=True, slots=True)
class Reply:
    """The other speaker's turn that follows a turn end. ``adjacent``: the user says nothing new in between."""

    start_s: float
    end_s: float
    text: str
    n_words: int
    adjacent: bool


@dataclass(frozen=True, slots=True)
class Candidate:
    """A boundary in the labels, with what the gates ask about; seconds of the recording.

    ``speaker`` is the active human, whose turn holds or ends at ``boundary_s``; a system plays the other.
    ``context_words`` are the words of that turn before the boundary. For a pause, ``pause_end_s`` is where the speaker
    resumes, ``resume_end_s`` where that stretch ends (at the turn's next pause or its end), ``intruding_words`` are
    the listener's words that overlap the pause, ``intruding_labels`` their labels that do.
    """

    session_id: str
    kind: PointKind
    speaker: Speaker
    turn_start_s: float
    boundary_s: float
    context_words: tuple[str, ...]
    label_rule: str
    label_confidence: float
    pause_end_s: float | None = None
    resume_end_s: float | None = None
    intruding_words: tuple[str, ...] = ()
    intruding_labels: tuple[str, ...] = ()
    reply: Reply | None = None

    @property
    def context_s(self) -> float:
        """How long the active turn has lasted at the boundary."""
        return self.boundary_s - self.turn_start_s

    @property
    def pause_s(self) -> float:
        """Length of the pause; 0 at a turn end."""
        return 0.0 if self.pause_end_s is None else self.pause_end_s - self.boundary_s


class WordIndex:
    """One speaker's timed words by time. A word belongs to the region that holds its middle."""

    def __init__(self, words: Sequence[Word]) -> None:
        self._words = sorted(words, key=lambda word: (word.start_s + word.end_s, word.start_s, word.text))
        self._middles = [(word.start_s + word.end_s) / 2 for word in self._words]

    def inside(self, start_s: float, end_s: float) -> tuple[str, ...]:
        """Words whose middle lies in [``start_s``, ``end_s``], in order."""
        first, last = bisect_left(self._middles, start_s), bisect_right(self._middles, end_s)
        return tuple(word.text for word in self._words[first:last])

    def whole(self, start_s: float, end_s: float) -> tuple[Word, ...]:
        """Words that lie wholly in [``start_s``, ``end_s``], by start."""
        first, last = bisect_left(self._middles, start_s), bisect_right(self._middles, end_s)
        inside = [word for word in self._words[first:last] if word.start_s >= start_s and word.end_s <= end_s]
        return tuple(sorted(inside, key=lambda word: (word.start_s, word.end_s, word.text)))

    def overlapping(self, start_s: float, end_s: float, longest_s: float = 5.0) -> tuple[str, ...]:
        """Words any part of which lies in (``start_s``, ``end_s``); words longer than ``longest_s`` may be missed."""
        first = bisect_left(self._middles, start_s - longest_s)
        last = bisect_right(self._middles, end_s + longest_s)
        near = self._words[first:last]
        return tuple(word.text for word in near if word.start_s < end_s and word.end_s > start_s)


class LabelIndex:
    """Labels of one speaker and some kinds, by start."""

    def __init__(self, labels: Sequence[Label], speaker: Speaker, *kinds: str) -> None:
        chosen = [label for label in labels if label.speaker == speaker and label.kind in kinds]
        self.labels = sorted(chosen, key=lambda label: (label.start_s, label.end_s))
        self._starts = [label.start_s for label in self.labels]

    def holding(self, start_s: float, end_s: float) -> Label | None:
        """The last label to start by ``start_s``, if it reaches ``end_s``."""
        position = bisect_right(self._starts, start_s) - 1
        if position < 0 or self.labels[position].end_s < end_s:
            return None
        return self.labels[position]

    def first_from(self, start_s: float) -> Label | None:
        """The first label that starts at ``start_s`` or later."""
        position = bisect_left(self._starts, start_s)
        return self.labels[position] if position < len(self.labels) else None

    def overlapping(self, start_s: float, end_s: float) -> list[Label]:
        """Labels any part of which lies in (``start_s``, ``end_s``), for labels that do not overlap each other."""
        last = bisect_left(self._starts, end_s)
        first = max(0, bisect_right(self._starts, start_s) - 1)
        return [label for label in self.labels[first:last] if label.end_s > start_s]


def candidates_of(session: LabelledSession) -> list[Candidate]:
    """Every pause label and every turn end of a session, ordered by boundary, then speaker.

    As in Table 4, each within-turn pause is a pause candidate and each turn a turn-end candidate; whether a usable
    reply follows is a gate's business. A pause label outside every turn of its speaker belongs to no turn and is
    left out (the label engine makes none).
    """
    found: list[Candidate] = []
    for speaker in SPEAKERS:
        found += _of_speaker(session, speaker)
    return sorted(found, key=lambda candidate: (candidate.boundary_s, candidate.speaker, candidate.kind))


def _of_speaker(session: LabelledSession, speaker: Speaker) -> list[Candidate]:
    listener = other(speaker)
    own_words, listener_words = WordIndex(session.words[speaker]), WordIndex(session.words[listener])
    turns = LabelIndex(session.labels, speaker, "turn")
    pauses = LabelIndex(session.labels, speaker, "pause")
    listener_turns = LabelIndex(session.labels, listener, "turn")
    asides = LabelIndex(session.labels, listener, "backchannel", "failed_take")
    found: list[Candidate] = []
    for pause in pauses.labels:
        turn = turns.holding(pause.start_s, pause.end_s)
        if turn is None:
            continue
        following = pauses.first_from(pause.end_s)
        resume_end_s = turn.end_s if following is None else min(turn.end_s, following.start_s)
        intruders = listener_turns.overlapping(pause.start_s, pause.end_s)
        intruders += asides.overlapping(pause.start_s, pause.end_s)
        found.append(
            Candidate(
                session_id=session.session_id,
                kind="pause",
                speaker=speaker,
                turn_start_s=turn.start_s,
                boundary_s=pause.start_s,
                context_words=own_words.inside(turn.start_s, pause.start_s),
                label_rule=pause.rule,
                label_confidence=pause.confidence,
                pause_end_s=pause.end_s,
                resume_end_s=resume_end_s,
                intruding_words=listener_words.overlapping(pause.start_s, pause.end_s),
                intruding_labels=tuple(label.kind for label in intruders),
            )
        )
    for turn in turns.labels:
        reply = _reply(turn, turns, listener_turns, listener_words)
        found.append(
            Candidate(
                session_id=session.session_id,
                kind="turn_end",
                speaker=speaker,
                turn_start_s=turn.start_s,
                boundary_s=turn.end_s,
                context_words=own_words.inside(turn.start_s, turn.end_s),
                label_rule=turn.rule,
                label_confidence=turn.confidence,
                reply=reply,
            )
        )
    return found


def _reply(turn: Label, turns: LabelIndex, listener_turns: LabelIndex, words: WordIndex) -> Reply | None:
    """The listener's first turn that starts inside or after ``turn`` and outlasts it."""
    answer = listener_turns.first_from(turn.start_s)
    while answer is not None and answer.end_s <= turn.end_s:
        answer = listener_turns.first_from(answer.end_s)
    if answer is None:
        return None
    again = turns.first_from(turn.end_s)
    said = words.inside(answer.start_s, answer.end_s)
    return Reply(
        start_s=answer.start_s,
        end_s=answer.end_s,
        text=" ".join(said),
        n_words=len(said),
        adjacent=again is None or again.start_s >= answer.start_s,
    )
