"""Rows of times as files hold them, with gaps and errors, turned into speech and words and an account of the rest."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from duplex_bench.conversation.label_types import Word
from duplex_bench.conversation.sessions import Correction

Intervals = list[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class ParsedWords:
    """Timed words in order, texts without usable times, and how many there were of each fault."""

    timed: list[Word]
    untimed: list[str]
    null_times: int
    reversed_times: int
    outside: int


def number(value: Any) -> float | None:
    """``value`` as a finite float, or None where it is none (booleans are no times)."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    result = float(value)
    return result if result - result == 0.0 else None


def parse_speech(rows: Iterable[tuple[Any, Any]], duration_s: float) -> tuple[Intervals, int]:
    """Sorted intervals inside [0, duration_s], and how many rows were dropped: no number, backwards, or outside."""
    kept: Intervals = []
    dropped = 0
    for first, last in rows:
        start, end = number(first), number(last)
        if start is None or end is None or end <= start or start >= duration_s or end <= 0:
            dropped += 1
        else:
            kept.append((max(0.0, start), min(end, duration_s)))
    return sorted(kept), dropped


def parse_words(rows: Iterable[tuple[str, Any, Any, Any]], duration_s: float) -> ParsedWords:
    """Rows of (text, start, end, score or None). A word without usable times is kept as a text without times."""
    timed: list[Word] = []
    untimed: list[str] = []
    null = backwards = outside = 0
    for text, first, last, score in rows:
        start, end = number(first), number(last)
        if start is None or end is None:
            null += 1
            untimed.append(text)
        elif end < start:
            backwards += 1
            untimed.append(text)
        elif start < 0 or start >= duration_s:
            outside += 1
            untimed.append(text)
        else:
            timed.append(Word(text, start, min(end, duration_s), number(score)))
    return ParsedWords(sorted(timed, key=lambda word: (word.start_s, word.end_s)), untimed, null, backwards, outside)


def word_corrections(parsed: ParsedWords, where: str) -> list[Correction]:
    """What was done to words without usable times, one row a rule."""
    found = (
        ("null_word_times", parsed.null_times, "have no times"),
        ("reversed_word_times", parsed.reversed_times, "end before they start"),
        ("words_outside_audio", parsed.outside, "lie outside the audio"),
    )
    return [
        Correction(rule, where, f"{count} words {what}: kept as text without times")
        for rule, count, what in found
        if count
    ]


def speech_from_words(words: Sequence[Word], bridge_s: float) -> Intervals:
    """Where words are spoken, gaps up to ``bridge_s`` joined; words without length give none of their own."""
    joined: Intervals = []
    for word in sorted(words, key=lambda word: word.start_s):
        if joined and word.start_s - joined[-1][1] <= bridge_s:
            joined[-1] = (joined[-1][0], max(joined[-1][1], word.end_s))
        else:
            joined.append((word.start_s, word.end_s))
    return [(start, end) for start, end in joined if end > start]


def cut_speech(speech: Sequence[tuple[float, float]], duration_s: float) -> tuple[tuple[float, float], ...]:
    """Speech up to ``duration_s``."""
    return tuple((start, min(end, duration_s)) for start, end in speech if start < duration_s)


def cut_words(words: Sequence[Word], duration_s: float) -> tuple[Word, ...]:
    """Words that begin before ``duration_s``, none ending after it."""
    return tuple(
        word if word.end_s <= duration_s else replace(word, end_s=duration_s)
        for word in words
        if word.start_s < duration_s
    )


def spread_words(text: str, start_s: float, end_s: float) -> list[Word]:
    """The words of an utterance spread over it by their lengths, for transcripts without word times (score 0)."""
    tokens = text.split()
    total = sum(len(token) + 1 for token in tokens)
    words, position = [], start_s
    for token in tokens:
        after = position + (end_s - start_s) * (len(token) + 1) / total
        words.append(Word(token, position, min(after, end_s), score=0.0))
        position = after
    return words
