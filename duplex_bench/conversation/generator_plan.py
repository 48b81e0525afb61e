"""The timeline of a synthetic session: who says what when, and the truth about it, before any audio is made.

Plans keep clear of every limit of the label rules by a stated distance, so that the planted truth has one reading:
a turn lasts longer than the look-ahead (a shorter reply would by the rules be a failed take), pauses lie between
0.6 and 2.3 s, backchannels begin well inside the other's turn, a take that fails has at least three words.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import numpy as np

from duplex_bench.conversation.generator_script import ScriptDeck, ScriptedFact
from duplex_bench.conversation.label_types import LabelKind, Speaker, SpeakerTrack, Word, other

Event = Literal["overlap", "failed_take", "backchannel"]


@dataclass(frozen=True, slots=True)
class ClipTiming:
    """How long a spoken text lasts and when each of its words (split at spaces) begins, in seconds."""

    duration_s: float
    word_starts_s: tuple[float, ...]


Timing = Callable[[str, str], ClipTiming]
"""(text, voice) -> its timing: from a real voice, or ``typical_timing`` where no audio is wanted."""


@dataclass(frozen=True, slots=True)
class PlacedClip:
    """The stretch [from_s, to_s) of the clip of ``text``, placed at ``start_s`` of the session on one speaker."""

    speaker: Speaker
    text: str
    start_s: float
    from_s: float
    to_s: float
    words: tuple[Word, ...]

    @property
    def end_s(self) -> float:
        """Where it ends on the session's clock."""
        return self.start_s + self.to_s - self.from_s


@dataclass(frozen=True, slots=True)
class PlantedEvent:
    """One label that is true by construction."""

    speaker: Speaker
    kind: LabelKind
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """A fact and when it was stated; in ``question`` "I" is the one who stated it."""

    speaker: Speaker
    statement: str
    question: str
    answer: str
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class PlannedSession:
    """Clips to render and the truth about them. ``topics`` name the script topics used."""

    clips: tuple[PlacedClip, ...]
    events: tuple[PlantedEvent, ...]
    facts: tuple[PlantedFact, ...]
    duration_s: float
    topics: tuple[str, ...]

    def track(self, speaker: Speaker) -> SpeakerTrack:
        """Speech intervals (touching clips joined) and words of one speaker, by construction."""
        mine = sorted((clip for clip in self.clips if clip.speaker == speaker), key=lambda clip: clip.start_s)
        return SpeakerTrack(_joined((clip.start_s, clip.end_s) for clip in mine), [w for c in mine for w in c.words])


@dataclass(frozen=True, slots=True)
class PlanSettings:
    """Numbers of a planned session (all ours; pause lengths from design 8, shares chosen near P2's inventory).

    Attributes:
        target_s: length aimed at; the last turn is finished.
        min_turn_s: a turn's least length, above the 5 s look-ahead of the label rules.
        pause_s: shortest and longest planted pause (design 8: 0.6 to 2.3 s).
        gap_s: silence between turns.
        overlap_s: how long two turns overlap where they do.
        pauses_per_turn: pauses aimed at for each turn.
        filler_share: share of the pauses that follow a filler word rather than cut a sentence.
        overlap_share: share of the turns that begin before the one before has ended.
        backchannel_share: share of the turns in which the listener gives a backchannel while the speaker speaks ...
        pause_backchannel_share: ... and share of the pauses in which the listener gives one.
        failed_take_share: share of the pauses in which the listener tries to take the floor and fails.
        question_share: share of the turns that end with a question.
        longer_turn_share: share of the turns with one sentence more than they need.
    """

    target_s: float = 105.0
    min_turn_s: float = 5.6
    pause_s: tuple[float, float] = (0.6, 2.3)
    gap_s: tuple[float, float] = (0.15, 1.2)
    overlap_s: tuple[float, float] = (0.3, 0.7)
    pauses_per_turn: float = 1.2
    filler_share: float = 0.3
    overlap_share: float = 0.25
    backchannel_share: float = 0.4
    pause_backchannel_share: float = 0.15
    failed_take_share: float = 0.15
    question_share: float = 0.3
    longer_turn_share: float = 0.3


# Between two sentences of one breath: below the 250 ms that the rules close.
_BREATH_S = 0.14
# Room kept between anything of the listener and the ends of the speaker's turn, or the listener's own speech.
_CLEAR_S = 1.4
_MIN_SIDE_WORDS = 3
_LOOK_AHEAD_S = 5.1


def typical_timing(text: str, voice: str) -> ClipTiming:  # noqa: ARG001 - every voice alike
    """Timing of a plain reading: 0.12 s a word and 0.045 s a letter. For plans without audio."""
    starts: list[float] = []
    position = 0.0
    for word in text.split():
        starts.append(round(position, 4))
        position += 0.12 + 0.045 * sum(letter.isalpha() for letter in word)
    return ClipTiming(round(position, 4), tuple(starts))


def plan_session(
    rng: np.random.Generator,
    voices: dict[Speaker, str],
    timing: Timing = typical_timing,
    settings: PlanSettings | None = None,
) -> PlannedSession:
    """A session of alternating turns with planted pauses, backchannels, overlaps, failed takes and one fact a speaker.

    Args:
        rng: source of every choice.
        voices: voice of each speaker, handed to ``timing``.
        timing: length and word starts of a text in a voice.
        settings: counts, shares and lengths.
    """
    return _Planner(rng, voices, timing, settings or PlanSettings()).plan()


@dataclass(slots=True)
class _Planner:
    rng: np.random.Generator
    voices: dict[Speaker, str]
    timing: Timing
    settings: PlanSettings
    clips: list[PlacedClip] = field(default_factory=list)
    events: list[PlantedEvent] = field(default_factory=list)
    facts: list[PlantedFact] = field(default_factory=list)
    takes_from_s: float = 0.0

    def plan(self) -> PlannedSession:
        deck = ScriptDeck(self.rng)
        speaker: Speaker = "left" if self.rng.random() < 0.5 else "right"
        start, turn_number, end = 0.5, 0, 0.0
        while end < self.settings.target_s:
            fact = deck.fact() if turn_number < 2 else None
            turn_end = self._turn(deck, speaker, start, fact)
            if turn_number and start < end:
                self._add(speaker, "overlap", start, end)
            end = turn_end
            # Sooner, the take would by the rules be the former speaker's own resumption.
            self.takes_from_s = end + _LOOK_AHEAD_S
            overlaps = self.rng.random() < self.settings.overlap_share
            start = (
                end - self._between(self.settings.overlap_s) if overlaps else end + self._between(self.settings.gap_s)
            )
            speaker = other(speaker)
            turn_number += 1
        return PlannedSession(
            tuple(sorted(self.clips, key=lambda clip: (clip.start_s, clip.speaker))),
            tuple(sorted(self.events, key=lambda event: (event.start_s, event.end_s, event.speaker, event.kind))),
            tuple(self.facts),
            round(end + 1.0, 4),
            deck.topics,
        )

    def _between(self, limits: tuple[float, float]) -> float:
        return round(float(self.rng.uniform(*limits)), 3)

    def _add(self, speaker: Speaker, kind: LabelKind, start: float, end: float) -> None:
        self.events.append(PlantedEvent(speaker, kind, round(start, 4), round(end, 4)))

    def _turn(self, deck: ScriptDeck, speaker: Speaker, start: float, fact: ScriptedFact | None) -> float:
        """Places one turn and what the listener does in it; returns its end."""
        texts = self._texts(deck, speaker, fact)
        position = start
        pauses: list[tuple[float, float]] = []
        for number, text in enumerate(texts):
            position += _BREATH_S if number else 0.0
            clip_start = position
            filler = text.split()[-1] in {"um", "uh"}
            cuts = self._cuts(text, speaker, first=number == 0, filler=filler)
            clip = self.timing(text, self.voices[speaker])
            edges = [0.0, *cuts, clip.duration_s]
            for part, (first, last) in enumerate(pairwise(edges)):
                if part:
                    length = self._pause(deck, other(speaker), position)
                    pauses.append((position, position + length))
                    position += length
                self._place(speaker, text, position, first, last)
                position = round(position + last - first, 4)
            if filler:
                length = self._pause(deck, other(speaker), position)
                pauses.append((position, position + length))
                position = round(position + length - _BREATH_S, 4)
            if fact is not None and text == fact.statement:
                self.facts.append(
                    PlantedFact(speaker, fact.statement, fact.question, fact.answer, clip_start, position)
                )
        self._add(speaker, "turn", start, position)
        for first, last in pauses:
            self._add(speaker, "pause", first, last)
        if self.rng.random() < self.settings.backchannel_share:
            self._backchannel_in_speech(deck, other(speaker), start, position, pauses)
        return position

    def _texts(self, deck: ScriptDeck, speaker: Speaker, fact: ScriptedFact | None) -> list[str]:
        texts = [] if fact is None else [fact.statement]
        filler_pauses = self.rng.random() < self.settings.pauses_per_turn * self.settings.filler_share
        asks = self.rng.random() < self.settings.question_share
        length = sum(self.timing(text, self.voices[speaker]).duration_s for text in texts)
        extra = int(self.rng.random() < self.settings.longer_turn_share)
        while length < self.settings.min_turn_s or extra > 0:
            if length >= self.settings.min_turn_s:
                extra -= 1
            texts.append(deck.statement())
            length += self.timing(texts[-1], self.voices[speaker]).duration_s
        if filler_pauses:
            texts.insert(len(texts) - 1, deck.filler_line())
        if asks:
            texts.append(deck.question())
        return texts

    def _cuts(self, text: str, speaker: Speaker, *, first: bool, filler: bool) -> list[float]:
        """Where inside the clip a pause goes: at a word start, with words enough on both sides; or nowhere."""
        share = self.settings.pauses_per_turn * (1 - self.settings.filler_share) / 2.5
        if filler or self.rng.random() >= share:
            return []
        starts = self.timing(text, self.voices[speaker]).word_starts_s
        # The listener's turn before may still sound during the first second of this one.
        lowest = max(_MIN_SIDE_WORDS, sum(1 for at in starts if first and at < _CLEAR_S))
        highest = len(starts) - _MIN_SIDE_WORDS - 1
        if highest < lowest:
            return []
        return [starts[int(self.rng.integers(lowest, highest + 1))]]

    def _pause(self, deck: ScriptDeck, listener: Speaker, start: float) -> float:
        """Length of a pause that begins at ``start``, and what the listener does in it."""
        shortest, longest = self.settings.pause_s
        length = round(shortest + (longest - shortest) * float(self.rng.beta(1.0, 2.5)), 3)
        does = self.rng.random()
        if does < self.settings.failed_take_share and start > self.takes_from_s:
            text = deck.failed_take()
            take = self.timing(text, self.voices[listener]).duration_s
            yields_after = self._between((-0.3, 0.3))
            fitting = round(0.3 + take - yields_after, 3)
            if shortest <= fitting <= longest:
                self._listener(listener, "failed_take", text, start + 0.3)
                if yields_after > 0:
                    self._add(listener, "overlap", start + fitting, start + 0.3 + take)
                return fitting
        elif does > 1.0 - self.settings.pause_backchannel_share:
            text = deck.backchannel()
            duration = self.timing(text, self.voices[listener]).duration_s
            if duration < 0.95:
                self._listener(listener, "backchannel", text, start + 0.2)
                return max(length, round(0.4 + duration, 3))
        return length

    def _backchannel_in_speech(
        self, deck: ScriptDeck, listener: Speaker, start: float, end: float, pauses: list[tuple[float, float]]
    ) -> None:
        text = deck.backchannel()
        duration = self.timing(text, self.voices[listener]).duration_s
        if duration >= 0.95:
            return
        busy = [(clip.start_s - 0.5, clip.end_s + 0.5) for clip in self.clips[-12:] if clip.speaker == listener] + [
            (first - 0.3, last) for first, last in pauses
        ]
        for _ in range(8):
            at = self._between((start + _CLEAR_S, max(start + _CLEAR_S, end - _CLEAR_S - duration)))
            if all(at + duration < first or last < at for first, last in busy):
                self._listener(listener, "backchannel", text, at)
                return

    def _listener(self, listener: Speaker, kind: LabelKind, text: str, at: float) -> None:
        duration = self.timing(text, self.voices[listener]).duration_s
        self._place(listener, text, at, 0.0, duration)
        self._add(listener, kind, at, at + duration)

    def _place(self, speaker: Speaker, text: str, at: float, first: float, last: float) -> None:
        starts = self.timing(text, self.voices[speaker]).word_starts_s
        tokens = text.split()
        words = []
        for number, (token, begins) in enumerate(zip(tokens, starts, strict=True)):
            if first <= begins < last:
                ends = min(last, starts[number + 1]) if number + 1 < len(starts) else last
                words.append(Word(token, round(at + begins - first, 4), round(at + ends - first, 4), score=1.0))
        self.clips.append(PlacedClip(speaker, text, round(at, 4), first, last, tuple(words)))


def _joined(intervals: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    """Sorted intervals with those that touch (to 0.1 ms) made one, rounded to 0.1 ms."""
    joined: list[tuple[float, float]] = []
    for start, end in intervals:
        if joined and start - joined[-1][1] <= 1e-4:
            joined[-1] = (joined[-1][0], round(end, 4))
        else:
            joined.append((round(start, 4), round(end, 4)))
    return joined
