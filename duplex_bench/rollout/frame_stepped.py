"""The frame-stepped driver: a system is fed unit by unit on a virtual clock; no wall clock decides anything."""

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.contract.returned import checked_outs, checked_session, checked_stats
from duplex_bench.contract.types import (
    SYSTEM_ERRORS,
    InvalidOutputError,
    OpenRequest,
    Session,
    SessionStats,
    Spec,
    System,
    UnsupportedError,
)
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.listener import Listener, RolloutResult, as_data, check_live, followed
from duplex_bench.rollout.outputs import DeclaredLatency, TimedOut, check_lockstep, timed
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.playback import Samples

DRIVER_VERSION = "frame-stepped/1"


class _SystemReportedError(RuntimeError):
    """The system sent an output of kind error."""


def run(
    system: System,
    request: OpenRequest,
    live: Samples,
    stream_rate_hz: int,
    plan: StreamPlan,
    *,
    latency: DeclaredLatency | None = None,
    after: Samples | None = None,
) -> RolloutResult:
    """Stream ``live`` and the plan's silence to a fresh session and return what a listener heard.

    Unit k covers seconds [k, k + 1) x unit of the stream; what it causes is available at its end unless the output
    says later. Frames of lockstep systems are placed by model time, other audio by availability through ``Playback``;
    both times are in the events. Priming and flushing units are fed and hidden. The last partial unit goes on into
    the silence. What is still queued when the timeline ends was not heard.

    Args:
        system: The system under test.
        request: What its session is told first.
        live: Audio (n,) float32 at ``stream_rate_hz``; resampled to the system's rate.
        stream_rate_hz: Rate of ``live``.
        plan: How long silence follows.
        latency: Declared latency added to every output; none by default.
        after: Audio (n,) float32 at ``stream_rate_hz`` that is heard behind ``live`` in place of silence, as far as the
            timeline goes; times and outcomes are those of ``live``.

    Returns:
        The result; its outcome is ``completed``, ``no_audio`` (a reply was due or begun and nothing audible came),
        ``transport_error`` (the system failed or its worker was lost), or ``refused`` (it could not take the request,
        or broke its own spec), with the reason.

    Raises:
        ValueError: ``live`` is not finite 1-D float32 audio with at least one sample.
    """
    check_live(live)
    listener = Listener(system.spec.out_rate_hz, plan, len(live) / stream_rate_hz)
    current = _Run(system.spec, listener, latency or DeclaredLatency())
    heard = followed(live, after)
    outcome, reason = current.go(system, request, resample(heard, stream_rate_hz, system.spec.in_rate_hz))
    return listener.result(outcome, reason, current.events, current.compute_s)


@dataclass
class _Run:
    spec: Spec
    listener: Listener
    latency: DeclaredLatency
    events: list[dict[str, Any]] = field(default_factory=list)
    compute_s: float = 0.0
    calls: int = 0

    def go(self, system: System, request: OpenRequest, heard: Samples) -> tuple[Outcome, str]:
        """Run the whole session; never raises for what the system does."""
        session: Session | None = None
        try:
            session = checked_session(self._timed(system.new_session))
            self._timed(session.open, request)
            self._stream(session, heard)
            self._log_close(checked_stats(self._timed(session.close)))
        except (UnsupportedError, InvalidOutputError) as error:
            outcome, reason = Outcome.REFUSED, str(error)
        except _SystemReportedError as error:
            outcome, reason = Outcome.TRANSPORT_ERROR, str(error)
        except SYSTEM_ERRORS as error:
            outcome, reason = Outcome.TRANSPORT_ERROR, f"{type(error).__name__}: {error}"
        else:
            return self.listener.outcome()
        if session is not None:
            with contextlib.suppress(*SYSTEM_ERRORS):
                session.close()
        return outcome, reason

    def _stream(self, session: Session, heard: Samples) -> None:
        spec = self.spec
        silence = np.zeros(spec.unit_in_samples, dtype=np.float32)
        for _ in range(spec.prime_units):
            self._step(session, silence)
        unit = 0
        while self._goes_on(unit * spec.unit_in_samples / spec.in_rate_hz):
            start = unit * spec.unit_in_samples
            part = heard[start : start + spec.unit_in_samples]
            if len(part) < spec.unit_in_samples:
                part = np.concatenate([part, silence[len(part) :]])
            for output in self._step(session, part):
                self._take(output)
            unit += 1
        for _ in range(spec.flush_units):
            for output in self._step(session, silence):
                self._take(output)

    def _step(self, session: Session, unit: Samples) -> list[TimedOut]:
        outs = checked_outs(self._timed(session.step, unit))
        outputs = [timed(out, self.calls, self.spec, self.latency) for out in outs]
        check_lockstep(outputs, self.spec)
        self.calls += 1
        return outputs

    def _goes_on(self, now_s: float) -> bool:
        """Whether another unit is sent at ``now_s``; settles ``timeline_s`` when not."""
        self.listener.timeline_s = self.listener.end_s()
        return now_s < self.listener.timeline_s

    def _take(self, output: TimedOut) -> None:
        out = output.out
        event: dict[str, Any] = {
            "kind": out.kind,
            "unit": output.unit,
            "model_time_s": output.model_time_s,
            "available_s": output.available_s,
            "response_id": out.response_id,
        }
        self.events.append(event)
        self.listener.begun = self.listener.begun or out.response_id is not None or out.state == "speak"
        if out.kind == "audio" and out.pcm is not None:
            self._play(output, out.pcm, event)
        elif out.kind == "flush":
            event["cut"] = as_data(self.listener.flush(max(0.0, output.placed_s)))
        elif out.kind == "state":
            event["state"] = out.state
        else:
            event["text"] = out.text
        if out.kind == "error":
            raise _SystemReportedError(f"the system reported: {out.text or 'an error without a text'}")

    def _play(self, output: TimedOut, pcm: Samples, event: dict[str, Any]) -> None:
        rate = self.spec.out_rate_hz
        event["samples"] = len(pcm)
        # A frame of before the stream (the answer to priming) is hidden, wholly or in part.
        hidden = min(len(pcm), max(0, to_samples(-output.placed_s, rate)))
        event["start_s"] = self.listener.hear(max(0.0, output.placed_s), pcm[hidden:], output.out.response_id)

    def _log_close(self, stats: SessionStats) -> None:
        # Costs and other measured numbers stay out of the log: it is the same in every run.
        self.events.append(
            {"kind": "close", "units": stats.units, "empty_steps": stats.empty_steps,
             "context_used_s": stats.context_used_s, "warnings": list(stats.warnings)}
        )  # fmt: skip

    def _timed(self, call: Any, *arguments: npt.NDArray[np.float32] | OpenRequest) -> Any:
        started = time.perf_counter()
        try:
            return call(*arguments)
        finally:
            self.compute_s += time.perf_counter() - started
