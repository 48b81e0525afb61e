"""Liveliness: percentile ranks, selection, and each trait on a drawn session."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from duplex_bench.conversation.labels import Word
from duplex_bench.conversation.liveliness import TRAITS, score, select, traits_of
from duplex_bench.conversation.sessions import Session, Side

pytestmark = pytest.mark.unit

TRAIT = {name: index for index, name in enumerate(TRAITS)}


def session(left, right, duration_s: float = 60.0) -> Session:
    """Sides from (start, end, text) rows, words spread evenly."""

    def side(rows, channel):
        words = []
        for start, end, text in rows:
            tokens = text.split()
            step = (end - start) / max(1, len(tokens))
            words += [Word(token, start + i * step, start + (i + 1) * step) for i, token in enumerate(tokens)]
        return Side("none.wav", channel, tuple((start, end) for start, end, _ in rows), tuple(words), str(channel))

    return Session("s", side(left, 0), side(right, 1), 8000, duration_s, "CC0-1.0")


def test_scores_by_hand():
    # Column ranks of three rows without ties: 1/3, 2/3, 1; a column of ties: 2/3 each.
    traits = np.array([[1, 1, 1, 1, 1, 5], [2, 2, 2, 2, 2, 5], [3, 3, 3, 3, 3, 5]], dtype=float)
    expected = [(5 * rank + 2 / 3) / 6 for rank in (1 / 3, 2 / 3, 1)]
    assert score(traits) == pytest.approx(expected)


def test_one_conversation_scores_one():
    assert score(np.zeros((1, 6))).tolist() == [1.0]


def test_no_conversations_give_no_scores():
    assert score(np.zeros((0, 6))).shape == (0,)


@pytest.mark.parametrize("bad", [np.zeros(6), np.zeros((3, 5)), np.zeros((2, 6, 1))])
def test_other_shapes_are_refused(bad):
    with pytest.raises(ValueError, match="shape"):
        score(bad)


def test_a_missing_trait_is_named():
    traits = np.zeros((3, 6))
    traits[1, 3] = np.nan
    with pytest.raises(ValueError, match="row 1: question_rate"):
        score(traits)


@given(hnp.arrays(np.float64, st.tuples(st.integers(1, 30), st.just(6)), elements=st.integers(-5, 5)))
@settings(max_examples=60, deadline=None)
def test_scores_ignore_scale_and_order(traits):
    scores = score(traits)
    assert ((scores > 0) & (scores <= 1)).all()
    assert scores.mean() == pytest.approx((len(traits) + 1) / (2 * len(traits)))
    assert score(np.exp(traits) * 3 + 1) == pytest.approx(scores)
    order = np.random.default_rng(0).permutation(len(traits))
    assert score(traits[order]) == pytest.approx(scores[order])


def test_selection():
    scores = np.array([0.9, 0.75, 0.74, 0.2])
    assert select(scores).tolist() == [True, True, False, False]
    assert select(scores, cutoff=0.8).tolist() == [True, False, False, False]
    assert select(scores, top_share=0.5).tolist() == [True, True, False, False]
    assert select(scores, top_share=0.01).tolist() == [True, False, False, False]
    assert select(np.array([0.5, 0.5, 0.5]), top_share=0.1).tolist() == [True, True, True]
    with pytest.raises(ValueError, match="not by both"):
        select(scores, cutoff=0.5, top_share=0.5)
    with pytest.raises(ValueError, match="top_share is 0"):
        select(scores, top_share=0)


def test_balance_is_quieter_over_louder():
    traits = traits_of(session([(0, 10, "a b c")], [(12, 17, "d e f")]))
    assert traits[TRAIT["speech_time_balance"]] == pytest.approx(0.5)


def test_alternations_pass_over_what_lies_inside_the_other():
    left_ = [(0, 10, "one two three"), (20, 30, "four five six")]
    right = [(4, 4.5, "yeah"), (12, 18, "seven eight nine")]
    assert traits_of(session(left_, right))[TRAIT["alternations_per_minute"]] == 2.0


def test_short_share_needs_both_short_and_few_words():
    left_ = [(0, 1, "yes"), (3, 4, "a b c"), (6, 8, "long")]
    assert traits_of(session(left_, [(10, 11, "")]))[TRAIT["short_utterance_share"]] == 0.5


def test_questions_by_mark_or_else_by_first_word():
    marked = [(0, 2, "you did?"), (4, 6, "what a day")]
    assert traits_of(session(marked, []))[TRAIT["question_rate"]] == 0.5
    unmarked = [(0, 2, "did you go"), (4, 6, "i went there"), (8, 10, "we were there"), (12, 13, "")]
    assert traits_of(session(unmarked, []))[TRAIT["question_rate"]] == pytest.approx(1 / 3)


def test_longest_monologue_runs_over_own_gaps_and_backchannels():
    left_ = [(0, 10, "a b c"), (12, 30, "d e f")]
    right = [(5, 5.5, "yeah"), (40, 45, "g h i")]
    assert traits_of(session(left_, right))[TRAIT["one_minus_longest_monologue_share"]] == pytest.approx(0.5)


def test_overlaps_per_minute():
    left_ = [(0, 10, "a b c"), (20, 30, "d e f")]
    right = [(5, 6, "g"), (8, 12, "h i j"), (30, 31, "k")]
    assert traits_of(session(left_, right, 120.0))[TRAIT["overlaps_per_minute"]] == 1.0


def test_a_silent_session_has_no_liveliness():
    assert traits_of(session([], [])).tolist() == [0, 0, 0, 0, 1, 0]
