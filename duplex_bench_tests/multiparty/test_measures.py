from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.multiparty.measures import (
    answer_span_s,
    carried_over,
    fresh_onset,
    response_present,
    silence_kept,
    speech_in_window_s,
    yielded,
)

pytestmark = pytest.mark.unit


def drawn(timeline: str, cell_s: float = 0.5) -> np.ndarray:
    """Speech of a drawn timeline: each character is ``cell_s``, '#' is speech."""
    cells = np.array([character == "#" for character in timeline], dtype=int)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], cells, [0]])))
    return edges.reshape(-1, 2) * cell_s


millis = st.integers(0, 20_000)


@st.composite
def speech(draw: st.DrawFn) -> np.ndarray:
    edges = sorted(draw(st.lists(millis, min_size=0, max_size=12, unique=True)))
    edges = edges[: len(edges) // 2 * 2]
    return np.array(edges, dtype=np.float64).reshape(-1, 2) / 1000


@pytest.mark.parametrize(
    ("timeline", "present", "fresh"),
    [
        # T ends at the bar, 2 s in; the window has ten cells.
        ("....|..........", False, False),
        ("....|##........", True, False),  # onset exactly at the end of T
        ("....|.##.......", True, True),
        ("..##|##........", True, False),  # under way at the end of T
        ("####|..........", False, False),  # stops exactly at the end of T
        ("..#.|.#........", True, True),
        ("....|.........#", True, True),
        ("....|..........#", True, True),  # onset exactly 5 s after the end of T: fresh, see below
        ("####|####......", True, False),
        ("..##|##..##....", True, False),  # a second utterance does not make it fresh
    ],
)
def test_request_window(timeline: str, present: bool, fresh: bool) -> None:
    heard = drawn(timeline.replace("|", ""))
    assert fresh_onset(heard, 2.0) is fresh
    # [0, 5) for presence and (0, 5] for onset: only an onset at exactly 5 s tells them apart.
    at_the_end = timeline.endswith("..........#")
    assert response_present(heard, (2.0, 7.0)) is (present and not at_the_end)


def test_bridged_gap_at_the_end_of_the_request_is_not_fresh() -> None:
    assert not fresh_onset([(1.0, 1.95), (2.15, 3.0)], 2.0)
    assert not fresh_onset([(1.0, 1.9), (2.15, 3.0)], 2.0)  # a gap of exactly 0.25 s is bridged
    assert fresh_onset([(1.0, 1.89), (2.15, 3.0)], 2.0)
    assert fresh_onset([(1.0, 1.95), (2.15, 3.0)], 2.0, bridge_s=0.0)


def test_onset_just_after_five_seconds_is_too_late() -> None:
    assert fresh_onset([(7.0, 8.0)], 2.0)
    assert not fresh_onset([(7.001, 8.0)], 2.0)
    # 0.1 + 0.2 is not 0.3 in binary: the rule is decided on microseconds.
    assert not fresh_onset([(0.1 + 0.2, 1.0)], 0.3)
    assert fresh_onset([(0.1 + 0.2 + 5.0, 9.0)], 0.3)


# Question ends at 1 s, resolution begins at 4 s, next human at 8 s: cells of 0.5 s.
#        Q.|.....|R......|next
@pytest.mark.parametrize(
    ("timeline", "eligible", "passed", "outcome", "latency"),
    [
        ("..|......|........|....", False, None, "not_eligible_no_onset_in_window", None),
        (".#|#.....|........|....", False, None, "not_eligible_active_at_question_end", None),
        ("..|#####.|........|....", False, None, "not_eligible_active_at_question_end", None),
        ("..|.####.|........|....", False, None, "not_eligible_silent_at_resolution", None),
        ("..|.#####|........|....", False, None, "not_eligible_silent_at_resolution", None),
        ("..|.#####|##......|....", True, True, "stopped", 1.0),
        ("..|.#####|####....|....", True, True, "stopped", 2.0),  # stops exactly at N4R + 2 s
        ("..|.#####|#####...|....", True, False, "speaking_through_deadline", 2.5),
        ("..|.#####|########|####", True, False, "speaking_through_deadline", None),
        ("..|.#####|##..#...|....", True, False, "speaking_through_deadline", 1.0),  # begins again exactly at +2 s
        ("..|.#####|##...#..|....", True, False, "resumed", 1.0),
        ("..|.#####|##......|##..", True, True, "stopped", 1.0),  # speaks again only after the next human onset
        ("..|.##.##|#.......|....", True, True, "stopped", 0.5),  # another utterance of the same window
        ("..|......|##......|....", True, True, "stopped", 1.0),  # first onset exactly 3 s after, at N4R
    ],
)
def test_yield(timeline: str, eligible: bool, passed: bool | None, outcome: str, latency: float | None) -> None:
    event = yielded(drawn(timeline.replace("|", "")), 1.0, 4.0, 8.0)
    assert (event.eligible, event.passed, event.outcome) == (eligible, passed, outcome)
    assert event.stop_latency_s == pytest.approx(latency) if latency is not None else event.stop_latency_s is None


def test_yield_is_silent_to_the_later_of_deadline_and_next_onset() -> None:
    stopped = [(2.0, 5.0), (6.5, 7.0)]
    assert yielded(stopped, 1.0, 4.0, 8.0).outcome == "resumed"
    assert yielded(stopped, 1.0, 4.0, 6.5).outcome == "stopped"
    assert yielded(stopped, 1.0, 4.0, 5.0).outcome == "stopped"
    # Stopping exactly where the observation ends has been seen; going on beyond it has not.
    assert yielded([(2.0, 6.0)], 1.0, 4.0, 5.0).stop_latency_s == 2.0
    assert yielded([(2.0, 6.5)], 1.0, 4.0, 5.0).stop_latency_s is None


def test_yield_refuses_marks_out_of_order() -> None:
    with pytest.raises(ValueError, match="marks"):
        yielded([], 4.0, 1.0, 8.0)


def test_empty_and_wordless_inputs() -> None:
    assert not response_present([], (0.0, 5.0))
    assert not fresh_onset([], 1.0)
    assert silence_kept([], (0.0, 3.0))
    assert answer_span_s([], (0.0, 5.0)) is None
    with pytest.raises(ValueError, match="interval"):
        response_present([(2.0, 1.0)], (0.0, 5.0))
    with pytest.raises(ValueError, match="window"):
        response_present([], (5.0, 0.0))


def test_answer_runs_to_the_end_of_the_utterance_begun_in_the_window() -> None:
    assert answer_span_s([(3.0, 3.4), (5.0, 9.0), (9.1, 12.0), (15.0, 16.0)], (2.0, 7.0)) == (2.0, 12.0)
    assert answer_span_s([(1.0, 4.0)], (2.0, 7.0)) == (2.0, 4.0)


def test_carry_over_needs_an_answer_under_way() -> None:
    request, window = (10.0, 12.0), (17.0, 20.0)
    assert carried_over([(14.0, 18.0)], window, request) == (True, False)
    assert carried_over([(14.0, 18.0), (18.5, 19.0)], window, request) == (True, True)
    assert carried_over([(17.0, 18.0)], window, request) == (False, True)
    assert carried_over([(0.0, 30.0)], window, request) == (False, True)  # spoke before anybody asked
    assert carried_over([(14.0, 16.0)], window, request) == (False, False)
    # The bridge alone reaches into the window: no speech is in it.
    assert carried_over([(14.0, 16.95), (20.05, 21.0)], window, request) == (False, False)


@given(speech(), millis, st.integers(0, 50_000))
def test_shift_changes_nothing(heard: np.ndarray, end_ms: int, shift_ms: int) -> None:
    end_s, shift_s = end_ms / 1000, shift_ms / 1000
    moved, moved_end_s = heard + shift_s, end_s + shift_s
    assert fresh_onset(heard, end_s) == fresh_onset(moved, moved_end_s)
    assert response_present(heard, (end_s, end_s + 5)) == response_present(
        moved, (end_s + shift_s, end_s + shift_s + 5)
    )
    here, there = (
        yielded(heard, end_s, end_s + 3, end_s + 6),
        yielded(moved, end_s + shift_s, end_s + shift_s + 3, end_s + shift_s + 6),
    )
    assert here.outcome == there.outcome


@given(speech(), millis)
def test_fresh_implies_speech_by_the_end_of_the_window(heard: np.ndarray, end_ms: int) -> None:
    end_s = end_ms / 1000
    if fresh_onset(heard, end_s):
        assert response_present(heard, (end_s, end_s + 5.001))


@given(speech(), millis, st.integers(1, 8000))
def test_presence_is_the_opposite_of_silence_and_of_zero_seconds(
    heard: np.ndarray, start_ms: int, length_ms: int
) -> None:
    window = (start_ms / 1000, (start_ms + length_ms) / 1000)
    assert response_present(heard, window) is not silence_kept(heard, window)
    assert response_present(heard, window) is (speech_in_window_s(heard, window) > 0)


@given(speech(), millis, st.integers(0, 4000), st.integers(0, 4000))
def test_yield_against_a_sampled_timeline(heard: np.ndarray, end_ms: int, wait_ms: int, then_ms: int) -> None:
    """The same rule, written on a grid of milliseconds."""
    resolved_ms, next_ms = end_ms + wait_ms, end_ms + wait_ms + then_ms
    active = np.zeros(60_000, dtype=bool)
    for start, stop in np.round(heard * 1000).astype(int):
        active[start:stop] = True
    edges = np.round(heard * 1000).astype(int)
    for before, after in pairwise(edges):
        if after[0] - before[1] <= 250:
            active[before[1] : after[0]] = True
    onsets = np.flatnonzero(active & ~np.concatenate([[False], active[:-1]]))
    eligible = (
        not active[end_ms] and bool(((onsets > end_ms) & (onsets <= end_ms + 3000)).any()) and bool(active[resolved_ms])
    )
    event = yielded(heard, end_ms / 1000, resolved_ms / 1000, next_ms / 1000)
    assert event.eligible is eligible
    if eligible:
        deadline = resolved_ms + 2000
        passed = not active[deadline] and not active[deadline : max(deadline, next_ms)].any()
        assert event.passed is bool(passed)
