import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.text.error_rate import WordErrors, align, word_errors

pytestmark = pytest.mark.unit

WORDS = st.lists(st.sampled_from("abcd"), max_size=7)


def distance(a: list[str], b: list[str]) -> int:
    """Edit distance by its recursive definition."""
    if not a or not b:
        return len(a) + len(b)
    if a[-1] == b[-1]:
        return distance(a[:-1], b[:-1])
    return 1 + min(distance(a[:-1], b[:-1]), distance(a[:-1], b), distance(a, b[:-1]))


@settings(max_examples=60, deadline=None)
@given(WORDS, WORDS)
def test_counts_are_a_least_edit_alignment(reference: list[str], hypothesis: list[str]) -> None:
    found = align(reference, hypothesis)
    assert found.errors == distance(reference, hypothesis)
    assert len(reference) - found.deletions + found.insertions == len(hypothesis)
    assert 0 <= found.substitutions <= len(reference) - found.deletions


def test_parts() -> None:
    assert word_errors("The cat sat on five mats.", "the bat sat 5 mats today") == WordErrors(1, 1, 1, 6)
    assert word_errors("The cat sat on five mats.", "the bat sat 5 mats today").rate == 0.5


def test_without_reference_words_there_is_no_rate() -> None:
    assert math.isnan(word_errors("", "hello").rate)
    assert word_errors("", "hello").insertions == 1


def test_counts_add_up_over_texts() -> None:
    total = sum([word_errors("one two", "one"), word_errors("three", "three four")], WordErrors())
    assert (total.errors, total.rate) == (2, 2 / 3)
