import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.audio.activity import (
    IntervalError,
    active_at,
    bridge,
    checked,
    clip_intervals,
    first_onset,
    overlap_s,
    total_s,
)

pytestmark = pytest.mark.unit


@st.composite
def intervals_strategy(draw: st.DrawFn) -> np.ndarray:
    marks = draw(st.lists(st.integers(0, 400), unique=True, max_size=20).map(sorted))
    return np.array(marks[: len(marks) // 2 * 2], dtype=float).reshape(-1, 2) / 20


#   0.0  0.3   0.55  1.0    2.0   3.0
#    |----| gap |-----|      |-----|
SPEECH = [[0.0, 0.3], [0.55, 1.0], [2.0, 3.0]]


def test_a_gap_equal_to_the_bridge_is_joined() -> None:
    assert bridge(SPEECH).tolist() == [[0.0, 1.0], [2.0, 3.0]]
    assert bridge(SPEECH, 0.2499).tolist() == SPEECH
    assert bridge([]).shape == (0, 2)


def test_activity_is_half_open() -> None:
    assert active_at(SPEECH, 2.0)
    assert active_at(SPEECH, 0.4)
    assert not active_at(SPEECH, 0.4, bridge_s=0.0)
    assert not active_at(SPEECH, 3.0)
    assert not active_at(SPEECH, 1.0)
    assert not active_at([], 1.0)
    assert not active_at(SPEECH, -1.0)


def test_first_onset_excludes_its_start_and_includes_its_end() -> None:
    assert first_onset(SPEECH, 0.0, 5.0) == 2.0
    assert first_onset(SPEECH, 0.0, 2.0) == 2.0
    assert first_onset(SPEECH, 0.0, 1.9) is None
    assert first_onset(SPEECH, 2.0, 9.0) is None
    assert first_onset(SPEECH, 0.0, 5.0, bridge_s=0.1) == 0.55
    assert first_onset(SPEECH, -1.0, 5.0) == 0.0


def test_overlap_and_clip() -> None:
    assert clip_intervals(SPEECH, 0.2, 2.5).tolist() == [[0.2, 0.3], [0.55, 1.0], [2.0, 2.5]]
    assert overlap_s(SPEECH, 0.3, 0.55) == 0.0
    assert overlap_s(SPEECH, 2.0, 1.0) == 0.0
    assert total_s(SPEECH) == pytest.approx(1.75)


@given(intervals_strategy(), st.floats(0, 3))
def test_bridging_twice_is_bridging_once_and_only_gains_time(intervals: np.ndarray, bridge_s: float) -> None:
    once = bridge(intervals, bridge_s)
    np.testing.assert_array_equal(bridge(once, bridge_s), once)
    assert total_s(once) >= total_s(intervals) - 1e-12
    assert (once[1:, 0] - once[:-1, 1] > bridge_s).all()


@given(intervals_strategy(), st.floats(-1, 21))
def test_active_without_a_bridge_means_inside_an_interval(intervals: np.ndarray, t_s: float) -> None:
    inside = any(start <= t_s < stop for start, stop in bridge(intervals, 0.0))
    assert active_at(intervals, t_s, bridge_s=0.0) == inside


@given(intervals_strategy(), st.floats(0, 20), st.floats(0, 20))
def test_the_parts_before_and_after_a_cut_add_up(intervals: np.ndarray, cut_s: float, end_s: float) -> None:
    whole = overlap_s(intervals, 0.0, max(cut_s, end_s))
    parts = overlap_s(intervals, 0.0, min(cut_s, end_s)) + overlap_s(intervals, min(cut_s, end_s), max(cut_s, end_s))
    assert parts == pytest.approx(whole)


@pytest.mark.parametrize(
    ("intervals", "message"),
    [
        ([[0.0, np.nan]], "interval 0 .* finite"),
        ([[0.0, 1.0], [2.0, 2.0]], "interval 1"),
        ([[0.0, 1.0], [0.5, 2.0]], "interval 1"),
        ([[3.0, 4.0], [1.0, 2.0]], "interval 1"),
        ([1.0, 2.0], "shape"),
    ],
)
def test_bad_intervals_are_named(intervals: list, message: str) -> None:
    with pytest.raises(IntervalError, match=message):
        checked(intervals)


def test_a_negative_bridge_is_refused() -> None:
    with pytest.raises(IntervalError, match="bridge_s"):
        bridge(SPEECH, -0.1)
