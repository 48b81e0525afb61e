from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.similarity import cosine_similarity, token_f1

pytestmark = pytest.mark.unit

TEXT = st.lists(st.sampled_from(["the", "a", "Cat,", "cat", "dog!", "dog's"]), max_size=8).map(" ".join)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("The cat.", "the CAT", 1.0), ("the the cat", "the cat", 0.8), ("a cat", "the cat", 0.5), ("cat", "", 0.0),
        ("", "", 0.0), ("?!", "cat", 0.0), ("don't", "dont", 1.0), ("dog", "cat", 0.0), ("\u201cHi\u201d", "hi", 1.0),
        ("five", "5", 0.0),
    ],
)  # fmt: skip
def test_token_f1(a: str, b: str, expected: float) -> None:
    assert token_f1(a, b) == pytest.approx(expected)


@given(TEXT, TEXT)
def test_token_f1_is_symmetric_and_between_0_and_1(a: str, b: str) -> None:
    assert token_f1(a, b) == token_f1(b, a)
    assert 0.0 <= token_f1(a, b) <= 1.0
    assert token_f1(a, a) == (1.0 if a else 0.0)


class LetterVectors:
    """Counts letters: enough to see what is embedded and that both sides are."""

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        counts = [[text.count(letter) for letter in "abc5"] for text in texts]
        return np.array(counts, dtype=np.float32)


def test_cosine_of_normalised_texts() -> None:
    assert cosine_similarity("a five", "A 5!", LetterVectors()) == pytest.approx(1.0)
    assert cosine_similarity("a", "b", LetterVectors()) == 0.0


def test_a_text_without_words_has_no_cosine() -> None:
    with pytest.raises(ValueError, match="without words"):
        cosine_similarity("...", "a", LetterVectors())
