"""Acknowledgement or intrusion, by a closed lexicon: what speech in a window that asks for silence was."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

from duplex_bench.text.normalise import normalised_words
from duplex_bench.text.words import stop_words

Kind = Literal["acknowledgement", "intrusion", "undecided"]


@dataclass(frozen=True, slots=True)
class Lexicon:
    """What acknowledges, with the limits of the rule (ours).

    Attributes:
        id: name of the data file.
        version: raised with every change of it.
        max_words: longer utterances are intrusions.
        max_open_words: with more words outside the phrases it is an intrusion.
        max_open_content_words: or with more content words outside them.
        sounds: pattern of listening sounds, matched against a whole word.
        phrases: the closed list, each a tuple of normalised words.
    """

    id: str
    version: int
    max_words: int
    max_open_words: int
    max_open_content_words: int
    sounds: re.Pattern[str]
    phrases: frozenset[tuple[str, ...]]


@cache
def lexicon() -> Lexicon:
    """The English lexicon of this version (``lexicons/acknowledgement_en.toml``)."""
    text = files("duplex_bench.judging").joinpath("lexicons/acknowledgement_en.toml").read_text(encoding="utf-8")
    data: dict[str, Any] = tomllib.loads(text)
    phrases = frozenset(tuple(phrase.split()) for phrase in data.pop("phrases"))
    return Lexicon(phrases=phrases, sounds=re.compile(data.pop("sounds")), **data)


def classify(text: str) -> Kind:
    """What ``text``, the transcript of one stretch of speech, does.

    "acknowledgement": nothing but phrases of the lexicon, and no more than ``max_words`` words.
    "undecided": no words at all; or little beside an acknowledgement ("okay, Bob"); or a few words without content
    that the lexicon lacks ("so it is"). "intrusion": everything else, a single informative word included.
    """
    words = normalised_words(text)
    rules = lexicon()
    if not words:
        return "undecided"
    outside = words_outside(words)
    if len(words) > rules.max_words or len(outside) > rules.max_open_words:
        return "intrusion"
    if not outside:
        return "acknowledgement"
    n_content = sum(word not in stop_words() for word in outside)
    allowed = rules.max_open_content_words if len(outside) < len(words) else 0
    return "undecided" if n_content <= allowed else "intrusion"


def words_outside(words: list[str]) -> list[str]:
    """The fewest of ``words`` (normalised) that no phrase covers, over all ways to lay phrases side by side."""
    rules = lexicon()
    longest = max(len(phrase) for phrase in rules.phrases)
    fewest: list[list[str]] = [[]]
    for end in range(1, len(words) + 1):
        covered = [
            fewest[end - size]
            for size in range(1, min(longest, end) + 1)
            if tuple(words[end - size : end]) in rules.phrases
        ]
        if rules.sounds.fullmatch(words[end - 1]):
            covered.append(fewest[end - 1])
        fewest.append(min([*covered, [*fewest[end - 1], words[end - 1]]], key=len))
    return fewest[-1]
