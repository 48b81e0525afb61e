"""Loudness of a mono recording by ITU-R BS.1770-4, with numpy alone: a model's environment has no more.

Frequency weighting as ``pyloudnorm`` has it, which PersonaPlex's vendor measures with: a shelf of +4 dB above 1,500 Hz
and a high-pass at 38 Hz, both as second-order sections of the audio cookbook (Bristow-Johnson).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats = npt.NDArray[np.float64]

SHELF_HZ, SHELF_DB, SHELF_Q = 1500.0, 4.0, 1.0 / math.sqrt(2.0)
HIGH_PASS_HZ, HIGH_PASS_Q = 38.0, 0.5
BLOCK_S = 0.4
# Blocks begin this share of a block apart.
_STEP = 0.25
_ABSOLUTE_GATE, _RELATIVE_GATE, _OFFSET = -70.0, -10.0, -0.691
# The filters have died away after that much silence.
_TAIL_S = 2.0


def integrated_loudness(samples: npt.ArrayLike, rate_hz: int) -> float:
    """Gated loudness in LUFS of samples (n,); minus infinity where no block is above the absolute gate.

    Raises:
        ValueError: Less than one block of 0.4 s, or more than one channel.
    """
    audio = np.asarray(samples, dtype=np.float64)
    if audio.ndim != 1 or len(audio) < BLOCK_S * rate_hz:
        raise ValueError(f"loudness needs one channel of at least {BLOCK_S} s, got shape {audio.shape} at {rate_hz} Hz")
    power = np.concatenate([[0.0], np.cumsum(_weighted(audio, rate_hz) ** 2)])
    n_blocks = round((len(audio) / rate_hz - BLOCK_S) / (BLOCK_S * _STEP)) + 1
    starts = np.array([int(BLOCK_S * block * _STEP * rate_hz) for block in range(n_blocks)])
    ends = np.array([int(BLOCK_S * (block * _STEP + 1) * rate_hz) for block in range(n_blocks)])
    energy = (power[np.minimum(ends, len(audio))] - power[starts]) / (BLOCK_S * rate_hz)
    heard = energy[_lufs(energy) >= _ABSOLUTE_GATE]
    if not len(heard):
        return -math.inf
    threshold = float(_lufs(heard.mean())) + _RELATIVE_GATE
    loud = heard[_lufs(heard) > max(threshold, _ABSOLUTE_GATE)]
    return float(_lufs(loud.mean())) if len(loud) else -math.inf


def at_loudness(samples: npt.ArrayLike, rate_hz: int, lufs: float) -> npt.NDArray[np.float32]:
    """Samples (n,) made louder or softer until they have that loudness; float32, not clipped.

    Raises:
        ValueError: They are silent, or too short to be measured.
    """
    audio = np.asarray(samples, dtype=np.float64)
    measured = integrated_loudness(audio, rate_hz)
    if math.isinf(measured):
        raise ValueError("the recording is silent: its loudness cannot be set")
    louder: npt.NDArray[np.float32] = (audio * 10.0 ** ((lufs - measured) / 20.0)).astype(np.float32)
    return louder


def _lufs(energy: Floats | float) -> Floats:
    with np.errstate(divide="ignore"):
        found: Floats = _OFFSET + 10.0 * np.log10(energy)
    return found


def _weighted(audio: Floats, rate_hz: int) -> Floats:
    """Both filters at once, by their response at each frequency of the recording and a tail of silence."""
    size = len(audio) + int(_TAIL_S * rate_hz)
    delay = np.exp(-2j * np.pi * np.fft.rfftfreq(size))
    response = np.ones_like(delay)
    for upper, lower in (_shelf(rate_hz), _high_pass(rate_hz)):
        response *= np.polyval(upper[::-1], delay) / np.polyval(lower[::-1], delay)
    filtered: Floats = np.fft.irfft(np.fft.rfft(audio, size) * response, size)[: len(audio)]
    return filtered


def _angle(hz: float, q: float, rate_hz: int) -> tuple[float, float]:
    w = 2.0 * math.pi * hz / rate_hz
    return math.cos(w), math.sin(w) / (2.0 * q)


def _shelf(rate_hz: int) -> tuple[list[float], list[float]]:
    gain = 10.0 ** (SHELF_DB / 40.0)
    cosine, alpha = _angle(SHELF_HZ, SHELF_Q, rate_hz)
    slope = 2.0 * math.sqrt(gain) * alpha
    upper = [
        gain * (gain + 1 + (gain - 1) * cosine + slope),
        -2 * gain * (gain - 1 + (gain + 1) * cosine),
        gain * (gain + 1 + (gain - 1) * cosine - slope),
    ]
    lower = [
        gain + 1 - (gain - 1) * cosine + slope,
        2 * (gain - 1 - (gain + 1) * cosine),
        gain + 1 - (gain - 1) * cosine - slope,
    ]
    return upper, lower


def _high_pass(rate_hz: int) -> tuple[list[float], list[float]]:
    cosine, alpha = _angle(HIGH_PASS_HZ, HIGH_PASS_Q, rate_hz)
    return [(1 + cosine) / 2, -(1 + cosine), (1 + cosine) / 2], [1 + alpha, -2 * cosine, 1 - alpha]
