import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.speech.chunks import sound_chunks

pytestmark = pytest.mark.unit

RATE_HZ = 100
tracks = st.lists(st.tuples(st.integers(0, 80), st.integers(1, 200)), max_size=8).map(
    lambda runs: np.concatenate(
        [np.zeros(0)] + [part for zeros, sound in runs for part in (np.zeros(zeros), np.full(sound, 0.5))]
    ).astype(np.float32)
)


class HalvesDetector:
    """Finds a silence in the middle of every second."""

    engine_id = "halves"

    def speech_regions(self, samples, sample_rate_hz):
        edges = list(range(0, len(samples), sample_rate_hz))
        return np.asarray([(edge, min(edge + sample_rate_hz - 10, len(samples))) for edge in edges], dtype=np.int64)


@given(tracks)
def test_chunks_hold_every_sound_once_and_begin_and_end_with_it(track):
    chunks = sound_chunks(track, RATE_HZ, min_zero_s=0.3, max_s=1.5)
    covered = np.zeros(len(track), dtype=int)
    for start, stop in chunks:
        covered[start:stop] += 1
        assert 0 < stop - start <= 150
        assert track[start] != 0
        assert track[stop - 1] != 0
    assert (covered[track != 0] == 1).all()
    assert (covered <= 1).all()
    for start, stop in chunks:
        assert (np.diff(np.flatnonzero(track[start:stop])) <= 30).all()


@given(tracks, st.integers(0, 500))
def test_what_comes_before_changes_nothing(track, n_before):
    chunks = sound_chunks(track, RATE_HZ, max_s=1.5, vad=HalvesDetector())
    later = sound_chunks(
        np.concatenate([np.zeros(n_before, np.float32), track]), RATE_HZ, max_s=1.5, vad=HalvesDetector()
    )
    assert np.array_equal(chunks + n_before, later)


def test_a_long_stretch_is_cut_in_the_last_silence_that_fits():
    track = np.full(1000, 0.5, dtype=np.float32)
    chunks = sound_chunks(track, RATE_HZ, max_s=3.2, vad=HalvesDetector())
    assert chunks.tolist() == [[0, 295], [295, 595], [595, 895], [895, 1000]]


def test_without_a_detector_it_is_cut_at_the_limit():
    chunks = sound_chunks(np.full(700, 0.5, dtype=np.float32), RATE_HZ, max_s=3.0)
    assert chunks.tolist() == [[0, 300], [300, 600], [600, 700]]
