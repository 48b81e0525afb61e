import hashlib
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.judging.acknowledgement import classify, lexicon, words_outside
from duplex_bench.text.normalise import normalised_words

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mm-hmm.", "acknowledgement"), ("Hmmmm.", "acknowledgement"), ("Uh-huh, I see.", "acknowledgement"),
        ("Yeah, right.", "acknowledgement"), ("Oh, I see, okay.", "acknowledgement"),
        ("That makes sense", "acknowledgement"),
        ("Okay, Bob.", "undecided"), ("So it is", "intrusion"), ("It is.", "undecided"), ("", "undecided"),
        ("...", "undecided"),
        ("Thursday.", "intrusion"), ("Seven.", "intrusion"), ("Okay, seven thirty.", "intrusion"),
        ("Sure, I can help with that.", "intrusion"), ("The answer is seven.", "intrusion"),
        ("What do you think?", "intrusion"), ("yeah " * 9, "intrusion"), ("yeah " * 8, "acknowledgement"),
        ("I can do that for you", "intrusion"), ("Hello!", "intrusion"),
    ],
)  # fmt: skip
def test_examples(text: str, expected: str) -> None:
    assert classify(text) == expected


@given(st.lists(st.sampled_from(sorted(lexicon().phrases)), min_size=1, max_size=5))
def test_phrases_side_by_side_leave_nothing_outside(phrases: list[tuple[str, ...]]) -> None:
    words = [word for phrase in phrases for word in phrase]
    assert words_outside(words) == []
    assert words_outside([*words, "giraffe"]) == ["giraffe"]
    assert classify(" ".join(words)) == ("acknowledgement" if len(words) <= lexicon().max_words else "intrusion")


def test_the_phrases_are_in_normalised_form() -> None:
    for phrase in lexicon().phrases:
        assert tuple(normalised_words(" ".join(phrase))) == phrase


def test_a_change_of_the_lexicon_needs_a_new_version() -> None:
    raw = files("duplex_bench.judging").joinpath("lexicons/acknowledgement_en.toml").read_bytes()
    assert (lexicon().version, hashlib.sha256(raw).hexdigest()) == (
        1,
        "25584144517bb5231e046d0d48c91c934eca3cfc2efb68297475302bae027a89",
    )
