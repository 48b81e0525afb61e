import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from duplex_bench.judging.strict import GoldAnswerError, found_words, matches
from duplex_bench.text.words import content_words

pytestmark = pytest.mark.unit

WORDS = ("the", "of", "red", "blue", "five", "5", "thirty", "car's", "Not,", "It's", "tree")
TEXT = st.lists(st.sampled_from(WORDS)).map(" ".join)


@pytest.mark.parametrize(
    ("gold", "answer", "min_share", "expected"),
    [
        ("five", "There are 5.", 1.0, True),
        ("the red car", "a RED car!", 1.0, True),
        ("5:30 p.m.", "It leaves at five thirty pm.", 1.0, True),
        ("half past five", "at 5:30", 1.0, True),
        ("red car", "a red bus", 0.5, True),
        ("red car", "a red bus", 0.51, False),
        ("red blue green", "red and blue", 2 / 3, True),
        ("red blue green", "red and blue", 0.666667, True),
        ("red red car", "red", 0.5, True),
        ("tree", "trees", 1.0, False),
        ("seven", "twenty-seven", 1.0, False),
        ("seven", "", 1.0, False),
        ("no", "No, thanks.", 1.0, True),
    ],
)
def test_share_of_the_gold_answers_content_words(gold: str, answer: str, min_share: float, expected: bool) -> None:
    assert matches(gold, answer, min_share) is expected


@pytest.mark.parametrize("gold", ["", "It is the", "..."])
def test_gold_without_content_words_is_refused(gold: str) -> None:
    with pytest.raises(GoldAnswerError, match="content word"):
        matches(gold, "anything", 0.5)


@pytest.mark.parametrize("min_share", [0.0, -1.0, 1.01, float("nan")])
def test_share_out_of_range_is_refused(min_share: float) -> None:
    with pytest.raises(ValueError, match="min_share"):
        matches("red", "red", min_share)


@given(TEXT, TEXT, st.floats(0.01, 1), st.floats(0.01, 1))
def test_more_words_and_a_lower_bar_never_hurt(gold: str, answer: str, share: float, other: float) -> None:
    assume(content_words(gold))
    if matches(gold, answer, max(share, other)):
        assert matches(gold, answer, min(share, other))
        assert matches(gold, f"well ; {answer} ; dog", share) >= matches(gold, answer, share)
    assert matches(gold, gold, 1.0)
    found, missing = found_words(gold, answer)
    assert found | missing == set(content_words(gold))
    assert not found & missing
