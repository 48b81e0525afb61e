import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.audio.activity import bridge
from duplex_bench.audio.gate import intervals_s
from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import ProtocolSettings, StreamPlan, plan_for
from duplex_bench.systems.adapters import always_speak, never_speak
from duplex_bench.systems.adapters.always_speak import AlwaysSpeak
from duplex_bench.systems.adapters.planted import PlantedSystem

RATE = 24_000
LIVE = np.zeros(RATE * 2, dtype=np.float32)


def rollout(system, stimulus_id="x", plan=None):
    return run(system, OpenRequest(seed=0, stimulus_id=stimulus_id), LIVE, RATE, plan or StreamPlan(1.0))


@pytest.mark.unit
@pytest.mark.parametrize(
    ("protocol", "outcome", "timeline_s"),
    [("pause", Outcome.COMPLETED, 13.0), ("multiparty", Outcome.COMPLETED, 7.0), ("turn_end", Outcome.NO_AUDIO, 32.0)],
)
def test_never_speak_says_nothing_anywhere(protocol, outcome, timeline_s):
    result = rollout(never_speak.create({}), plan=plan_for(protocol, ProtocolSettings()))
    assert (result.outcome, len(result.listener), result.timeline_s) == (outcome, 0, timeline_s)


@pytest.mark.engine
def test_always_speak_is_one_interval_from_the_first_sample_to_the_last():
    system = always_speak.create({})
    result = rollout(system, plan=plan_for("turn_end", ProtocolSettings()))
    assert result.timeline_s == 32.0
    assert len(result.listener) == 32 * RATE
    active = bridge(intervals_s(result.listener, RATE))
    assert active.shape == (1, 2)
    assert active[0, 0] == 0.0
    assert active[0, 1] > 31.75


@pytest.mark.unit
@pytest.mark.parametrize(("pause_s", "fits"), [(0.2, True), (0.3, False)])
def test_a_clip_with_a_pause_longer_than_the_bridge_is_refused(pause_s, fits):
    tone = np.full(RATE, 0.1, dtype=np.float32)
    clip = np.concatenate([tone, np.zeros(round(pause_s * RATE), dtype=np.float32), tone])
    if fits:
        assert len(AlwaysSpeak(clip).loop) == len(clip)
        return
    with pytest.raises(ValueError, match="without pauses"):
        AlwaysSpeak(clip)


@pytest.mark.unit
def test_settings_that_are_not_known_are_refused():
    with pytest.raises(ValueError, match="volume"):
        always_speak.create({"volume": 3})


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, RATE * 2), st.integers(1, RATE // 2)), max_size=5),
    st.lists(st.tuples(st.integers(0, RATE), st.integers(1, 100)), max_size=2),
)
@pytest.mark.unit
def test_planted_speech_is_heard_at_its_samples_and_nowhere_else(spans, default):
    def schedule(of):
        return [(start, np.full(length, 0.1, dtype=np.float32)) for start, length in of]

    system = PlantedSystem({"mine": schedule(spans)}, schedule(default))
    for stimulus_id, expected_spans in (("mine", spans), ("other", default)):
        expected = np.zeros(RATE * 3, dtype=np.float32)
        for start, length in expected_spans:
            expected[start : start + length] += np.float32(0.1)
        track = np.zeros(RATE * 3, dtype=np.float32)
        heard = rollout(system, stimulus_id).listener
        track[: len(heard)] = heard
        assert np.allclose(track, expected, atol=1e-6)
        assert np.array_equal(track != 0, expected != 0)
