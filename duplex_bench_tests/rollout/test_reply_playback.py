"""What is heard behind a turn is no part of it: its clock, its commit and its outcome stay those of the turn."""

import asyncio

import numpy as np
import pytest

from duplex_bench.contract.push import PushEvent
from duplex_bench.contract.types import OpenRequest, Out, SessionStats, Spec
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Stimulus
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout import frame_stepped, realtime
from duplex_bench.rollout.plan import ProtocolSettings, StreamPlan, plan_for
from duplex_bench.storage.digests import stimulus_digest

pytestmark = pytest.mark.unit

RATE = 24_000
REQUEST = OpenRequest(1, "x")
PLAN = StreamPlan(0.0, stop_after_silence_s=1.0, cap_s=3.0, reply_due=True)


def sound(seconds, level):
    return np.full(round(seconds * RATE), level, dtype=np.float32)


class Keeps:
    """Keeps what it hears; answers once, at second ``answers_s``, with half a second of sound."""

    spec = Spec(RATE, RATE, 480)
    virtual_time = True

    def __init__(self, answers_s=None, detections=("automatic", "manual"), commit_takes_s=0.0):
        self.answers_s, self.commit_takes_s = answers_s, commit_takes_s
        self.detections = frozenset(detections)
        self.heard, self.committed_after = [], None

    def new_session(self):
        return self

    new_push_session = new_session

    def step(self, unit):
        self.heard.append(unit.copy())
        if self.answers_s is not None and len(self.heard) == round(self.answers_s * 50):
            return [Out("audio", len(self.heard) - 1, pcm=sound(0.5, 0.3))]
        return []


class Stepped(Keeps):
    def open(self, request):
        self.heard = []

    def close(self):
        return SessionStats(units=len(self.heard))


class Pushed(Keeps):
    async def open(self, request, detection):
        self.heard, self.due = [], asyncio.Queue()

    async def push(self, frame):
        for out in self.step(frame):
            self.due.put_nowait([PushEvent("audio", "r", pcm=out.pcm)])

    async def reply_now(self):
        self.committed_after = len(self.heard)
        await asyncio.sleep(self.commit_takes_s)
        return {}

    async def receive(self):
        return await self.due.get()

    async def close(self):
        return SessionStats(units=len(self.heard))


def test_a_stepped_system_hears_the_reply_where_silence_would_be():
    system = Stepped(answers_s=1.2)
    result = frame_stepped.run(system, REQUEST, sound(1.0, 0.1), RATE, PLAN, after=sound(0.6, 0.2))
    heard = np.concatenate(system.heard)
    assert np.all(heard[:RATE] == np.float32(0.1))
    assert np.all(heard[RATE : RATE + 14_400] == np.float32(0.2))
    assert not heard[RATE + 14_400 :].any()
    assert (result.outcome, result.input_s) == (Outcome.COMPLETED, 1.0)
    assert result.timeline_s == pytest.approx(1.2 + 0.5 + 1.0, abs=0.021)


def test_the_cap_counts_from_the_turn_end_and_a_reply_before_it_does_not_count():
    nothing = frame_stepped.run(Stepped(), REQUEST, sound(1.0, 0.1), RATE, PLAN, after=sound(9.0, 0.2))
    assert (nothing.outcome, nothing.timeline_s) == (Outcome.NO_AUDIO, 4.0)
    early = frame_stepped.run(Stepped(answers_s=0.3), REQUEST, sound(1.0, 0.1), RATE, PLAN, after=sound(0.6, 0.2))
    assert early.outcome is Outcome.NO_AUDIO


def test_with_its_own_detection_frames_go_on_without_a_seam():
    system = Pushed(answers_s=1.2)
    plan = plan_for("turn_end", ProtocolSettings(turn_end_trigger="endpointer"))
    realtime.run(system, REQUEST, sound(1.013, 0.1), RATE, plan, after=sound(0.6, 0.2))
    heard = np.concatenate(system.heard)
    n = round(1.013 * RATE)
    assert np.all(heard[:n] == np.float32(0.1))
    assert np.all(heard[n : n + 14_400] == np.float32(0.2))


@pytest.mark.parametrize("commit_takes_s", [0.0, 0.31])
def test_with_a_request_the_turn_is_committed_without_any_of_the_reply(commit_takes_s):
    system = Pushed(answers_s=1.5, commit_takes_s=commit_takes_s)
    result = realtime.run(system, REQUEST, sound(1.013, 0.1), RATE, PLAN, after=sound(0.6, 0.2))
    committed = np.concatenate(system.heard[: system.committed_after])
    assert system.committed_after == 51
    assert not (committed == np.float32(0.2)).any()
    behind = np.concatenate(system.heard[system.committed_after :])
    assert np.all(behind[:14_400] == np.float32(0.2))
    assert len(behind) == 14_400
    assert result.outcome is Outcome.COMPLETED, result.reason
    pacing = next(event for event in result.events if event["kind"] == "pacing")
    assert pacing["sends"]["worst_ms"] == 0


def test_the_user_talking_on_over_an_answer_is_a_barge_in():
    system = Stepped(answers_s=1.1)
    live, after = sound(1.0, 0.1), np.concatenate([sound(0.3, 0.0), sound(0.4, 0.2)])
    pushed = realtime.run(Pushed(answers_s=1.1), REQUEST, live, RATE, StreamPlan(2.0), after=after)
    assert [round(e["onset_s"], 1) for e in pushed.events if e["kind"] == "barge_in"] == [1.3]
    assert frame_stepped.run(system, REQUEST, live, RATE, PLAN, after=after).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    "after", [np.zeros((2, 2), np.float32), np.zeros(0, np.float32), np.full(9, np.nan, np.float32)]
)
def test_what_is_no_audio_is_refused(after):
    with pytest.raises(ValueError, match="finite float32"):
        frame_stepped.run(Stepped(), REQUEST, sound(0.1, 0.1), RATE, PLAN, after=after)


def test_a_stimulus_without_it_keeps_its_digest():
    part = AudioSlice("a" * 64, 0, 10, RATE, "b" * 64)
    plain = Stimulus("turn_end", part)
    assert stimulus_digest(plain) == stimulus_digest(Stimulus("turn_end", part, after=None))
    assert stimulus_digest(plain) != stimulus_digest(Stimulus("turn_end", part, after=part))
