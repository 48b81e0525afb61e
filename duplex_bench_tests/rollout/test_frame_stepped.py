import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.contract.types import OpenRequest, Out, Prompt, SessionStats, Spec
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.outputs import DeclaredLatency
from duplex_bench.rollout.plan import ProtocolSettings, StreamPlan, plan_for

pytestmark = pytest.mark.unit

RATE = 1000
REQUEST = OpenRequest(seed=1, stimulus_id="x")
TAIL = StreamPlan(silence_after_s=1.0)
STEPPED = Spec(RATE, RATE, 100, 100, lockstep=True)
FREE = Spec(RATE, RATE, 100)


def live(seconds=1.0):
    return np.arange(1, round(seconds * RATE) + 1, dtype=np.float32) / 10_000


def tone(n, level=0.5):
    return np.full(n, level, dtype=np.float32)


class EchoSystem:
    """Returns each unit as its own frame."""

    def __init__(self, spec):
        self.spec = spec

    def new_session(self):
        return EchoSession()


class EchoSession:
    calls = 0

    def open(self, request):
        self.calls = 0

    def step(self, unit):
        self.calls += 1
        return [Out("audio", self.calls - 1, pcm=unit.copy())]

    def close(self):
        return SessionStats(units=self.calls)


def test_the_system_is_fed_the_whole_stream_once_with_priming_and_flushing_hidden(scripted):
    spec = Spec(RATE, RATE, 100, 100, lockstep=True, prime_units=2, flush_units=1)
    system = scripted(spec, lambda call, unit: [Out("audio", call, pcm=tone(100, (call + 1) / 100))])
    result = run(system, REQUEST, live(0.95), RATE, TAIL)
    fed = np.concatenate(system.fed)
    assert len(system.fed) == 2 + 20 + 1
    assert not fed[:200].any()
    assert np.array_equal(fed[200:1150], live(0.95))
    assert not fed[1150:].any()
    assert result.timeline_s == 1.95
    assert len(result.listener) == 1950
    # The first frame heard is that of the first real unit, the third call.
    assert np.allclose(result.listener[::100], np.arange(3, 23) / 100)
    assert system.closed == 1
    assert result.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(("shift", "flush"), [(0, 0), (-1, 1), (-2, 2), (1, 0)])
def test_lockstep_frames_lie_at_their_model_time_and_keep_their_availability(scripted, shift, flush):
    spec = Spec(RATE, RATE, 100, 100, lockstep=True, flush_units=flush, model_shift_units=shift)
    system = scripted(spec, lambda call, unit: [Out("audio", call, pcm=tone(100, (call + 1) / 100))])
    result = run(system, REQUEST, live(), RATE, TAIL)
    track = np.zeros(2000, dtype=np.float32)
    track[: len(result.listener)] = result.listener
    for unit in range(20):
        frame = unit - shift
        expected = (frame + 1) / 100 if frame >= 0 else 0.0
        assert np.allclose(track[unit * 100 : (unit + 1) * 100], expected), unit
    event = result.events[5]
    assert event["available_s"] == pytest.approx(0.6)
    assert event["model_time_s"] == pytest.approx(0.5 + shift / 10)


def test_other_audio_is_played_when_it_becomes_available(scripted):
    def behave(call, unit):
        return [Out("audio", call, pcm=tone(250), response_id="r")] if call in (2, 3) else []

    result = run(scripted(FREE, behave), REQUEST, live(), RATE, TAIL)
    assert np.flatnonzero(result.listener).tolist() == list(range(300, 800))
    assert [event["start_s"] for event in result.events[:2]] == [0.3, 0.55]


def test_a_declared_latency_delays_what_is_heard_and_nothing_else(scripted):
    system = scripted(FREE, lambda call, unit: [Out("audio", call, pcm=tone(50), cost_ms=100.0)] if call == 0 else [])
    result = run(system, REQUEST, live(), RATE, TAIL, latency=DeclaredLatency(0.2, compute_share=1.0))
    assert np.flatnonzero(result.listener)[0] == 400
    system.spec = STEPPED
    system.behave = lambda call, unit: [Out("audio", call, pcm=tone(100))] if call == 0 else []
    result = run(system, REQUEST, live(), RATE, TAIL, latency=DeclaredLatency(0.2))
    assert np.flatnonzero(result.listener)[0] == 0


def test_a_flush_cuts_the_queue_and_late_audio(scripted):
    def behave(call, unit):
        if call == 1:
            return [Out("audio", call, pcm=tone(1000), response_id="r")]
        if call == 4:
            return [Out("flush", call)]
        if call == 5:
            return [Out("audio", call, pcm=tone(100), response_id="r")]
        return []

    result = run(scripted(FREE, behave), REQUEST, live(), RATE, TAIL)
    assert np.flatnonzero(result.listener).tolist() == list(range(200, 500))
    flush = next(event for event in result.events if event["kind"] == "flush")
    assert flush["cut"] == [{"response_id": "r", "heard_s": 0.3, "cut_samples": 700}]


def test_what_is_queued_beyond_the_timeline_is_not_heard(scripted):
    system = scripted(FREE, lambda call, unit: [Out("audio", call, pcm=tone(5000))] if call == 0 else [])
    result = run(system, REQUEST, live(), RATE, TAIL)
    assert result.timeline_s == 2.0
    assert len(result.listener) == 2000
    assert result.events[-1] == {"kind": "end_of_timeline", "available_s": 2.0, "unheard_s": 3.1}


def _speaks(*spans_s):
    """A lockstep system that speaks in the given seconds."""

    def behave(call, unit):
        return [Out("audio", call, pcm=tone(100, 0.5 if any(a <= call / 10 < b for a, b in spans_s) else 0.0))]

    return behave


@pytest.mark.parametrize(
    ("spans_s", "timeline_s"),
    [
        ([], 1 + 3 + 8),
        ([(0.2, 0.4)], 1 + 3),
        ([(2.0, 2.5)], 2 + 3),
        ([(6.0, 7.0)], 6.0 + 3),
        ([(11.5, 20.0)], 1 + 3 + 8),
    ],
)
def test_a_pause_is_streamed_three_seconds_and_up_to_eight_more(scripted, spans_s, timeline_s):
    plan = plan_for("pause", ProtocolSettings())
    result = run(scripted(STEPPED, _speaks(*spans_s)), REQUEST, live(), RATE, plan)
    assert result.timeline_s == pytest.approx(timeline_s)
    assert result.outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("spans_s", "timeline_s", "outcome"),
    [
        ([], 31.0, Outcome.NO_AUDIO),
        ([(0.2, 0.8)], 31.0, Outcome.NO_AUDIO),
        ([(1.5, 2.5)], 4.5, Outcome.COMPLETED),
        ([(0.5, 1.2)], 3.2, Outcome.COMPLETED),
        ([(1.5, 2.5), (4.0, 5.0)], 7.0, Outcome.COMPLETED),
        ([(9.0, 10.0)], 12.0, Outcome.COMPLETED),
        ([(1.5, 60.0)], 31.0, Outcome.COMPLETED),
    ],
)
def test_a_turn_end_is_streamed_until_the_reply_stops_or_the_cap(scripted, spans_s, timeline_s, outcome):
    plan = plan_for("turn_end", ProtocolSettings())
    result = run(scripted(STEPPED, _speaks(*spans_s)), REQUEST, live(), RATE, plan)
    assert result.timeline_s == pytest.approx(timeline_s)
    assert result.outcome is outcome


def test_recall_ends_as_a_turn_end_and_multiparty_after_its_tail():
    settings = ProtocolSettings(multiparty_tail_s=4.0)
    assert plan_for("recall", settings) == plan_for("turn_end", settings)
    assert plan_for("multiparty", settings) == StreamPlan(4.0)


@pytest.mark.parametrize("out", [Out("state", 0, state="speak"), Out("text", 0, text="hm", response_id="r")])
def test_a_response_begun_without_audio_is_no_audio(scripted, out):
    result = run(scripted(FREE, lambda call, unit: [out] if call == 0 else []), REQUEST, live(), RATE, TAIL)
    assert result.outcome is Outcome.NO_AUDIO
    assert result.reason


def test_silence_where_nothing_is_due_is_completed(scripted):
    result = run(scripted(FREE, lambda call, unit: []), REQUEST, live(), RATE, TAIL)
    assert (result.outcome, len(result.listener)) == (Outcome.COMPLETED, 0)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        (Out("audio", 0, pcm=np.array([np.nan], dtype=np.float32)), "NaN"),
        (Out("audio", 0, pcm=np.ones((2, 2), dtype=np.float32)), "shape"),
        (Out("audio", 0, pcm=np.ones(2)), "float32"),
        (Out("audio", 0), "None"),
        (Out("audio", 5, pcm=tone(3)), "not yet fed"),
        (Out("audio", 0, pcm=tone(3), available_s=-0.5), "before unit"),
        (Out("song", 0), "kind"),
        (Out("state", 0, state="asleep"), "state"),
    ],
)
def test_outputs_against_the_spec_are_refused_with_the_reason(scripted, out, message):
    system = scripted(FREE, lambda call, unit: [out])
    result = run(system, REQUEST, live(), RATE, TAIL)
    assert result.outcome is Outcome.REFUSED
    assert message in result.reason
    assert system.closed == 1


def test_a_lockstep_frame_of_another_length_or_two_at_once_are_refused(scripted):
    for outs in ([Out("audio", 0, pcm=tone(99))], [Out("audio", 0, pcm=tone(100))] * 2):
        result = run(scripted(STEPPED, lambda call, unit, outs=outs: outs), REQUEST, live(), RATE, TAIL)
        assert result.outcome is Outcome.REFUSED


@pytest.mark.parametrize("error", [RuntimeError("no memory"), KeyError("x"), ConnectionError("gone"), AssertionError()])
def test_a_system_that_fails_is_a_transport_error_and_what_came_before_is_kept(scripted, error):
    def behave(call, unit):
        if call == 3:
            raise error
        return [Out("audio", call, pcm=tone(100))]

    result = run(scripted(STEPPED, behave), REQUEST, live(), RATE, TAIL)
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert type(error).__name__ in result.reason
    assert len(result.listener) == 300


def test_an_error_output_is_a_transport_error(scripted):
    system = scripted(FREE, lambda call, unit: [Out("error", call, text="quota exceeded")])
    result = run(system, REQUEST, live(), RATE, TAIL)
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "quota exceeded" in result.reason


def test_a_request_that_the_system_cannot_take_is_refused(scripted):
    request = OpenRequest(seed=1, stimulus_id="x", prompt=Prompt(text="You are Aria."))
    result = run(scripted(FREE, lambda call, unit: []), request, live(), RATE, TAIL)
    assert result.outcome is Outcome.REFUSED
    assert "text_prompt" in result.reason


def test_ctrl_c_passes_through(scripted):
    def behave(call, unit):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(scripted(FREE, behave), REQUEST, live(), RATE, TAIL)


@pytest.mark.parametrize(
    "audio", [np.zeros(0, np.float32), np.zeros(5), np.zeros((5, 2), np.float32), np.full(5, np.nan, np.float32)]
)
def test_live_audio_is_checked(scripted, audio):
    with pytest.raises(ValueError, match="live audio"):
        run(scripted(FREE, lambda call, unit: []), REQUEST, audio, RATE, TAIL)


def test_input_is_resampled_to_the_rate_of_the_system(scripted):
    system = scripted(Spec(8000, 16000, 800), lambda call, unit: [])
    t = np.arange(24_000) / 24_000
    result = run(system, REQUEST, np.sin(2 * np.pi * 200 * t).astype(np.float32), 24_000, StreamPlan(0.0))
    heard = np.concatenate(system.fed)
    expected = np.sin(2 * np.pi * 200 * np.arange(8000) / 8000)
    assert heard.shape == expected.shape
    assert np.abs(heard - expected)[100:-100].max() < 1e-3
    assert result.sample_rate_hz == 16000


@settings(deadline=None)
@given(st.integers(20, 400), st.integers(1, 3000), st.integers(0, 3), st.integers(0, 2))
def test_the_stream_arrives_whole_whatever_the_unit(unit_samples, n_live, prime, flush):
    system = EchoSystem(Spec(RATE, RATE, unit_samples, unit_samples, True, prime, flush))
    audio = (np.arange(n_live, dtype=np.float32) + 1) / 10_000
    result = run(system, REQUEST, audio, RATE, StreamPlan(0.5))
    # An echo in lockstep at model time is the stream itself.
    expected = np.concatenate([audio, np.zeros(500, np.float32)])
    track = np.zeros(len(expected), np.float32)
    track[: len(result.listener)] = result.listener
    assert np.array_equal(track, expected)
    assert result.timeline_s == pytest.approx(len(expected) / RATE)


def test_two_runs_have_the_same_events(scripted):
    def behave(call, unit):
        return [Out("audio", call, pcm=tone(100), cost_ms=float(call)), Out("state", call, state="speak")]

    first, second = (run(scripted(STEPPED, behave), REQUEST, live(), RATE, TAIL) for _ in range(2))
    assert first.events == second.events
