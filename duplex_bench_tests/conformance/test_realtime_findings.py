"""The suite of realtime systems on our servers in memory: what conforms does, and each rule finds what breaks it."""

from dataclasses import replace

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest, SessionStats
from duplex_bench.systems.conformance import REALTIME_RULES, check, examine
from duplex_bench.systems.serving.loopback import create

pytestmark = pytest.mark.unit

PROTOCOLS = ("openai-realtime", "xai-realtime", "gemini-live")


def made(protocol="openai-realtime"):
    return create({"protocol": protocol, "voice_behind": "tone", "silence_ms": 300, "think_s": 0.1})


def spoken(rate):
    return np.random.default_rng(2).standard_normal(rate).astype(np.float32) * np.float32(0.1)


class Session:
    """A session of a system that conforms; subclasses break one thing of it."""

    def __init__(self, session):
        self.session = session

    def __getattr__(self, name):
        return getattr(self.session, name)


class System:
    def __init__(self, session_class):
        self.inner, self.session_class = made(), session_class

    @property
    def spec(self):
        return self.inner.spec

    @property
    def detections(self):
        return self.inner.detections

    @property
    def virtual_time(self):
        return self.inner.virtual_time

    def new_push_session(self):
        return self.session_class(self.inner.new_push_session())


class CountsNothing(Session):
    async def close(self):
        return replace(await self.session.close(), units=0)


class ChangesItsInput(Session):
    async def push(self, frame):
        await self.session.push(frame.copy())
        frame *= 0


class TakesAnyFrame(Session):
    async def push(self, frame):
        whole = np.zeros(480, dtype=np.float32)
        whole[: min(480, len(frame))] = np.nan_to_num(frame[:480])
        await self.session.push(whole)


class TakesAnyRequest(Session):
    async def open(self, request, detection):
        await self.session.open(OpenRequest(request.seed, request.stimulus_id), detection)


class ClosesTwice(Session):
    closings = 0

    async def close(self):
        await self.session.close()
        self.closings += 1
        return SessionStats(units=self.closings)


def without(*kinds):
    class Without(Session):
        async def receive(self):
            return [event for event in await self.session.receive() if event.kind not in kinds]

    return Without


class NeverAsks(Session):
    async def reply_now(self):
        return {}


CASES = [
    (CountsNothing, "holds a session", "count every call"),
    (ChangesItsInput, "holds a session", "copy them first"),
    (TakesAnyFrame, "refuses what is no frame", "a partial frame was taken"),
    (TakesAnyFrame, "refuses what is no frame", "a frame of NaN was taken"),
    (TakesAnyRequest, "refuses what it cannot take", "sampling was taken"),
    (ClosesTwice, "closes at any time", "second close"),
    (without("audio"), "answers a question", "no audible answer"),
    (NeverAsks, "replies on request", "no_audio"),
    (without("flush"), "flushes when interrupted", "no flush came"),
    (without("text"), "tells its words", "without text"),
    (Session, "tells what it heard", "does not tell"),
    (without("usage"), "tells its usage", "usage"),
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_systems_of_each_protocol_reach_should(protocol):
    system = made(protocol)
    found = examine(system, spoken(system.spec.in_rate_hz))
    assert found.level in ("should", "optional"), found
    assert check(system, spoken(system.spec.in_rate_hz)) == []


@pytest.mark.parametrize(("session_class", "rule", "message"), CASES)
def test_each_rule_finds_what_breaks_it(session_class, rule, message):
    found = examine(System(session_class), spoken(24_000))
    told = [said for result in found.results if result.rule == rule and result.status == "broken"
            for said in result.messages]  # fmt: skip
    assert any(message in said for said in told), found


def test_every_rule_is_broken_above():
    assert {rule for _, rule, _ in CASES} == set(REALTIME_RULES)


def test_detection_that_waits_for_eight_seconds_is_listened_to_until_it_answers():
    patient = create(
        {"protocol": "openai-realtime", "voice_behind": "tone", "detector": "semantic_vad", "eagerness": "low"}
    )
    found = {result.rule: result.status for result in examine(patient, spoken(24_000)).results}
    assert found["answers a question"] == "kept"
    assert found["flushes when interrupted"] == "kept"
