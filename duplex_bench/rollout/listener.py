"""What the listener of a rollout heard so far, when listening ends, and how the rollout ended: shared by drivers."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from duplex_bench.audio.time import to_samples
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.outputs import audible_span_s
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.playback import Playback, Samples, Truncation


@dataclass(frozen=True)
class RolloutResult:
    """One run. ``listener`` is float32 (n,) at ``sample_rate_hz`` and ends with the last heard sample.

    ``timeline_s`` is how long the listener listened (input plus silence), ``events`` every output and flush in order,
    the same in every run of a deterministic system; ``compute_s`` is measured and is not. ``retry_after_s`` is set
    where a vendor asked to come back later.
    """

    outcome: Outcome
    reason: str
    listener: Samples
    sample_rate_hz: int
    timeline_s: float
    input_s: float
    events: list[dict[str, Any]]
    compute_s: float
    retry_after_s: float | None = None


@dataclass
class Listener:
    """A listener of ``input_s`` seconds of live audio and of the silence that ``plan`` adds; times are on that clock.

    Attributes:
        begun: A response was begun, audible or not.
        timeline_s: How long the listener listened; settled by the driver.
    """

    out_rate_hz: int
    plan: StreamPlan
    input_s: float
    begun: bool = False
    timeline_s: float = 0.0
    first_audible_s: float | None = None
    audible_until_s: float = 0.0
    playback: Playback = field(init=False)

    def __post_init__(self) -> None:
        self.playback = Playback(self.out_rate_hz)

    def hear(self, at_s: float, pcm: Samples, response_id: str | None) -> float | None:
        """Queue a chunk that arrived at ``at_s``; the second at which it is heard, None if it was dropped."""
        rate = self.out_rate_hz
        start = self.playback.push(at_s, pcm, response_id)
        if start is None:
            return None
        first, last = audible_span_s(pcm, rate)
        if last > first:
            if self.first_audible_s is None:
                self.first_audible_s = start / rate + first
            self.audible_until_s = max(self.audible_until_s, start / rate + last)
        return start / rate

    def flush(self, at_s: float) -> list[Truncation]:
        """Cut what was not heard by ``at_s``."""
        cut = self.playback.flush(at_s)
        self.audible_until_s = min(self.audible_until_s, at_s)
        if self.first_audible_s is not None and self.first_audible_s >= at_s:
            self.first_audible_s = None
        return cut

    def end_s(self) -> float:
        """When the timeline ends, as far as is known by now; what the system does next may move it."""
        plan, input_s = self.plan, self.input_s
        if plan.stop_after_silence_s is not None and plan.cap_s is not None:
            cap = input_s + plan.cap_s
            if self.audible_until_s > input_s:
                return min(cap, self.audible_until_s + plan.stop_after_silence_s)
            return cap
        base = input_s + plan.silence_after_s
        latest = base + plan.extra_silence_s
        if plan.extra_silence_s and self.first_audible_s is None:
            end = latest
        elif plan.extra_silence_s and self.first_audible_s is not None:
            end = min(latest, max(base, self.first_audible_s + plan.silence_after_s))
        else:
            end = base
        return end if plan.cap_s is None else min(end, input_s + plan.cap_s)

    def outcome(self) -> tuple[Outcome, str]:
        """How a rollout ended that nothing stopped; what arrived too late for the timeline was not heard."""
        came = self.first_audible_s is not None and self.first_audible_s < self.timeline_s
        if self.plan.reply_due and not (came and self.audible_until_s > self.input_s):
            return Outcome.NO_AUDIO, "a reply was due and nothing audible came after the live audio"
        if self.begun and not came:
            return Outcome.NO_AUDIO, "a response was begun and nothing audible came"
        return Outcome.COMPLETED, ""

    def result(self, outcome: Outcome, reason: str, events: list[dict[str, Any]], compute_s: float) -> RolloutResult:
        """What was heard until the timeline's end; an unfinished run is as long as what was fed."""
        rate = self.out_rate_hz
        track = self.playback.render()
        limit = to_samples(self.timeline_s, rate)
        if len(track) > limit:
            events.append({"kind": "end_of_timeline", "available_s": self.timeline_s,
                           "unheard_s": (len(track) - limit) / rate})  # fmt: skip
        return RolloutResult(outcome, reason, track[:limit], rate, self.timeline_s, self.input_s, events, compute_s)


def check_live(live: Samples) -> None:
    """Refuse what is no audio.

    Raises:
        ValueError: ``live`` is not finite 1-D float32 audio with at least one sample.
    """
    if live.ndim != 1 or live.dtype != np.float32 or not len(live) or not np.isfinite(live).all():
        raise ValueError(f"live audio is finite float32 of shape (n,), n > 0; got {live.dtype} {live.shape}")


def followed(live: Samples, after: Samples | None) -> Samples:
    """``live`` and what is heard behind it.

    Raises:
        ValueError: ``after`` is not finite 1-D float32 audio with at least one sample.
    """
    if after is None:
        return live
    check_live(after)
    return np.concatenate([live, after])


def as_data(cut: list[Truncation]) -> list[dict[str, Any]]:
    """Truncations as they stand in the event log."""
    return [{"response_id": c.response_id, "heard_s": c.heard_s, "cut_samples": c.cut_samples} for c in cut]
