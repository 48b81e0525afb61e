"""What the 256 futures say about the floor."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.speech.projection.classes import (
    FUTURE_BINS,
    N_CLASSES,
    NOW_BINS,
    active_bins,
    first_speakers_share,
)
from duplex_bench.speech.projection.settings import FloorProjection, ProjectionSettings

pytestmark = pytest.mark.unit


def certain(number):
    return np.eye(N_CLASSES)[[number]]


def test_a_class_is_its_bits_with_the_first_speaker_first():
    bins = active_bins()
    assert bins.shape == (256, 2, 4)
    assert not bins[0].any()
    assert bins[1].tolist() == [[True, False, False, False], [False] * 4]
    assert bins[0b1000_0000].tolist() == [[False] * 4, [False, False, False, True]]
    assert len({one.tobytes() for one in bins}) == N_CLASSES


def test_the_vendors_table_of_classes_is_the_same(golden):
    assert np.array_equal(active_bins().reshape(N_CLASSES, 8), golden["codes"])


@pytest.mark.parametrize(
    ("number", "bins", "share"),
    [
        (0b0000_0011, NOW_BINS, 1.0),
        (0b0011_0000, NOW_BINS, 0.0),
        (0b0000_0011, FUTURE_BINS, 0.5),
        (0b0001_0011, NOW_BINS, 2 / 3),
        (0, NOW_BINS, 0.5),
        (255, FUTURE_BINS, 0.5),
    ],
)
def test_a_speakers_share_counts_active_bins(number, bins, share):
    assert first_speakers_share(certain(number), bins)[0] == pytest.approx(share, abs=1e-4)


@given(st.integers(0, 2**32 - 1))
def test_swapping_the_speakers_swaps_their_shares(seed):
    probabilities = np.random.default_rng(seed).dirichlet(np.ones(N_CLASSES), size=3)
    numbers = np.arange(N_CLASSES)
    swapped = probabilities[:, (numbers >> 4) | ((numbers & 15) << 4)]
    for bins in (NOW_BINS, FUTURE_BINS):
        assert first_speakers_share(probabilities, bins) == pytest.approx(
            1 - first_speakers_share(swapped, bins), abs=1e-6
        )


def test_another_shape_is_refused():
    with pytest.raises(ValueError, match="256"):
        first_speakers_share(np.ones((4, 16)) / 16, NOW_BINS)


def test_a_mean_takes_the_frames_that_have_heard_into_the_stretch():
    floor = FloorProjection(50.0, np.arange(10, dtype=np.float32), np.zeros(10, dtype=np.float32))
    # Frame k ends at (k + 1) / 50 s: 2 and 3 end in (0.04, 0.08].
    assert floor.mean(floor.now, 0.04, 0.08) == 2.5
    assert floor.mean(floor.now, 0.05, 0.06) == 2.0
    assert floor.mean(floor.now, 0.18, 9.0) == 9.0
    assert floor.mean(floor.now, 0.2, 0.4) is None
    assert floor.mean(floor.now, -1.0, 0.0) is None


@pytest.mark.parametrize("wrong", [{"context_s": -1.0}, {"step_s": 0.5}])
def test_stretches_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="projection"):
        ProjectionSettings("weights.pt", **wrong)
