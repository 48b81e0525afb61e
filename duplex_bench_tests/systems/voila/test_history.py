"""Words of a history on Voila's frames; no model is needed for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.systems.adapters.voila.history import written

pytestmark = pytest.mark.unit


def test_words_stand_at_their_frames_and_the_floor_is_marked_by_stretch():
    spoken = [("well", 0.40, 0.6), ("yes", 0.7, 0.9), ("no", 3.0, 3.21)]
    told = written(spoken, 100, 1.0)
    assert told.words == {10: ("well",), 17: ("yes",), 75: ("no",)}
    assert (told.starts, told.stops) == ({10, 75}, {23, 81})
    assert written(spoken, 100, 0.05).starts == {10, 17, 75}


def test_what_begins_behind_the_history_is_left_out():
    told = written([("a", 0.0, 0.1), ("b", 0.4, 0.5)], 10, 1.0)
    assert (told.words, told.starts, told.stops) == ({0: ("a",)}, {0}, {3})


@given(st.lists(st.tuples(st.floats(0, 20), st.floats(0.01, 1)), max_size=12), st.floats(0, 2))
def test_every_word_is_written_at_its_frame_inside_a_stretch(times, same_turn_s):
    spoken = [(str(number), start, start + length) for number, (start, length) in enumerate(times)]
    told = written(spoken, 1000, same_turn_s)
    at = {text: frame for frame, words in told.words.items() for text in words}
    assert sorted(at, key=int) == [text for text, _, _ in spoken]
    for text, start_s, _ in spoken:
        assert 0.04 * at[text] <= start_s + 1e-6
        assert start_s < 0.04 * (at[text] + 1) + 1e-6
        assert max(start for start in told.starts if start <= at[text]) <= at[text] < max(told.stops)
