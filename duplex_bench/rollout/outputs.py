"""Outputs of a system, checked and put on the stream's clock."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.gate import DEFAULT_GATE, GateSettings
from duplex_bench.audio.time import to_samples
from duplex_bench.contract.returned import checked_out
from duplex_bench.contract.types import InvalidOutputError, Out, Spec

Samples = npt.NDArray[np.float32]


LOUDEST: Final = 4.0
"""Full scale is 1. Models overshoot it a little; integers that nobody scaled do so by thousands (ours)."""


@dataclass(frozen=True, slots=True)
class DeclaredLatency:
    """When an output counts as available, beyond the end of the unit that caused it.

    Attributes:
        constant_s: Added to every output (a stated network or compute latency).
        compute_share: This share of the reported compute time is added; anything but 0 makes runs differ in time.
    """

    constant_s: float = 0.0
    compute_share: float = 0.0

    def __post_init__(self) -> None:
        if min(self.constant_s, self.compute_share) < 0:
            raise ValueError("a declared latency cannot be negative")


@dataclass(frozen=True, slots=True)
class TimedOut:
    """An output with its times on the stream's clock; ``unit`` counts from the first unit of the stream."""

    out: Out
    unit: int
    model_time_s: float | None
    available_s: float

    @property
    def placed_s(self) -> float:
        """Where it belongs on the listener timeline: model time if it has one, else when it became available."""
        return self.available_s if self.model_time_s is None else self.model_time_s


def timed(out: Out, call: int, spec: Spec, latency: DeclaredLatency) -> TimedOut:
    """Check ``out``, returned by call number ``call`` (priming included), and put it on the clock.

    Raises:
        InvalidOutputError: Unknown kind or state, a unit that was not yet fed, audio of wrong shape, dtype, range or
            with NaN, or audio that is available before the unit that caused it began.
    """
    checked_out(out)
    if not 0 <= out.unit <= call:
        raise InvalidOutputError(f"an output of call {call} names unit {out.unit}, which was not yet fed")
    if out.kind == "audio" and out.pcm is not None:
        _check_audio(out.pcm, spec)
    unit = out.unit - spec.prime_units
    model_time_s = out.model_time_s
    if model_time_s is None and spec.lockstep:
        model_time_s = (unit + spec.model_shift_units) * spec.unit_in_samples / spec.in_rate_hz
    available_s = out.available_s
    current = call - spec.prime_units
    if available_s is None:
        available_s = (current + 1) * spec.unit_in_samples / spec.in_rate_hz
    elif available_s < unit * spec.unit_in_samples / spec.in_rate_hz:
        raise InvalidOutputError(f"an output is available at {available_s} s, before unit {unit} that caused it began")
    available_s += latency.constant_s + latency.compute_share * out.cost_ms / 1000.0
    return TimedOut(out, unit, model_time_s, available_s)


def check_lockstep(outs: list[TimedOut], spec: Spec) -> None:
    """A lockstep system gives one frame a unit, or none.

    Raises:
        InvalidOutputError: More than one frame belongs to one unit.
    """
    if spec.lockstep and spec.unit_out_samples is not None:
        times = [timed_out.model_time_s for timed_out in outs if timed_out.out.kind == "audio"]
        if len(set(times)) != len(times):
            raise InvalidOutputError("a lockstep system returned two audio frames for one unit")


def audible_span_s(pcm: Samples, sample_rate_hz: int, settings: GateSettings = DEFAULT_GATE) -> tuple[float, float]:
    """First and last second of ``pcm`` (n,) at which a window's RMS reaches the gate; (0.0, 0.0) if none does."""
    window = max(1, to_samples(settings.window_s, sample_rate_hz))
    count = -(-len(pcm) // window)
    padded = np.zeros(count * window)
    padded[: len(pcm)] = pcm
    level = np.sqrt(np.mean(padded.reshape(count, window) ** 2, axis=1)) if count else np.zeros(0)
    loud = np.flatnonzero(level >= settings.threshold)
    if not len(loud):
        return 0.0, 0.0
    first, last = int(loud[0]), int(loud[-1])
    return first * window / sample_rate_hz, min(len(pcm), (last + 1) * window) / sample_rate_hz


def _check_audio(pcm: Samples, spec: Spec) -> None:
    if spec.unit_out_samples is not None and len(pcm) != spec.unit_out_samples:
        raise InvalidOutputError(f"audio of {len(pcm)} samples, the spec promises {spec.unit_out_samples}")
    if not np.isfinite(pcm).all():
        raise InvalidOutputError("audio holds NaN or infinity")
    loudest = float(np.abs(pcm).max(initial=0.0))
    if loudest > LOUDEST:
        raise InvalidOutputError(
            f"audio reaches {loudest:g}, full scale is 1: divide samples of 16 bit integers by 32768"
        )
