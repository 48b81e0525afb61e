"""Is a sound an echo of another: the greatest correlation over delays; and at what frequency a sound is strongest."""

from typing import Final

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

# A voice's fundamental and most of its energy lie between (ours).
LOWEST_HZ: Final = 50.0
HIGHEST_HZ: Final = 4000.0
_QUIET: Final = 1e-9


def echo_correlation(sound: Samples, source: Samples, start: int, most_lag: int) -> float:
    """How much ``sound`` is a delayed copy of ``source``: 1 for a copy at any level, near 0 for anything else.

    The greatest absolute normalised correlation over every delay from 0 to ``most_lag``; both are taken as they are,
    without their means being removed, since audio has none.

    Args:
        sound: Float audio (n,).
        source: Float audio (m,) on the same clock and at the same rate.
        start: Sample of ``source``'s clock at which ``sound`` begins.
        most_lag: Longest delay, in samples.

    Returns:
        0 to 1; 0 where one of them is silent.

    Raises:
        ValueError: A negative ``start`` or ``most_lag``, or no sound.
    """
    from scipy.signal import correlate

    if start < 0 or most_lag < 0 or not len(sound):
        raise ValueError(f"echo: start {start} and most_lag {most_lag} cannot be negative, a sound has samples")
    # What was before the beginning of the source, and after its end, is silence.
    begin = start - most_lag
    heard = np.zeros(most_lag + len(sound), dtype=np.float64)
    low, high = max(0, begin), min(len(source), start + len(sound))
    if high > low:
        heard[low - begin : high - begin] = source[low:high]
    wanted = sound.astype(np.float64)
    products = correlate(heard, wanted, mode="valid", method="fft")
    energy = np.concatenate([[0.0], np.cumsum(heard**2)])
    around = np.sqrt(np.maximum(energy[len(sound) :] - energy[: -len(sound)], 0.0))
    norm = around * np.sqrt(float(np.sum(wanted**2)))
    loud = norm > _QUIET
    return float(np.clip(np.max(np.abs(products[loud]) / norm[loud]), 0.0, 1.0)) if loud.any() else 0.0


def dominant_hz(sound: Samples, sample_rate_hz: int) -> float:
    """The frequency between 50 and 4,000 Hz at which ``sound``, float audio (n,), has most power (Hann window).

    Raises:
        ValueError: Too short for 50 Hz.
    """
    if len(sound) < sample_rate_hz / LOWEST_HZ:
        raise ValueError(f"a sound of {len(sound)} samples is too short: {LOWEST_HZ:g} Hz take one period at least")
    # Padded to a second: the peak is read to about 1 Hz.
    size = max(len(sound), sample_rate_hz)
    power = np.abs(np.fft.rfft(sound * np.hanning(len(sound)), size)) ** 2
    hz = np.fft.rfftfreq(size, 1 / sample_rate_hz)
    inside = (hz >= LOWEST_HZ) & (hz <= HIGHEST_HZ)
    return float(hz[inside][np.argmax(power[inside])])
