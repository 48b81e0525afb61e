"""Rules of realtime systems: each opens sessions of its own through the driver, on virtual time where it can."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_args

import numpy as np

from duplex_bench.audio.time import to_samples
from duplex_bench.contract.push import Detection, PushEvent, PushSession, PushSystem
from duplex_bench.contract.types import OpenRequest, SessionStats, Spec, UnsupportedError
from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.rollout import realtime
from duplex_bench.rollout.listener import RolloutResult
from duplex_bench.rollout.pacing import PacingRule
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.playback import Samples
from duplex_bench.rollout.virtual_time import VirtualTimeLoop
from duplex_bench.systems.probes.bench import NotApplicableError, Note, PushBench, Rule, Said, request
from duplex_bench.systems.probes.contract_rules import unsupported_requests

Result = TypeVar("Result")

# As long as a pause is listened to (P2): semantic detection at low eagerness waits for 8 s.
_LISTEN_PLAN: Final = StreamPlan(6.0, extra_silence_s=8.0)
# Whether frames go out in time is a matter of this machine, which a run measures; what is tried here is the system.
_SETTINGS: Final = realtime.RealtimeSettings(PacingRule(1000.0, 10_000.0))
_TURN_PLAN: Final = StreamPlan(0.0, stop_after_silence_s=2.0, cap_s=15.0, reply_due=True)


@dataclass
class _Tapped:
    """A realtime system that notes what passes between the driver and another one."""

    system: PushSystem
    pushed: list[Samples] = field(default_factory=list)
    changed: bool = False
    events: list[PushEvent] = field(default_factory=list)
    cuts: list[tuple[str, float]] = field(default_factory=list)
    stats: SessionStats = field(default_factory=SessionStats)

    @property
    def spec(self) -> Spec:
        return self.system.spec

    @property
    def detections(self) -> frozenset[Detection]:
        return self.system.detections

    @property
    def virtual_time(self) -> bool:
        return self.system.virtual_time

    def new_push_session(self) -> PushSession:
        return _TappedSession(self, self.system.new_push_session())


@dataclass
class _TappedSession:
    tap: _Tapped
    session: PushSession

    async def open(self, asked: OpenRequest, detection: Detection) -> None:
        await self.session.open(asked, detection)

    async def push(self, frame: Samples) -> None:
        self.tap.pushed.append(frame.copy())
        await self.session.push(frame)
        self.tap.changed |= not np.array_equal(frame, self.tap.pushed[-1])

    async def reply_now(self) -> dict[str, Any]:
        return await self.session.reply_now()

    async def receive(self) -> list[PushEvent]:
        events = await self.session.receive()
        self.tap.events += events
        return events

    async def cut(self, response_id: str, heard_s: float) -> dict[str, Any]:
        self.tap.cuts.append((response_id, heard_s))
        return await self.session.cut(response_id, heard_s)

    async def close(self) -> SessionStats:
        self.tap.stats = await self.session.close()
        return self.tap.stats


def _rollout(bench: PushBench, live: Samples, plan: StreamPlan) -> tuple[RolloutResult, _Tapped]:
    tap = _Tapped(bench.system)
    return realtime.run(tap, request(), live, bench.system.spec.in_rate_hz, plan, _SETTINGS), tap


def _in_loop(system: PushSystem, program: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
    with asyncio.Runner(loop_factory=VirtualTimeLoop if system.virtual_time else None) as runner:
        return runner.run(program())


def _listened(bench: PushBench) -> tuple[RolloutResult, _Tapped]:
    """A question, heard with the system's own detection."""
    if "automatic" not in bench.system.detections:
        raise NotApplicableError("it has no detection of its own")
    return _rollout(bench, bench.spoken, _LISTEN_PLAN)


def holds_a_session(bench: PushBench) -> Said:
    """A turn from open to close ends as a rollout that can be scored, with every frame counted and none changed."""
    result, tap = _rollout(bench, bench.spoken, _TURN_PLAN)
    if result.outcome not in SCORED_OUTCOMES:
        yield f"the rollout ended as {result.outcome.value}: {result.reason}"
        return
    if tap.stats.units != len(tap.pushed):
        yield f"close reports {tap.stats.units} frames, {len(tap.pushed)} were pushed: count every call of push"
    if tap.changed:
        yield "push changed the samples it was given: copy them first"


async def _refused(attempt: Awaitable[object]) -> bool:
    try:
        await attempt
    except ValueError:
        return True
    return False


def refuses_what_is_no_frame(bench: PushBench) -> Said:
    """A frame that is too short, or holds NaN, raises."""
    size = bench.system.spec.unit_in_samples
    frames = {"a partial frame": np.zeros(size - 1, np.float32), "a frame of NaN": np.full(size, np.nan, np.float32)}

    async def program() -> list[str]:
        session = bench.system.new_push_session()
        await session.open(request(), _detection(bench.system))
        taken = [name for name, frame in frames.items() if not await _refused(session.push(frame))]
        await session.close()
        return taken

    for name in _in_loop(bench.system, program):
        yield f"{name} was taken: raise UnsupportedError (contract.types.checked_unit)"


def refuses_what_it_cannot_take(bench: PushBench) -> Said:
    """A prompt, history, sampling or detection that it does not offer raises."""
    system = bench.system
    asked = [(name, wanted, _detection(system)) for name, wanted in unsupported_requests(system.spec).items()]
    asked += [(f"{name} detection", request(), name) for name in get_args(Detection) if name not in system.detections]

    async def program() -> list[str]:
        taken = []
        for name, wanted, detection in asked:
            session = system.new_push_session()
            try:
                await session.open(wanted, detection)
                taken.append(name)
            except UnsupportedError:
                pass
            await session.close()
        return taken

    for name in _in_loop(system, program):
        yield f"{name} was taken but is not offered: raise UnsupportedError (refuse_unsupported)"


def closes_at_any_time(bench: PushBench) -> Said:
    """Unopened, twice, and while another task waits for a message."""
    system = bench.system

    async def program() -> list[str]:
        told = []
        await system.new_push_session().close()
        session = system.new_push_session()
        await session.open(request(), _detection(system))
        await session.push(np.zeros(system.spec.unit_in_samples, dtype=np.float32))
        reader = asyncio.create_task(_until_cancelled(session))
        await asyncio.sleep(0)
        first = await session.close()
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        if await session.close() != first:
            told.append("a second close returned other statistics: keep those of the first")
        return told

    yield from _in_loop(system, program)


async def _until_cancelled(session: PushSession) -> None:
    while True:
        await session.receive()


def answers_a_question(bench: PushBench) -> Said:
    """A spoken question is answered in sound, and silence is not."""
    heard, _ = _listened(bench)
    if not heard.listener.any():
        yield f"a spoken question got no audible answer ({heard.outcome.value}: {heard.reason or 'no reason'})"
    silence, _ = _rollout(bench, np.zeros_like(bench.spoken), StreamPlan(2.0))
    if silence.listener.any():
        yield "it speaks although nothing was said"


def replies_on_request(bench: PushBench) -> Said:
    """With its detection off it replies when asked to."""
    if "manual" not in bench.system.detections:
        raise NotApplicableError("its detection cannot be off")
    result, _ = _rollout(bench, bench.spoken, _TURN_PLAN)
    if result.outcome is not Outcome.COMPLETED:
        yield f"a reply was requested: {result.outcome.value}, {result.reason}"


def flushes_when_interrupted(bench: PushBench) -> Said:
    """What is queued when the user speaks again is dropped, and a cut is reported within what was received."""
    first, _ = _listened(bench)
    starts = [event["start_s"] for event in first.events if event["kind"] == "audio" and event.get("start_s")]
    if not starts:
        raise NotApplicableError("it did not speak")
    if all(event["response_id"] is None for event in first.events if event["kind"] == "audio"):
        raise NotApplicableError("its speech is a track that goes on as time passes: nothing is queued")
    rate = bench.system.spec.in_rate_hz
    again = to_samples(starts[0] + 0.3, rate)
    live = np.zeros(again + len(bench.spoken), dtype=np.float32)
    live[: len(bench.spoken)] = bench.spoken
    live[again:] = bench.spoken
    second, tap = _rollout(bench, live, _LISTEN_PLAN)
    if not any(event.kind == "flush" for event in tap.events):
        yield "the user spoke over it and no flush came: send PushEvent('flush') when the system gives way"
    for barge in (event for event in second.events if event["kind"] == "barge_in"):
        yield Note(f"audible stop {1000 * barge['stop_latency_s']:.0f} ms after the user began")
    for response_id, heard_s in tap.cuts:
        yield Note(f"{response_id}: {heard_s:.2f} s were heard when it was cut")


def tells_its_words(bench: PushBench) -> Said:
    """Audio comes with the words the system says it says."""
    yield from _sends(bench, "text", "audio came without text: the log cannot show what the system meant to say")


def tells_what_it_heard(bench: PushBench) -> Said:
    """It tells the words it understood."""
    yield from _sends(bench, "user_text", "it does not tell what it heard")


def tells_its_usage(bench: PushBench) -> Said:
    """It tells what a session used, so that it can be priced."""
    yield from _sends(bench, "usage", "it does not tell its usage: costs cannot be told")


def _sends(bench: PushBench, kind: str, otherwise: str) -> Said:
    _, tap = _rollout(bench, bench.spoken, _TURN_PLAN)
    if not any(event.kind == kind for event in tap.events):
        yield otherwise


def _detection(system: PushSystem) -> Detection:
    return "automatic" if "automatic" in system.detections else "manual"


RULES: Final = (
    Rule("holds a session", "must", holds_a_session),
    Rule("refuses what is no frame", "must", refuses_what_is_no_frame),
    Rule("refuses what it cannot take", "must", refuses_what_it_cannot_take),
    Rule("closes at any time", "must", closes_at_any_time),
    Rule("answers a question", "should", answers_a_question),
    Rule("replies on request", "should", replies_on_request),
    Rule("flushes when interrupted", "should", flushes_when_interrupted),
    Rule("tells its words", "optional", tells_its_words),
    Rule("tells what it heard", "optional", tells_what_it_heard),
    Rule("tells its usage", "optional", tells_its_usage),
)
