"""Seconds to samples and back: the one conversion each way (design 5)."""

from decimal import ROUND_FLOOR, Decimal
from math import isfinite


def to_samples(seconds: float, sample_rate_hz: int) -> int:
    """Sample position of ``seconds``, rounded half up, computed in decimal so that 0.29 s at 100 Hz is 29.

    Args:
        seconds: position or duration in seconds; may be negative.
        sample_rate_hz: samples a second, at least 1.

    Raises:
        ValueError: ``seconds`` is not finite or the rate is below 1.
    """
    _check_rate(sample_rate_hz)
    if not isfinite(seconds):
        raise ValueError(f"{seconds} seconds is no position in audio: give a finite number")
    exact = Decimal(repr(float(seconds))) * Decimal(int(sample_rate_hz))
    return int((exact + Decimal("0.5")).to_integral_value(rounding=ROUND_FLOOR))


def to_seconds(samples: int, sample_rate_hz: int) -> float:
    """Seconds from the first sample to sample position ``samples``.

    Raises:
        ValueError: the rate is below 1.
    """
    _check_rate(sample_rate_hz)
    return int(samples) / int(sample_rate_hz)


def _check_rate(sample_rate_hz: int) -> None:
    if not isfinite(sample_rate_hz) or sample_rate_hz < 1 or sample_rate_hz != int(sample_rate_hz):
        raise ValueError(f"sample rate {sample_rate_hz} Hz: give a whole number of at least 1")
