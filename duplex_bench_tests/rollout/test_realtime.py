import asyncio
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.contract.push import PushEvent, PushSystem, RateLimitedError, RefusedError
from duplex_bench.contract.types import OpenRequest, SessionStats, Spec, TransportError
from duplex_bench.records.items import Stimulus
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.barge_in import barge_ins
from duplex_bench.rollout.pacing import Lateness, PacingRule, violation
from duplex_bench.rollout.plan import ProtocolSettings, StreamPlan, plan_for
from duplex_bench.rollout.realtime import RealtimeSettings, detection_for, run, run_session
from duplex_bench.rollout.record import read_events, run_item
from duplex_bench.rollout.virtual_time import VirtualTimeError, run_on_virtual_time
from duplex_bench.storage.blobs import to_pcm16

pytestmark = pytest.mark.unit

RATE = 24_000
UNIT = 480
REQUEST = OpenRequest(seed=1, stimulus_id="x")
PLANS = {name: plan_for(name, ProtocolSettings()) for name in ("pause", "turn_end", "multiparty")}


class ScriptedPush:
    """Sends what ``script`` says: pairs of (seconds after opening, events or an error)."""

    spec = Spec(RATE, RATE, UNIT, capabilities=frozenset({"text_prompt"}))
    detections = frozenset({"automatic", "manual"})
    virtual_time = True

    def __init__(self, script=(), on_request=(), push_takes_s=None, open_error=None):
        self.script, self.on_request = list(script), list(on_request)
        self.push_takes_s = push_takes_s or {}
        self.open_error = open_error
        self.sent_s, self.frames, self.cuts, self.requests_s, self.opened, self.closed = [], [], [], [], [], 0
        self.started_s = None

    def new_push_session(self):
        self.sent_s, self.frames = [], []
        return _Session(self)


class _Session:
    def __init__(self, system):
        self.system = system
        self.queue = asyncio.Queue()

    async def open(self, request, detection):
        loop = asyncio.get_running_loop()
        self.system.opened.append((detection, loop.time()))
        if self.system.open_error is not None:
            await self.system.open_error()
        # Second 0 of the stream comes one lead after opening.
        self.zero_s = loop.time() + RealtimeSettings().lead_s
        for at_s, what in self.system.script:
            loop.call_at(self.zero_s + at_s, self.queue.put_nowait, what)

    async def push(self, frame):
        number = len(self.system.frames)
        self.system.frames.append(frame.copy())
        self.system.sent_s.append(asyncio.get_running_loop().time() - self.zero_s)
        if number in self.system.push_takes_s:
            await asyncio.sleep(self.system.push_takes_s[number])

    async def reply_now(self):
        loop = asyncio.get_running_loop()
        self.system.requests_s.append(loop.time() - self.zero_s)
        for after_s, what in self.system.on_request:
            loop.call_at(loop.time() + after_s, self.queue.put_nowait, what)
        return {"commit_wait_s": 0.0, "extra_wait_s": 0.0}

    async def receive(self):
        what = await self.queue.get()
        if isinstance(what, Exception):
            raise what
        return what

    async def cut(self, response_id, heard_s):
        self.system.cuts.append((response_id, round(heard_s, 6)))
        return {"item_id": response_id}

    async def close(self):
        self.system.closed += 1
        return SessionStats(units=len(self.system.frames), extra={"usage": {"audio_in": 1.0}})


def sound(seconds, level=0.1):
    return np.full(round(seconds * RATE), level, dtype=np.float32)


def speech(seconds, response="r1"):
    return [PushEvent("audio", response, pcm=sound(seconds))]


def go(system, live_s=1.0, plan="pause", **changes):
    return run(system, REQUEST, sound(live_s), RATE, PLANS[plan] if isinstance(plan, str) else plan,
               RealtimeSettings(**changes))  # fmt: skip


def heard_from(result):
    loud = np.flatnonzero(result.listener)
    return (loud[0] / RATE, (loud[-1] + 1) / RATE) if len(loud) else None


def test_the_scripted_system_is_one():
    assert isinstance(ScriptedPush(), PushSystem)


@pytest.mark.parametrize("live_s", [1.0, 0.51, 0.013])
def test_every_frame_goes_out_at_its_own_deadline_and_holds_the_audio_then_silence(live_s):
    system = ScriptedPush()
    result = go(system, live_s)
    assert system.sent_s == pytest.approx([(k + 1) * 0.02 for k in range(len(system.frames))], abs=1e-9)
    sent = np.concatenate(system.frames)
    n = round(live_s * RATE)
    assert np.array_equal(sent[:n], sound(live_s))
    assert not sent[n:].any()
    assert result.outcome is Outcome.COMPLETED
    assert result.timeline_s == pytest.approx(live_s + 3.0 + 8.0)


@settings(max_examples=20, deadline=None)
@given(st.dictionaries(st.integers(0, 40), st.floats(0.0, 0.19), max_size=4))
def test_a_send_that_took_long_makes_no_later_deadline_move(slow):
    system = ScriptedPush(push_takes_s=slow)
    go(system, 1.0, rule=PacingRule(1000, 1000))
    deadlines = np.arange(1, len(system.sent_s) + 1) * 0.02
    late = np.array(system.sent_s) - deadlines
    assert (late >= -1e-9).all()
    # What delays one frame is made up for: after a second without slow sends the clock is met again.
    assert late[-1] == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("slow_s", "outcome"), [(0.1, Outcome.COMPLETED), (0.3, Outcome.PACING_VIOLATION)], ids=["within", "beyond"]
)
def test_frames_later_than_the_rule_make_the_run_invalid(slow_s, outcome):
    result = go(ScriptedPush(push_takes_s={10: slow_s}), rule=PacingRule(150.0, 200.0))
    assert result.outcome is outcome
    assert ("sent late" in result.reason) is (outcome is Outcome.PACING_VIOLATION)
    pacing = next(event for event in result.events if event["kind"] == "pacing")
    assert pacing["sends"]["worst_ms"] == pytest.approx((slow_s - 0.02) * 1000, abs=1e-3)
    assert sum(pacing["sends"]["counts"]) == pacing["sends"]["n"]
    assert pacing["idle"]["worst_ms"] == pytest.approx(0.0, abs=1e-6)


def test_a_pacing_rule_reads_percentile_and_worst():
    rule, idle = PacingRule(20, 200), Lateness([0.0])
    assert violation(Lateness([0.0] * 1000 + [0.19]), idle, rule) is None
    assert "worst 210.0 ms" in violation(Lateness([0.0] * 1000 + [0.21]), idle, rule)
    assert "99th percentile 30.0 ms" in violation(Lateness([0.03] * 1000), idle, rule)
    assert violation(Lateness(), idle, rule) is None


def test_audio_faster_than_realtime_is_heard_in_its_own_time():
    system = ScriptedPush([(0.5, speech(1.0)), (0.55, speech(1.0)), (0.6, speech(0.5))])
    result = go(system, 1.0)
    assert heard_from(result) == pytest.approx((0.5, 3.0))
    starts = [event["start_s"] for event in result.events if event["kind"] == "audio"]
    assert starts == pytest.approx([0.5, 1.5, 2.5])


def test_audio_that_came_too_late_to_be_heard_in_one_piece_is_told_apart_from_a_pause():
    chunks = [
        (0.5, speech(0.2)),
        (0.6, speech(0.2)),
        (1.2, speech(0.2)),
        (1.415, speech(0.2)),
        (3.0, speech(0.2, "r2")),
    ]
    audio = [event for event in go(ScriptedPush(chunks), 1.0).events if event["kind"] == "audio"]
    assert [event.get("network_gap_s") for event in audio] == [None, None, pytest.approx(0.3), None, None]


def test_a_flush_cuts_the_player_and_tells_the_system_what_was_heard():
    system = ScriptedPush([(0.5, speech(2.0)), (0.8, [PushEvent("flush")]), (0.9, speech(1.0))])
    result = go(system, 1.0)
    assert system.cuts == [("r1", 0.3)]
    assert heard_from(result) == pytest.approx((0.5, 0.8))


def test_the_timeline_ends_the_drain_although_the_system_goes_on_sending():
    chatter = [(k * 0.5, speech(0.4)) for k in range(200)]
    result = go(ScriptedPush(chatter), 1.0, "multiparty")
    assert result.timeline_s == pytest.approx(6.0)
    assert len(result.listener) / RATE <= 6.0
    assert result.outcome is Outcome.COMPLETED


@pytest.mark.parametrize("reply_s", [0.7, 4.0])
def test_a_turn_end_commits_once_sends_no_more_and_ends_after_two_seconds_of_silence(reply_s):
    system = ScriptedPush(on_request=[(0.4, speech(reply_s))])
    result = go(system, 1.0, "turn_end")
    assert system.opened[0][0] == "manual"
    assert system.requests_s == pytest.approx([1.0])
    assert len(system.frames) == 50
    assert heard_from(result) == pytest.approx((1.4, 1.4 + reply_s))
    assert result.timeline_s == pytest.approx(1.4 + reply_s + 2.0, abs=0.021)


def test_a_turn_end_without_a_reply_is_heard_to_the_cap_and_is_no_audio():
    result = go(ScriptedPush(), 1.0, "turn_end")
    assert result.outcome is Outcome.NO_AUDIO
    assert result.timeline_s == pytest.approx(31.0)


def test_an_endpointer_trigger_keeps_detection_on_and_sends_the_same_silence_as_to_any_system():
    plan = plan_for("turn_end", ProtocolSettings(turn_end_trigger="endpointer"))
    system = ScriptedPush([(1.5, speech(1.0))])
    result = go(system, 1.0, plan)
    assert system.opened[0][0] == "automatic"
    assert system.requests_s == []
    assert len(system.frames) * 0.02 == pytest.approx(result.timeline_s, abs=0.02)


@pytest.mark.parametrize(
    ("plan", "wanted"), [("pause", "automatic"), ("multiparty", "automatic"), ("turn_end", "manual")]
)
def test_detection_is_off_only_where_a_reply_is_requested(plan, wanted):
    assert detection_for(PLANS[plan], ScriptedPush()) == wanted


@pytest.mark.parametrize(
    ("error", "outcome", "words"),
    [
        (TransportError("gone"), Outcome.TRANSPORT_ERROR, "gone"),
        (RefusedError("wrong key"), Outcome.REFUSED, "wrong key"),
        (RateLimitedError("later", 7.0), Outcome.TRANSPORT_ERROR, "rate limit: later"),
        (ValueError("garbage"), Outcome.TRANSPORT_ERROR, "ValueError: garbage"),
        ([PushEvent("audio", "r", pcm=np.array([np.nan], dtype=np.float32))], Outcome.REFUSED, "finite"),
    ],
)
def test_what_ends_a_session_ends_the_rollout_at_once_with_its_reason(error, outcome, words):
    system = ScriptedPush([(0.5, error)])
    result = go(system, 20.0)
    assert result.outcome is outcome
    assert words in result.reason
    assert len(system.frames) <= 26
    assert system.closed == 1
    assert result.retry_after_s == (7.0 if isinstance(error, RateLimitedError) else None)


def test_a_session_that_never_opens_ends_at_its_limit():
    async def for_ever():
        await asyncio.sleep(1e6)

    result = go(ScriptedPush(open_error=for_ever), open_limit_s=12.0)
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "not ready after 12 s" in result.reason


def test_a_connection_that_takes_no_more_frames_ends_at_the_time_limit_of_its_audio():
    result = go(ScriptedPush(push_takes_s={3: 1e6}), 2.0, slack_s=5.0)
    assert result.outcome is Outcome.TRANSPORT_ERROR
    assert "time limit of 18 s" in result.reason


def test_a_begun_response_without_audio_is_no_audio():
    assert go(ScriptedPush([(0.5, [PushEvent("begun", "r1")])])).outcome is Outcome.NO_AUDIO


def test_two_hundred_sessions_share_one_loop_and_each_keeps_its_clock():
    systems = [ScriptedPush([(0.3, speech(0.5))]) for _ in range(200)]

    async def all_of_them():
        return await asyncio.gather(
            *(run_session(system, REQUEST, sound(0.5), RATE, StreamPlan(0.5)) for system in systems)
        )

    results = run_on_virtual_time(all_of_them())
    assert all(heard_from(result) == pytest.approx((0.3, 0.8)) for result in results)
    assert all(len(system.frames) == 50 for system in systems)


def test_barge_in_is_measured_where_the_user_speaks_over_the_system():
    user = np.array([[0.0, 1.0], [2.0, 3.0], [6.0, 7.0]])
    system = np.array([[1.5, 2.4], [5.0, 5.5]])
    found = barge_ins(user, system)
    assert [(one.onset_s, one.audible_stop_s) for one in found] == [(2.0, 2.4)]
    assert found[0].stop_latency_s == pytest.approx(0.4)


def test_a_program_that_would_hang_in_real_time_is_an_error_on_virtual_time():
    async def hang():
        await asyncio.get_running_loop().create_future()

    with pytest.raises(VirtualTimeError):
        run_on_virtual_time(hang())


@pytest.fixture
def stimulus(blobs):
    samples = to_pcm16(sound(1.0))[:, None]
    source = blobs.put_audio(samples[:, 0], RATE)
    return Stimulus("pause", blobs.slice_of(source, samples, RATE, 0, RATE))


def item(system, stimulus, blobs, **changes):
    return run_item(system, stimulus, blobs, system_name="s", rollout_key="k", plan=PLANS["pause"], **changes)


def test_a_realtime_item_is_stored_like_any_other_and_is_the_same_in_every_run(stimulus, blobs):
    script = [(0.5, speech(2.0)), (0.8, [PushEvent("flush")])]
    first, second = (item(ScriptedPush(script), stimulus, blobs) for _ in range(2))
    assert first.outcome is Outcome.COMPLETED
    assert (first.listener_audio, first.events) == (second.listener_audio, second.events)
    events = read_events(first.events, blobs)
    assert events[0]["driver"] == "realtime/1"
    assert {"opened", "audio", "flush", "truncation_reported", "pacing", "close"} <= {event["kind"] for event in events}
    assert json.dumps(events, allow_nan=False)


def test_a_rate_limit_is_waited_for_and_a_refusal_is_not_tried_again(stimulus, blobs):
    limited = ScriptedPush([(0.1, RateLimitedError("later", 40.0))])
    record = item(limited, stimulus, blobs)
    assert (record.outcome, record.attempts) == (Outcome.TRANSPORT_ERROR, 3)
    # Each attempt is a session of its own, opened after the wait on a fresh clock.
    assert [at_s for _, at_s in limited.opened] == pytest.approx([0.0, 40.0, 40.0])
    refused = item(ScriptedPush([(0.1, RefusedError("no such model"))]), stimulus, blobs)
    assert (refused.outcome, refused.attempts) == (Outcome.REFUSED, 1)
