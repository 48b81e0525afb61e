import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.rollout.playback import Playback

pytestmark = pytest.mark.unit

RATE = 100


def _ones(n, value=1.0):
    return np.full(n, value, dtype=np.float32)


def test_a_chunk_starts_at_the_later_of_its_arrival_and_the_end_before():
    player = Playback(RATE)
    assert player.push(0.5, _ones(100)) == 50
    assert player.push(0.6, _ones(10, 0.5)) == 150
    assert player.push(2.0, _ones(10, 0.25)) == 200
    track = player.render()
    assert len(track) == 210
    assert [track[at] for at in (49, 50, 149, 150, 160, 200)] == [0, 1, 1, 0.5, 0, 0.25]


def test_a_flush_cuts_hard_reports_what_was_heard_and_drops_late_chunks():
    player = Playback(RATE)
    player.push(0.0, _ones(100), "a")
    player.push(0.1, _ones(50), "a")
    player.push(0.1, _ones(30), "b")
    cuts = player.flush(0.7)
    assert [(cut.response_id, cut.heard_s, cut.cut_samples) for cut in cuts] == [("a", 0.7, 80), ("b", 0.0, 30)]
    assert player.push(0.8, _ones(20), "a") is None
    assert player.push(0.8, _ones(20), "b") is None
    assert len(player.render()) == 70
    assert player.push(0.75, _ones(20), "c") == 75
    assert len(player.render()) == 95
    assert player.heard_until(10.0, "a") == 0.7
    assert player.heard_until(0.8) == 0.75
    assert player.heard_until(0.3, "a") == 0.3


def test_a_response_whose_player_ran_dry_is_over_after_a_flush():
    player = Playback(RATE)
    player.push(0.0, _ones(10), "a")
    assert player.flush(0.5) == []
    assert player.push(0.6, _ones(10), "a") is None


def test_without_response_ids_a_flush_cuts_the_queue_alone():
    player = Playback(RATE)
    player.push(0.0, _ones(100))
    assert player.flush(0.5)[0].cut_samples == 50
    assert player.push(0.6, _ones(10)) == 60


def test_an_earlier_response_that_was_heard_whole_is_not_reported():
    player = Playback(RATE)
    player.push(0.0, _ones(10), "a")
    player.push(0.2, _ones(50), "b")
    assert [cut.response_id for cut in player.flush(0.3)] == ["b"]


@pytest.mark.parametrize("second", ["b", None])
def test_a_second_flush_ends_no_response_that_came_before_the_last(second):
    player = Playback(RATE)
    player.push(0.0, _ones(10), "a")
    player.push(0.05, _ones(50), second)
    assert [cut.response_id for cut in player.flush(0.1)] == [second]
    assert player.flush(0.1) == []
    assert player.push(0.1, _ones(10), "a") == 10


@pytest.mark.parametrize(
    "samples",
    [np.ones((2, 3), dtype=np.float32), np.ones(3, dtype=np.int16), np.array([0.0, np.nan], dtype=np.float32)],
)
def test_audio_of_another_kind_is_refused(samples):
    with pytest.raises(ValueError, match="chunk"):
        Playback(RATE).push(0.0, samples)


@pytest.mark.parametrize("at", [-0.1, float("nan"), float("inf")])
def test_times_are_finite_and_not_negative(at):
    player = Playback(RATE)
    for call in (lambda: player.push(at, _ones(3)), lambda: player.flush(at), lambda: player.heard_until(at)):
        with pytest.raises(ValueError, match="must be a finite time"):
            call()


def test_what_was_heard_does_not_change_with_the_callers_buffer():
    player = Playback(RATE)
    buffer = _ones(5)
    player.push(0.0, buffer)
    buffer[:] = 0
    assert player.render().sum() == 5


action = st.one_of(
    st.tuples(st.just("push"), st.integers(0, 40), st.integers(0, 120), st.sampled_from([None, "a", "b", "c"])),
    st.tuples(st.just("flush"), st.integers(0, 40), st.just(0), st.none()),
)


@settings(deadline=None)
@given(st.lists(action, max_size=25))
def test_a_sample_by_sample_player_hears_the_same(actions):
    """Reference model: a queue of single samples and a clock that ticks once a sample."""
    player = Playback(RATE)
    queue, heard, cut, last = [], {}, set(), None
    now = 0

    def tick_until(then):
        nonlocal now, queue
        while now < then:
            if queue and queue[0][0] <= now:
                heard[now] = queue.pop(0)[1:]
            now += 1

    value = 0
    for kind, wait, length, response in actions:
        tick_until(now + wait)
        if kind == "push":
            value += 1
            player.push(now / RATE, _ones(length, value), response)
            if response not in cut and length:
                queue += [(now, value, response)] * length
                last = response
        else:
            truncations = player.flush(now / RATE)
            lost = {}
            for _, _, response_of in queue:
                lost[response_of] = lost.get(response_of, 0) + 1
            assert {c.response_id: c.cut_samples for c in truncations} == lost
            for truncation in truncations:
                assert truncation.heard_samples == sum(r == truncation.response_id for _, r in heard.values())
            cut |= {r for r in [*lost, last] if r is not None}
            queue = []
    for response in ("a", "b", "c"):
        expected = sum(r == response for _, r in heard.values()) / RATE
        assert player.heard_until(now / RATE, response) == expected
    tick_until(now + len(queue) + 1)
    track = player.render()
    assert len(track) == max(heard, default=-1) + 1
    expected = np.zeros(len(track), dtype=np.float32)
    for at, (level, _) in heard.items():
        expected[at] = level
    assert np.array_equal(track, expected)
