"""What goes into the label engine and what comes out: words, one speaker's track, the rules' numbers, labels."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

Speaker = Literal["left", "right"]
LabelKind = Literal["turn", "pause", "backchannel", "overlap", "failed_take"]

SPEAKERS: tuple[Speaker, Speaker] = ("left", "right")


class LabelInputError(ValueError):
    """Speech or words of one speaker that cannot be labelled; the message names the row and the remedy."""


@dataclass(frozen=True, slots=True)
class Word:
    """One word of one speaker, in seconds on the session's clock.

    ``score`` is the aligner's confidence in [0, 1] where it gave one; ``gap_filled`` marks words that the corpus did
    not have and our own recogniser found (P2 3.2).
    """

    text: str
    start_s: float
    end_s: float
    score: float | None = None
    gap_filled: bool = False


@dataclass(frozen=True, slots=True)
class SpeakerTrack:
    """One speaker's voice activity and words; numbers are coerced to float, rows are sorted by time.

    Args:
        speech: (start, end) pairs in seconds; they may come unsorted, touch or overlap.
        words: ``Word`` objects or (text, start, end) rows. A word may have no length (aligners write such).

    Raises:
        LabelInputError: a time is missing, not a number or not finite; speech that ends at or before its start; a word
            that ends before it starts. The row is counted from 0 in the order given.
    """

    speech: Sequence[tuple[float, float]]
    words: Sequence[Word] = ()

    def __post_init__(self) -> None:
        speech = [_speech_row(number, row) for number, row in enumerate(self.speech)]
        words = [_word_row(number, row) for number, row in enumerate(self.words)]
        object.__setattr__(self, "speech", tuple(sorted(speech)))
        object.__setattr__(self, "words", tuple(sorted(words, key=lambda word: (word.start_s, word.end_s, word.text))))


@dataclass(frozen=True, slots=True)
class LabelRules:
    """The numbers of the label passes (P2 3.2, design 15.1). Every limit is inclusive.

    Attributes:
        close_gap_s: gaps of at most this inside one speaker's activity are closed.
        backchannel_max_s: a backchannel lasts at most this ...
        backchannel_max_words: ... and has at most this many words.
        look_ahead_s: how far after an offset the next event counts.
        failed_take_max_s: a take that lasts longer never counts as failed (ours; at the look-ahead it never binds).
    """

    close_gap_s: float = 0.25
    backchannel_max_s: float = 1.0
    backchannel_max_words: int = 2
    look_ahead_s: float = 5.0
    failed_take_max_s: float = 5.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not math.isfinite(value) or value < 0:
                raise ValueError(f"label rule {field.name} is {value!r}: give a finite number of at least 0")


@dataclass(frozen=True, slots=True)
class Label:
    """One label on one speaker; ``rule`` names what placed it, ``confidence`` in [0, 1] how far from its limit."""

    speaker: Speaker
    kind: LabelKind
    start_s: float
    end_s: float
    rule: str
    confidence: float


def other(speaker: Speaker) -> Speaker:
    """The other side of a two-person session."""
    return "right" if speaker == "left" else "left"


def _number(value: Any, what: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise LabelInputError(f"{what} is {value!r}: give seconds as a number, or leave the row out") from None
    if not math.isfinite(number):
        raise LabelInputError(f"{what} is {value!r}: give finite seconds, or leave the row out")
    return number


def _speech_row(number: int, row: Any) -> tuple[float, float]:
    try:
        first, last = row
    except (TypeError, ValueError):
        raise LabelInputError(f"speech row {number} is {row!r}: give a (start, end) pair in seconds") from None
    start = _number(first, f"speech row {number}: start")
    end = _number(last, f"speech row {number}: end")
    if end <= start:
        raise LabelInputError(
            f"speech row {number} runs from {start} s to {end} s: its end must come after its start; "
            "swap the two, or leave the row out"
        )
    return start, end


def _word_row(number: int, row: Any) -> Word:
    word = row if isinstance(row, Word) else _word_of(number, row)
    start = _number(word.start_s, f"word row {number} ({word.text!r}): start")
    end = _number(word.end_s, f"word row {number} ({word.text!r}): end")
    if end < start:
        raise LabelInputError(
            f"word row {number} ({word.text!r}) runs from {start} s to {end} s, backwards: "
            "swap the two, or leave the word untimed"
        )
    if type(word.start_s) is float and type(word.end_s) is float:
        return word
    return Word(word.text, start, end, word.score, word.gap_filled)


def _word_of(number: int, row: Iterable[Any]) -> Word:
    try:
        text, start, end = row
    except (TypeError, ValueError):
        raise LabelInputError(f"word row {number} is {row!r}: give a Word, or a (text, start, end) row") from None
    return Word(str(text), start, end)
