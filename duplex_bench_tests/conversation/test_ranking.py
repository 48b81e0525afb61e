import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.candidates import Candidate, Reply
from duplex_bench.conversation.ranking import RankingSettings, is_ambiguous, ranking_of

pytestmark = pytest.mark.unit


def candidate(kind="pause", words=("we", "went", "home"), pause_s=1.0, reply_words=8):
    reply = Reply(10.0, 12.0, "word " * reply_words, reply_words, True) if kind == "turn_end" else None
    end_s = 5.0 + pause_s if kind == "pause" else None
    return Candidate("s", kind, "left", 0.0, 5.0, tuple(words), "rule", 1.0, pause_end_s=end_s, reply=reply)


@pytest.mark.parametrize(
    ("words", "ambiguous"),
    [
        (["we", "went", "home."], True),
        (["we", "went", "and"], False),
        (["it", "was", "The,"], False),
        (["I", "looked", "at..."], False),
        (["so", "um"], False),
        (["it", "was,", "you", "know,"], False),
        (["I", "know"], True),
        (["home", "--"], True),
        ([], False),
        (["..."], False),
    ],
)
def test_ambiguity_bit(words, ambiguous):
    assert is_ambiguous(words) is ambiguous


def test_a_longer_pause_after_a_finished_phrase_tempts_more():
    settings = RankingSettings()
    assert ranking_of(candidate(pause_s=1.5), settings) > ranking_of(candidate(pause_s=0.7), settings)
    assert ranking_of(candidate(), settings) > ranking_of(candidate(words=("we", "went", "and")), settings)
    assert ranking_of(candidate(words=["word"] * 12), settings) > ranking_of(candidate(words=["word"] * 4), settings)


def test_features_are_capped():
    settings = RankingSettings()
    assert ranking_of(candidate(pause_s=2.0), settings) == ranking_of(candidate(pause_s=9.0), settings)
    assert ranking_of(candidate(words=["x"] * 20), settings) == ranking_of(candidate(words=["x"] * 200), settings)
    full = candidate(kind="turn_end", words=["x"] * 20, reply_words=15)
    assert ranking_of(full, settings) == 1.0


def test_values_by_hand():
    # Pause 1.0 of 2.0 s, 3 of 20 words, bit set, equal weights.
    assert ranking_of(candidate(), RankingSettings()) == pytest.approx((0.5 + 0.15 + 1.0) / 3)
    heavy = RankingSettings(pause_weight=2.0, ambiguity_weight=0.0)
    assert ranking_of(candidate(), heavy) == pytest.approx((2 * 0.5 + 0.15) / 3)


@given(
    st.sampled_from(["pause", "turn_end"]),
    st.lists(st.sampled_from(["and", "home", "um"]), max_size=60),
    st.floats(0.01, 20),
    st.integers(0, 80),
)
def test_ranking_lies_between_0_and_1(kind, words, pause_s, reply_words):
    assert 0.0 <= ranking_of(candidate(kind, words, pause_s, reply_words), RankingSettings()) <= 1.0


def test_settings_are_checked():
    with pytest.raises(ValueError, match="weights"):
        RankingSettings(pause_weight=-1.0)
    with pytest.raises(ValueError, match="caps"):
        RankingSettings(pause_cap_s=0.0)
