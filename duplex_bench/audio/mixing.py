"""Levels, trimming, and placing clips on a timeline; float32 mono (n,) with full scale 1.0 throughout."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.time import to_samples

Mono = npt.NDArray[np.float32]


class Mix(NamedTuple):
    """A mix and its peak (absolute; above 1.0 it would clip)."""

    samples: Mono
    peak: float


def rms_dbfs(samples: npt.NDArray[np.floating]) -> float:
    """RMS level in dB relative to full scale 1.0; minus infinity for silence.

    Raises:
        ValueError: there are no samples.
    """
    if samples.size == 0:
        raise ValueError("no samples have no level")
    mean_square = float(np.square(samples, dtype=np.float64).mean())
    return 10 * float(np.log10(mean_square)) if mean_square > 0 else -float("inf")


def normalise_rms(samples: npt.NDArray[np.floating], target_dbfs: float, peak_limit: float = 0.95) -> Mono:
    """``samples`` scaled to an RMS of ``target_dbfs``, or less where the peak would pass ``peak_limit``.

    Raises:
        ValueError: digital silence, which no gain brings to a level.
    """
    level = rms_dbfs(samples)
    if level == -float("inf"):
        raise ValueError("digital silence cannot be normalised: leave it out")
    gain = 10 ** ((target_dbfs - level) / 20)
    peak = float(np.abs(samples).max())
    return (samples * min(gain, peak_limit / peak)).astype(np.float32)


def trim_silence(samples: Mono, sample_rate_hz: int, threshold_db: float = 40.0, pad_s: float = 0.0) -> Mono:
    """``samples`` without the edges that lie more than ``threshold_db`` dB below their peak.

    Args:
        samples: float (n,).
        sample_rate_hz: their rate.
        threshold_db: how far below the peak counts as silence, above 0.
        pad_s: seconds kept on either side, where there are any.

    Raises:
        ValueError: digital silence: nothing would be left.
    """
    magnitude = np.abs(samples)
    peak = float(magnitude.max(initial=0.0))
    if peak == 0.0:
        raise ValueError("digital silence cannot be trimmed: nothing would be left")
    loud = np.flatnonzero(magnitude >= peak * 10 ** (-threshold_db / 20))
    pad = to_samples(pad_s, sample_rate_hz)
    return samples[max(0, int(loud[0]) - pad) : int(loud[-1]) + 1 + pad]


def place(clips: Iterable[tuple[int, npt.NDArray[np.floating]]], n_samples: int) -> Mix:
    """Clips summed onto ``n_samples`` of silence, each from its own start sample; nothing is scaled or clipped.

    Raises:
        ValueError: a clip lies outside [0, n_samples).
    """
    mixed = np.zeros(n_samples, dtype=np.float32)
    for number, (start, clip) in enumerate(clips):
        if start < 0 or start + len(clip) > n_samples:
            raise ValueError(f"clip {number} spans samples {start} to {start + len(clip)}, outside 0 to {n_samples}")
        mixed[start : start + len(clip)] += clip
    return Mix(mixed, float(np.abs(mixed).max(initial=0.0)))


def two_channel(left: Mono, right: Mono) -> npt.NDArray[np.float32]:
    """Two mono channels as float32 (n, 2); the shorter is filled with silence."""
    both = np.zeros((max(len(left), len(right)), 2), dtype=np.float32)
    both[: len(left), 0] = left
    both[: len(right), 1] = right
    return both
