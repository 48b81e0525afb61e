import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.measures import MeasureError
from duplex_bench.conversation.turn_end import measure_turn_end

pytestmark = pytest.mark.unit

TURN_END_S = 5.0
CAP_S = 35.0


def measured(gate, words, **settings):
    return measure_turn_end(gate, words, TURN_END_S, cap_at_s=CAP_S, **settings)


def test_a_plain_reply():
    result = measured([(6.0, 7.0), (7.1, 8.5)], [(6.05, 6.4), (7.2, 8.4)])
    assert result.responded
    assert result.latency_s == pytest.approx(1.05)
    assert result.duration_s == pytest.approx(2.5)
    assert (result.first_reply_s, result.resumptions) == (pytest.approx(2.5), 0)
    assert (result.begun_before, result.spoke_before, result.at_cap) == (False, False, False)


def test_nothing():
    result = measured([], [])
    assert not result.responded
    assert (result.latency_s, result.duration_s, result.resumptions, result.at_cap) == (None, None, None, False)


def test_audio_without_words_is_no_response():
    result = measured([(6.0, 7.0)], [])
    assert not result.responded
    assert (result.latency_s, result.duration_s) == (None, 1.0)


def test_speech_under_way_has_latency_of_zero_or_less():
    result = measured([(4.0, 6.0)], [(4.2, 4.5), (5.5, 5.9)])
    assert result.latency_s == pytest.approx(-0.8)
    assert result.begun_before
    assert result.word_indices == (0, 1)


def test_begun_at_the_turn_end_has_latency_zero():
    assert measured([(5.0, 6.0)], [(5.0, 5.5)]).latency_s == 0.0


def test_speech_over_by_the_turn_end_is_no_response():
    result = measured([(2.0, 3.0), (6.0, 7.0)], [(2.1, 2.9), (6.2, 6.8)])
    assert result.latency_s == pytest.approx(1.2)
    assert result.word_indices == (1,)
    assert result.duration_s == 1.0
    assert result.spoke_before


def test_a_gap_of_the_gate_at_the_turn_end_does_not_make_speech_fresh():
    result = measured([(3.0, 4.9), (5.1, 6.0)], [(3.1, 3.5), (5.2, 5.6)])
    assert result.begun_before
    assert result.latency_s == pytest.approx(-1.9)


def test_a_remark_whose_last_word_is_timed_past_the_gate_stays_before():
    # The recogniser ends the word 50 ms after the turn end, the gate says that it was over.
    result = measured([(3.0, 4.6), (6.0, 7.0)], [(4.3, 5.05), (6.1, 6.5)])
    assert result.word_indices == (1,)


def test_a_word_below_the_gate_still_answers():
    result = measured([], [(5.8, 6.2)])
    assert result.responded
    assert result.latency_s == pytest.approx(0.8)
    assert result.duration_s is None


def test_resumptions_follow_gaps_of_more_than_a_second():
    result = measured([(6.0, 7.0), (8.0, 8.5), (9.6, 10.0), (15.0, 16.0)], [(6.0, 6.5)])
    assert (result.first_reply_s, result.resumptions) == (2.5, 2)
    assert result.duration_s == 10.0


@pytest.mark.parametrize(
    ("gate", "at_cap"),
    [
        ([(6.0, 35.0)], True),
        ([(6.0, 36.0)], True),
        ([(6.0, 34.8)], True),
        ([(6.0, 34.7)], False),
        ([(6.0, 7.0), (35.1, 36.0)], False),
        ([(6.0, 7.0), (34.9, 35.0)], True),
    ],
)
def test_at_the_cap(gate, at_cap):
    assert measured(gate, [(6.1, 6.5)]).at_cap is at_cap


def test_order_of_words_is_kept_by_index():
    assert measured([(6.0, 9.0)], [(8.0, 8.5), (6.1, 6.4)]).word_indices == (1, 0)


def test_bad_input_is_named():
    with pytest.raises(MeasureError, match="cap_at_s"):
        measure_turn_end([], [], 5.0, cap_at_s=4.0)
    with pytest.raises(MeasureError, match="word_times_s, row 1"):
        measured([], [(1.0, 2.0), (3.0, 2.0)])


@given(
    st.sets(st.integers(0, 4000), max_size=12),
    st.lists(st.tuples(st.integers(0, 4000), st.integers(1, 80)), max_size=8),
    st.integers(0, 10),
)
def test_invariants(edges, words, shift):
    ordered = [edge / 128 for edge in sorted(edges)]
    gate = list(zip(ordered[::2], ordered[1::2], strict=False))
    times = [(start / 128, (start + length) / 128) for start, length in words]
    result = measure_turn_end(gate, times, 8.0, cap_at_s=40.0)
    moved = measure_turn_end(
        [(a + shift, b + shift) for a, b in gate],
        [(a + shift, b + shift) for a, b in times],
        8.0 + shift,
        cap_at_s=40.0 + shift,
    )
    assert result.latency_s == moved.latency_s
    assert result.duration_s == moved.duration_s
    assert result.word_indices == moved.word_indices
    assert (result.latency_s is None) == (not result.responded)
    assert all(times[index][1] > 8.0 or result.begun_before for index in result.word_indices)
    if result.duration_s is not None:
        assert result.first_reply_s <= result.duration_s
        assert (result.resumptions == 0) == (result.first_reply_s == result.duration_s)
