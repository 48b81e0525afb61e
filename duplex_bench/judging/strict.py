"""The strict matcher: does an answer contain the gold answer's content words (P2 Table 12; rule ours)."""

from typing import Final

from duplex_bench.text.normalise import NORMALISER_VERSION
from duplex_bench.text.words import STOP_WORDS_VERSION, content_words

# A share of 2/3 written as 0.666667 means two of three words.
_ROUNDING: Final = 1e-6

STRICT_VERSION: Final = f"strict/1 normaliser/{NORMALISER_VERSION} stop-words/{STOP_WORDS_VERSION}"


class GoldAnswerError(ValueError):
    """A gold answer holds no content word, so that nothing could match it."""


def found_words(gold: str, answer: str) -> tuple[frozenset[str], frozenset[str]]:
    """The gold answer's distinct content words: those in ``answer``, and those missing from it.

    Raises:
        GoldAnswerError: ``gold`` holds no content word.
    """
    wanted = frozenset(content_words(gold))
    if not wanted:
        raise GoldAnswerError(f"gold answer {gold!r} holds no content word: rewrite it with the word that decides")
    found = wanted & frozenset(content_words(answer))
    return found, wanted - found


def matches(gold: str, answer: str, min_share: float) -> bool:
    """Whether at least ``min_share`` of the gold answer's distinct content words occur in ``answer``.

    Case, punctuation and the way numbers are written do not count (``text.normalise``); there is no stemming.

    Args:
        gold: the right answer.
        answer: what was said.
        min_share: share of words needed, above 0 and up to 1; meeting it exactly is enough.

    Raises:
        ValueError: share out of range, or (``GoldAnswerError``) a gold answer without content words.
    """
    if not 0 < min_share <= 1:
        raise ValueError(f"min_share {min_share}: give a share above 0 and up to 1")
    found, missing = found_words(gold, answer)
    return len(found) >= (min_share - _ROUNDING) * (len(found) + len(missing))
