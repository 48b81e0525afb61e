"""Words on frames of 80 ms, as a model of Moshi's kind reads them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.contract.types import HistoryPart
from duplex_bench.systems.adapters.mimi_models.grid import END_OF_PAD, FRAME_SAMPLES, PAD, text_row, whole_frames

pytestmark = pytest.mark.unit


def letters(word):
    return [100 + ord(letter) for letter in word]


def shown(row):
    marks = {PAD: ".", END_OF_PAD: "|"}
    return "".join(marks[token] if token in marks else chr(token - 100) for token in row)


@pytest.mark.parametrize(
    ("spoken", "frames", "row", "lost"),
    [
        ([], 4, "....", 0),
        # 0.40 s is frame 5; the frame before tells that a word begins.
        ([("ab", 0.40, 0.8)], 9, "....|ab..", 0),
        # The first frame has none before it.
        ([("ab", 0.0, 0.1)], 4, "ab..", 0),
        # A word that begins while the one before it is still written waits, without a mark between.
        ([("abc", 0.08, 0.2), ("de", 0.16, 0.3)], 7, "|abcde.", 0),
        # One frame between: it becomes the mark.
        ([("ab", 0.08, 0.2), ("c", 0.32, 0.4)], 6, "|ab|c.", 0),
        # A stretch is spread over its time by letters: the second word begins half way.
        ([("ab cd", 0.0, 0.8)], 10, "ab..|cd...", 0),
        # What does not fit is counted.
        ([("abcd", 0.16, 0.4)], 4, ".|ab", 2),
        ([("ab", 3.0, 3.1)], 4, "....", 2),
    ],
)
def test_words_stand_where_they_are_spoken(spoken, frames, row, lost):
    made, n_lost = text_row(spoken, frames, letters)
    assert (shown(made), n_lost) == (row, lost)


def test_an_unknown_piece_is_not_a_mark():
    row, lost = text_row([("a", 0.16, 0.3)], 5, lambda word: [END_OF_PAD, 7, PAD])
    assert (row.tolist(), lost) == ([PAD, END_OF_PAD, 7, PAD, PAD], 0)


spoken_words = st.lists(
    st.tuples(st.text("abcdef", min_size=1, max_size=6), st.floats(0, 10), st.floats(0, 1)), max_size=8
)


@given(spoken_words, st.integers(1, 150))
def test_no_token_is_lost_unseen_doubled_or_moved_before_its_time(words, frames):
    spoken = sorted((word, start, start + length) for word, start, length in words)
    row, lost = text_row(
        [(word, start, end) for word, start, end in sorted(spoken, key=lambda w: w[1])], frames, letters
    )
    told = "".join(word for word, *_ in sorted(spoken, key=lambda w: w[1]))
    written = "".join(chr(token - 100) for token in row if token not in (PAD, END_OF_PAD))
    assert len(row) == frames
    assert len(written) + lost == len(told)
    if not lost:
        assert written == told
    if spoken:
        earliest = min(start for _, start, _ in spoken)
        assert all(token in (PAD, END_OF_PAD) for token in row[: int(earliest / 0.08 + 1e-6)])


@given(
    st.lists(st.tuples(st.integers(3, 8), st.floats(0, 0.0799)), min_size=1, max_size=12),
    st.integers(0, FRAME_SAMPLES - 1),
)
def test_a_word_is_forced_at_its_own_frame(gaps, lacking):
    """Words of at most two pieces with a frame or more between them: each begins where it was said, to the frame."""
    frames = np.cumsum([gap for gap, _ in gaps])
    starts_s = [0.08 * frame + within for frame, (_, within) in zip(frames, gaps, strict=True)]
    words = [(chr(ord("a") + number) * 2, start_s, start_s + 0.1) for number, start_s in enumerate(starts_s)]
    row, lost = text_row(words, int(frames[-1]) + 3, letters)
    assert lost == 0
    for frame, (word, _, _) in zip(frames, words, strict=True):
        assert row[frame - 1 : frame + 2].tolist() == [END_OF_PAD, *letters(word)]
    assert int((row != PAD).sum()) == 3 * len(words)
    # The silence that fills the first frame moves audio and words alike.
    n = round(starts_s[-1] * 24_000) + 1 + lacking
    pcm = np.zeros(n, dtype=np.float32)
    pcm[round(starts_s[-1] * 24_000)] = 1.0
    user, _, before_s = whole_frames(HistoryPart("both", "", 0.0, n / 24_000, pcm, pcm))
    shifted, _ = text_row([("z", starts_s[-1] + before_s, 99.0)], len(user), letters)
    at = int(np.flatnonzero(shifted == letters("z")[0])[0])
    # To the sample: the one that carries the mark, where rounding puts it on the edge the one before it.
    assert at in {
        int(user.reshape(-1).argmax()) // FRAME_SAMPLES,
        (int(user.reshape(-1).argmax()) - 1) // FRAME_SAMPLES,
    }


@given(st.integers(1, 3 * FRAME_SAMPLES))
def test_a_history_ends_where_the_stream_begins(n):
    pcm = np.arange(1, n + 1, dtype=np.float32)
    user, assistant, before_s = whole_frames(HistoryPart("both", "", 0.0, n / 24_000, pcm, -pcm))
    assert user.shape == assistant.shape == (-(-n // FRAME_SAMPLES), FRAME_SAMPLES)
    assert np.array_equal(user.reshape(-1)[-n:], pcm)
    assert np.array_equal(user, -assistant)
    assert round(before_s * 24_000) == user.size - n
    assert not user.reshape(-1)[: user.size - n].any()


def test_channels_of_unequal_length_are_refused():
    one, other = np.zeros(10, dtype=np.float32), np.zeros(11, dtype=np.float32)
    with pytest.raises(ValueError, match="equal length"):
        whole_frames(HistoryPart("both", "", 0.0, 1.0, one, other))
    with pytest.raises(ValueError, match="both channels"):
        whole_frames(HistoryPart("both", "", 0.0, 1.0, None, other))
