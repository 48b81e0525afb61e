"""Content words: what is left of a text without the words that carry nothing by themselves."""

from functools import cache
from importlib.resources import files
from typing import Final

from duplex_bench.text.normalise import normalised_words

STOP_WORDS_VERSION: Final = 1


@cache
def stop_words() -> frozenset[str]:
    """The English stop list (``lists/stop_words_en.txt``), in normalised form."""
    text = files("duplex_bench.text").joinpath("lists/stop_words_en.txt").read_text(encoding="utf-8")
    return frozenset(line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#"))


def content_words(text: str) -> list[str]:
    """The normalised words of ``text`` that are not stop words, in order, no stemming; numbers count as content."""
    stopped = stop_words()
    return [word for word in normalised_words(text) if word not in stopped]
