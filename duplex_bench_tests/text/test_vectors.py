import numpy as np
import pytest

from duplex_bench.text.vectors import TextVectors, cosine

pytestmark = pytest.mark.engine

SENTENCES = ["The cat sits on the mat.", "A cat is sitting on a rug.", "Stock markets fell sharply today.", "Yes."]


@pytest.fixture(scope="module")
def vectors() -> TextVectors:
    return TextVectors()


def test_unit_vectors_whose_cosine_follows_meaning(vectors: TextVectors) -> None:
    found = vectors.embed(SENTENCES)
    assert found.shape == (4, 384)
    assert found.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert cosine(found[0], found[1]) > 0.6 > 0.3 > cosine(found[0], found[2])


def test_a_batch_gives_what_single_texts_give_in_their_order(vectors: TextVectors) -> None:
    many = [*SENTENCES, *(f"Sentence number {n} about {'very ' * n}big dogs." for n in range(40))]
    together = vectors.embed(many)
    for place in (0, 3, 20, 43):
        np.testing.assert_allclose(together[place], vectors.embed([many[place]])[0], atol=1e-5)
    assert vectors.embed([]).shape == (0, 384)


def test_long_and_empty_texts(vectors: TextVectors) -> None:
    found = vectors.embed(["word " * 5000, ""])
    assert np.isfinite(found).all()


@pytest.mark.parametrize("other", [[1.0, 0.0], [0.0, 2.0], [-3.0, 0.0]])
def test_cosine(other: list[float]) -> None:
    expected = {1.0: 1.0, 0.0: 0.0, -3.0: -1.0}[other[0]]
    assert cosine(np.array([2.0, 0.0], np.float32), np.array(other, np.float32)) == expected


def test_a_zero_vector_has_no_cosine() -> None:
    with pytest.raises(ValueError, match="zero vector"):
        cosine(np.zeros(2, np.float32), np.ones(2, np.float32))
