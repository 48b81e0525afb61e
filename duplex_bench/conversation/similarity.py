"""How close a reply's words are to what the person said (P2 3.5 item 4)."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from duplex_bench.text.normalise import normalise
from duplex_bench.text.overlap import multiset_f1, plain_tokens
from duplex_bench.text.vectors import cosine


class Vectors(Protocol):
    """Makes sentence vectors; ``text.vectors.TextVectors`` does."""

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """Unit vectors float32 (n, d) of n texts."""
        ...


def token_f1(a: str, b: str) -> float:
    """F1 of two texts as bags of tokens: lower case, no punctuation, articles kept; an empty side gives 0.0."""
    return multiset_f1(plain_tokens(a), plain_tokens(b))


def cosine_similarity(a: str, b: str, vectors: Vectors) -> float:
    """Cosine of the sentence vectors of two texts, numbers normalised first, -1 to 1.

    Raises:
        ValueError: a text holds no words: it has no meaning to compare.
    """
    left, right = normalise(a), normalise(b)
    if not left or not right:
        raise ValueError("a text without words has no meaning to compare: give a reason in place of a cosine")
    first, second = vectors.embed([left, right])
    return cosine(first, second)
