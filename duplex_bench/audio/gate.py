"""The energy gate: where a channel carries sound, from its RMS envelope with hysteresis (P2 3.5, App. D)."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import isfinite
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.time import to_samples

# A level that equals a threshold must reach it, though float32 cannot hold 0.01 (it stores 0.0099999998).
_ROUNDING: Final = 1e-6
# Samples squared at a time: small enough to stay in cache, so that long recordings need no second copy.
_CHUNK_SAMPLES: Final = 1 << 17

_OPENS: Final = np.int8(1)
_CLOSES: Final = np.int8(-1)
_HOLDS: Final = np.int8(0)


@dataclass(frozen=True, slots=True)
class GateSettings:
    """The gate's numbers; every score stores the first three.

    Attributes:
        threshold: RMS, as a share of full scale, at which the gate opens (P2).
        release_ratio: the gate stays open down to ``threshold * release_ratio`` (P2).
        min_duration_s: shorter intervals are dropped (P2).
        window_s: length of an RMS window (P2).
        hop_s: distance between window starts (ours; P2's counts fit 20 ms better).
    """

    threshold: float = 0.01
    release_ratio: float = 0.5
    min_duration_s: float = 0.08
    window_s: float = 0.02
    hop_s: float = 0.01

    def __post_init__(self) -> None:
        if not (isfinite(self.threshold) and self.threshold > 0):
            raise ValueError(f"gate threshold {self.threshold}: give a number above 0")
        if not 0 < self.release_ratio <= 1:
            raise ValueError(f"gate release_ratio {self.release_ratio}: give a number above 0 and up to 1")
        if not (isfinite(self.min_duration_s) and self.min_duration_s >= 0):
            raise ValueError(f"gate min_duration_s {self.min_duration_s}: give 0 or more seconds")
        if not (isfinite(self.window_s) and isfinite(self.hop_s) and 0 < self.hop_s <= self.window_s):
            raise ValueError(f"gate hop_s {self.hop_s} and window_s {self.window_s}: give 0 < hop_s <= window_s")


DEFAULT_GATE: Final = GateSettings()


def speech_intervals(
    samples: npt.ArrayLike,
    sample_rate_hz: int,
    threshold: float = 0.01,
    release_ratio: float = 0.5,
    min_duration_s: float = 0.08,
) -> npt.NDArray[np.int64]:
    """Where ``samples`` carry sound above the gate (P2 3.5): 20 ms RMS windows every 10 ms.

    The gate opens at a window of at least ``threshold`` and stays open while windows are at least
    ``threshold * release_ratio``. An interval runs from the start of its first to the end of its last active
    window's hop, cut at the end of the audio; below ``min_duration_s`` it is dropped.

    Args:
        samples: one channel (n,), float32 or float64, full scale 1.0.
        sample_rate_hz: samples a second.
        threshold: opening RMS as a share of full scale.
        release_ratio: closing level as a share of ``threshold``.
        min_duration_s: shortest interval kept, in seconds.

    Returns:
        int64 (k, 2): [start, stop) in samples, sorted, apart from each other.

    Raises:
        ValueError: samples are not finite, not one channel, or not float32/float64; a setting is out of range.
    """
    return gate(samples, sample_rate_hz, GateSettings(threshold, release_ratio, min_duration_s))


def gate(samples: npt.ArrayLike, sample_rate_hz: int, settings: GateSettings = DEFAULT_GATE) -> npt.NDArray[np.int64]:
    """As ``speech_intervals``, with all settings in one object. Returns int64 (k, 2) samples."""
    return stream_intervals([samples], sample_rate_hz, settings)


def intervals_s(
    samples: npt.ArrayLike, sample_rate_hz: int, settings: GateSettings = DEFAULT_GATE
) -> npt.NDArray[np.float64]:
    """As ``gate``, in seconds: float64 (k, 2)."""
    return gate(samples, sample_rate_hz, settings).astype(np.float64) / sample_rate_hz


def stream_intervals(
    blocks: Iterable[npt.ArrayLike], sample_rate_hz: int, settings: GateSettings = DEFAULT_GATE
) -> npt.NDArray[np.int64]:
    """The gate over consecutive blocks of one channel, for hours of audio: equal to ``gate`` of the whole.

    Holds one block and one byte per hop (0.36 MB per hour at 10 ms).

    Args:
        blocks: consecutive blocks (m,), float32 or float64, of any lengths.
        sample_rate_hz: samples a second.
        settings: the gate's numbers.

    Returns:
        int64 (k, 2): [start, stop) in samples from the first block's first sample.

    Raises:
        ValueError: as ``speech_intervals``.
    """
    hop = to_samples(settings.hop_s, sample_rate_hz)
    window = to_samples(settings.window_s, sample_rate_hz)
    if hop < 1:
        raise ValueError(f"gate hop_s {settings.hop_s} is under one sample at {sample_rate_hz} Hz: use a longer hop")
    states: list[npt.NDArray[np.int8]] = []
    waiting: npt.NDArray[Any] = np.empty(0, dtype=np.float32)
    total = 0
    for block in blocks:
        part = _one_channel(block)
        total += len(part)
        waiting = part if len(waiting) == 0 else np.concatenate([waiting, part])
        whole = max(0, (len(waiting) - window) // hop + 1)
        if whole:
            states.append(_states(_mean_squares(waiting, whole, window, hop), settings, total))
            waiting = waiting[whole * hop :]
    tail = [
        np.square(waiting[start : start + window], dtype=np.float64).mean() for start in range(0, len(waiting), hop)
    ]
    states.append(_states(np.array(tail, dtype=np.float64), settings, total))
    return _intervals(np.concatenate(states), total, hop, to_samples(settings.min_duration_s, sample_rate_hz))


def _one_channel(block: npt.ArrayLike) -> npt.NDArray[Any]:
    samples = np.asarray(block)
    if samples.ndim != 1:
        raise ValueError(f"the gate takes one channel (n,), got shape {samples.shape}: pass samples[:, channel]")
    if samples.dtype not in (np.float32, np.float64):
        raise ValueError(
            f"the gate takes float32 or float64 with full scale 1.0, got {samples.dtype}: divide PCM16 by 32768"
        )
    return samples


def _mean_squares(samples: npt.NDArray[Any], count: int, window: int, hop: int) -> npt.NDArray[np.float64]:
    """Mean square of the ``count`` whole windows, summed window by window so that loud parts cost no precision."""
    result = np.empty(count, dtype=np.float64)
    step = max(1, _CHUNK_SAMPLES // hop)
    for first in range(0, count, step):
        last = min(first + step, count)
        chunk = samples[first * hop : (last - 1) * hop + window].astype(np.float64)
        frames = np.lib.stride_tricks.sliding_window_view(chunk, window)[::hop]
        np.einsum("ij,ij->i", frames, frames, out=result[first:last])
    result /= window
    return result


def _states(mean_squares: npt.NDArray[np.float64], settings: GateSettings, total: int) -> npt.NDArray[np.int8]:
    if not np.isfinite(mean_squares).all():
        raise ValueError(f"NaN, infinite or absurdly large samples before sample {total}: repair the audio first")
    level = np.sqrt(mean_squares)
    opening = settings.threshold * (1 - _ROUNDING)
    states = np.full(len(level), _HOLDS, dtype=np.int8)
    states[level < opening * settings.release_ratio] = _CLOSES
    states[level >= opening] = _OPENS
    return states


def _intervals(states: npt.NDArray[np.int8], total: int, hop: int, min_samples: int) -> npt.NDArray[np.int64]:
    decided = np.where(states == _HOLDS, 0, np.arange(1, len(states) + 1))
    latest = np.maximum.accumulate(decided) if len(decided) else decided
    active = (latest > 0) & (states[latest - 1] == _OPENS)
    edges = np.diff(np.concatenate([[False], active, [False]]).astype(np.int8))
    starts = np.flatnonzero(edges == 1) * hop
    stops = np.minimum(np.flatnonzero(edges == -1) * hop, total)
    found = np.stack([starts, stops], axis=1).astype(np.int64)
    kept: npt.NDArray[np.int64] = found[found[:, 1] - found[:, 0] >= max(min_samples, 1)]
    return kept
