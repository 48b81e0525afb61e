"""Token overlap of two texts."""

import string
import unicodedata
from collections import Counter
from collections.abc import Sequence


def plain_tokens(text: str) -> list[str]:
    """Lower-case tokens between white space, punctuation removed; articles, contractions and numbers as written."""
    kept = (
        character
        for character in text.lower()
        if character not in string.punctuation and not unicodedata.category(character).startswith("P")
    )
    return "".join(kept).split()


def multiset_f1(a: Sequence[str], b: Sequence[str]) -> float:
    """F1 of two bags of tokens: 2 |a and b| / (|a| + |b|), counted with multiplicity; 0.0 if a side is empty."""
    if not a or not b:
        return 0.0
    shared = (Counter(a) & Counter(b)).total()
    return 2 * shared / (len(a) + len(b))
