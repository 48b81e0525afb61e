"""The realtime driver: audio goes out frame by frame at absolute deadlines, a listener hears what comes back.

One session is two tasks, a writer and a reader, with an idle timer beside them; any number of sessions run in one
loop. The loop's clock is the only clock, so that tests and in-memory systems run on virtual time.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duplex_bench.audio.resample import resample
from duplex_bench.contract.push import (
    Detection,
    PushEvent,
    PushSession,
    PushSystem,
    RateLimitedError,
    RefusedError,
)
from duplex_bench.contract.types import (
    SYSTEM_ERRORS,
    InvalidOutputError,
    OpenRequest,
    SessionStats,
    Spec,
    UnsupportedError,
)
from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.rollout.barge_in import barge_in_events
from duplex_bench.rollout.listener import Listener, RolloutResult, as_data, check_live, followed
from duplex_bench.rollout.pacing import Lateness, PacingRule, idle_timer, violation, wait_until
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.playback import Samples
from duplex_bench.rollout.session_loop import SessionLoop
from duplex_bench.rollout.virtual_time import VirtualTimeLoop

# A longer break within a response because audio came late is the connection's or the server's, and no pause of the
# model: the event log tells it apart.
NETWORK_GAP_S = 0.02

DRIVER_VERSION = "realtime/1"


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """How a session is driven (all ours).

    Attributes:
        rule: When late frames make a rollout invalid.
        lead_s: From a ready session to second 0, so that the first frame is not late already.
        open_limit_s: The most that opening may take.
        slack_s: Added to what the audio lasts: the time limit of a session.
        close_limit_s: The most that closing may take.
    """

    rule: PacingRule = field(default_factory=PacingRule)
    lead_s: float = 0.1
    open_limit_s: float = 60.0
    slack_s: float = 30.0
    close_limit_s: float = 5.0

    def __post_init__(self) -> None:
        if min(self.lead_s, self.open_limit_s, self.slack_s, self.close_limit_s) <= 0:
            raise ValueError("realtime: lead_s, open_limit_s, slack_s and close_limit_s must be positive")


def detection_for(plan: StreamPlan, system: PushSystem) -> Detection:
    """Who ends the user's turn: the harness where a reply is due by request and the system can be asked."""
    wanted: Detection = "manual" if plan.reply_due and plan.trigger == "request" else "automatic"
    if wanted not in system.detections and wanted == "manual":
        return "automatic"
    return wanted


def time_limit_s(plan: StreamPlan, input_s: float, settings: RealtimeSettings) -> float:
    """How long the streaming part of a session may take: all audio time that could pass, and slack."""
    after = plan.silence_after_s + plan.extra_silence_s
    return settings.lead_s + input_s + max(after, plan.cap_s or 0.0) + settings.slack_s


def run(
    system: PushSystem,
    request: OpenRequest,
    live: Samples,
    stream_rate_hz: int,
    plan: StreamPlan,
    settings: RealtimeSettings | None = None,
    *,
    wait_s: float = 0.0,
    after: Samples | None = None,
    sessions: SessionLoop | None = None,
) -> RolloutResult:
    """``run_session`` after ``wait_s``: on virtual time if the system allows it, else in ``sessions`` beside others, or
    in a loop of its own.
    """

    async def waited() -> RolloutResult:
        await wait_until(asyncio.get_running_loop().time() + wait_s)
        return await run_session(system, request, live, stream_rate_hz, plan, settings, after=after)

    if sessions is not None and not system.virtual_time:
        return sessions.run(waited())
    factory = VirtualTimeLoop if system.virtual_time else None
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(waited())


async def run_session(
    system: PushSystem,
    request: OpenRequest,
    live: Samples,
    stream_rate_hz: int,
    plan: StreamPlan,
    settings: RealtimeSettings | None = None,
    *,
    after: Samples | None = None,
) -> RolloutResult:
    """Stream ``live`` and the plan's silence to a fresh session and return what a listener heard.

    Frame k covers seconds [k, k + 1) x frame of the stream and is sent at its end. What arrives is heard at the
    later of its arrival and the end of what came before it (``Playback``). With automatic detection silence frames go
    on until the listener timeline ends; with manual detection the turn is committed after the live audio and nothing
    more is sent. The connection is never opened again within a rollout.

    Args:
        system: The system under test.
        request: What its session is told first.
        live: Audio (n,) float32 at ``stream_rate_hz``; resampled to the system's rate.
        stream_rate_hz: Rate of ``live``.
        plan: How long silence follows, and what ends the user's turn.
        settings: Pacing rule and time limits.
        after: Audio (n,) float32 at ``stream_rate_hz`` heard behind ``live`` in place of silence, also with manual
            detection, where it follows the commit; times and outcomes are those of ``live``.

    Returns:
        The result. Beside the frame-stepped driver's outcomes there is ``pacing_violation``.

    Raises:
        ValueError: ``live`` is not finite 1-D float32 audio with at least one sample.
    """
    check_live(live)
    settings = settings or RealtimeSettings()
    spec = system.spec
    current = _Run(spec, settings, Listener(spec.out_rate_hz, plan, len(live) / stream_rate_hz))
    began = time.thread_time()
    whole = followed(live, after)
    n_live = round(len(live) * spec.in_rate_hz / stream_rate_hz)
    outcome, reason = await current.go(system, request, resample(whole, stream_rate_hz, spec.in_rate_hz), n_live)
    listener = current.listener
    result = listener.result(outcome, reason, current.events, 0.0)
    if outcome in SCORED_OUTCOMES:
        current.events += barge_in_events(whole, stream_rate_hz, result.listener, result.sample_rate_hz)
    return RolloutResult(
        outcome, reason, result.listener, result.sample_rate_hz, result.timeline_s, result.input_s, current.events,
        max(0.0, time.thread_time() - began), current.retry_after_s,
    )  # fmt: skip


@dataclass
class _Run:
    spec: Spec
    settings: RealtimeSettings
    listener: Listener
    events: list[dict[str, Any]] = field(default_factory=list)
    sends: Lateness = field(default_factory=Lateness)
    idle: Lateness = field(default_factory=Lateness)
    retry_after_s: float | None = None
    start_s: float = 0.0
    heard_until_s: dict[str | None, float] = field(default_factory=dict)

    async def go(self, system: PushSystem, request: OpenRequest, heard: Samples, n_live: int) -> tuple[Outcome, str]:
        """Run the whole session; never raises for what the system does."""
        session: PushSession | None = None
        detection = detection_for(self.listener.plan, system)
        try:
            session = system.new_push_session()
            await self._open(session, request, detection)
            await self._stream(session, heard, n_live, detection)
        except (UnsupportedError, RefusedError, InvalidOutputError) as error:
            outcome, reason = Outcome.REFUSED, str(error)
        except RateLimitedError as error:
            self.retry_after_s = error.retry_after_s
            outcome, reason = Outcome.TRANSPORT_ERROR, f"rate limit: {error}"
        except SYSTEM_ERRORS as error:
            outcome, reason = Outcome.TRANSPORT_ERROR, f"{type(error).__name__}: {error}"
        else:
            outcome, reason = self.listener.outcome()
            late = violation(self.sends, self.idle, self.settings.rule)
            if late is not None:
                outcome, reason = Outcome.PACING_VIOLATION, late
        self.events.append({"kind": "pacing", "sends": self.sends.as_data(), "idle": self.idle.as_data()})
        if session is not None:
            await self._close(session)
        return outcome, reason

    async def _open(self, session: PushSession, request: OpenRequest, detection: Detection) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        limit_s = self.settings.open_limit_s
        try:
            async with asyncio.timeout(limit_s):
                await session.open(request, detection)
        except TimeoutError as error:
            raise TimeoutError(
                f"the session was not ready after {limit_s:g} s: try again, or look at its host"
            ) from error
        self.events.append({"kind": "opened", "detection": detection, "took_s": loop.time() - began_s})

    async def _stream(self, session: PushSession, heard: Samples, n_live: int, detection: Detection) -> None:
        loop = asyncio.get_running_loop()
        self.start_s = loop.time() + self.settings.lead_s
        limit_s = time_limit_s(self.listener.plan, self.listener.input_s, self.settings)
        writer = asyncio.create_task(self._write(session, heard, n_live, detection))
        reader = asyncio.create_task(self._read(session))
        idle = asyncio.create_task(idle_timer(self.start_s, self.spec.unit_s, self.idle))
        tasks = (writer, reader, idle)
        try:
            done, _ = await asyncio.wait((writer, reader), timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            ended = await asyncio.gather(*tasks, return_exceptions=True)
        if not done:
            raise TimeoutError(f"the session passed its time limit of {limit_s:.0f} s: the connection is stalled")
        # The reader ends only by an error; it says more than what the writer met because of it.
        for error in (ended[1], ended[0]):
            if isinstance(error, Exception):
                raise error

    async def _write(self, session: PushSession, heard: Samples, n_live: int, detection: Detection) -> None:
        spec, listener = self.spec, self.listener
        if detection == "manual":
            # What is heard behind the turn begins with a frame of its own, or the commit would hold some of it.
            turn, behind = heard[:n_live], heard[n_live:]
            heard = np.concatenate([_whole_frames(turn, spec.unit_in_samples), behind])
        heard = _whole_frames(heard, spec.unit_in_samples)
        silence = np.zeros(spec.unit_in_samples, dtype=np.float32)
        last = -(-n_live // spec.unit_in_samples)
        asked_s = 0.0
        number = 0
        while True:
            listener.timeline_s = listener.end_s()
            if number * spec.unit_s >= listener.timeline_s:
                return
            if detection == "manual" and number == last:
                told = await session.reply_now()
                asked_s = self._now_s()
                self.events.append({"kind": "reply_requested", "at_s": asked_s, **told})
            late_s = await wait_until(self.start_s + (number + 1) * spec.unit_s)
            first = number * spec.unit_in_samples
            if first < len(heard) or detection == "automatic":
                # What came due while a commit was confirmed is late by the protocol, not by the sender.
                if (number + 1) * spec.unit_s >= asked_s:
                    self.sends.add(late_s)
                await session.push(heard[first : first + spec.unit_in_samples] if first < len(heard) else silence)
            number += 1

    async def _read(self, session: PushSession) -> None:
        while True:
            for event in await session.receive():
                await self._take(session, event, self._now_s())

    async def _take(self, session: PushSession, event: PushEvent, at_s: float) -> None:
        entry: dict[str, Any] = {"kind": event.kind, "at_s": at_s, "response_id": event.response_id, **event.data}
        self.events.append(entry)
        # Audio without a response is a track that goes on whether anybody speaks on it or not.
        begun = event.kind == "begun" or (event.kind == "audio" and event.response_id is not None)
        self.listener.begun = self.listener.begun or begun
        if event.kind == "audio" and event.pcm is not None:
            _check(event.pcm)
            entry["samples"] = len(event.pcm)
            start_s = self.listener.hear(at_s, event.pcm, event.response_id)
            entry["start_s"] = start_s
            if start_s is not None:
                gap_s = start_s - self.heard_until_s.get(event.response_id, start_s)
                if gap_s > NETWORK_GAP_S:
                    entry["network_gap_s"] = gap_s
                self.heard_until_s[event.response_id] = start_s + len(event.pcm) / self.spec.out_rate_hz
        elif event.kind == "flush":
            cut = self.listener.flush(at_s)
            entry["cut"] = as_data(cut)
            for one in cut:
                if one.response_id is not None:
                    told = await session.cut(one.response_id, one.heard_s)
                    self.events.append({"kind": "truncation_reported", "at_s": at_s, **told})
        elif event.text is not None:
            entry["text"] = event.text

    async def _close(self, session: PushSession) -> None:
        try:
            async with asyncio.timeout(self.settings.close_limit_s):
                stats = await session.close()
        except SYSTEM_ERRORS as error:
            self.events.append({"kind": "close", "error": type(error).__name__})
        else:
            self._log_close(stats)

    def _log_close(self, stats: SessionStats) -> None:
        self.events.append({"kind": "close", "units": stats.units, "warnings": list(stats.warnings), **stats.extra})

    def _now_s(self) -> float:
        return max(0.0, asyncio.get_running_loop().time() - self.start_s)


def _whole_frames(samples: Samples, size: int) -> Samples:
    missing = -len(samples) % size
    return np.concatenate([samples, np.zeros(missing, dtype=np.float32)]) if missing else samples


def _check(pcm: Samples) -> None:
    if pcm.ndim != 1 or pcm.dtype != np.float32 or not np.isfinite(pcm).all():
        raise InvalidOutputError(f"audio is finite float32 of shape (n,), the system sent {pcm.dtype} {pcm.shape}")
