"""Sample rate conversion by soxr."""

import numpy as np
import numpy.typing as npt


def resample(samples: npt.ArrayLike, from_hz: int, to_hz: int) -> npt.NDArray[np.float32]:
    """``samples`` at another rate (soxr, quality HQ); the same rate returns them unchanged.

    Args:
        samples: float (n,) or (n, channels), full scale 1.0.
        from_hz: their rate.
        to_hz: the rate wanted.

    Returns:
        float32 of the same number of channels; length n * to_hz / from_hz, rounded.

    Raises:
        ValueError: integer samples, or a rate below 1.
    """
    values = np.asarray(samples)
    if not np.issubdtype(values.dtype, np.floating):
        raise ValueError(f"resample takes float audio, got {values.dtype}: divide PCM16 by 32768")
    if from_hz < 1 or to_hz < 1:
        raise ValueError(f"cannot resample from {from_hz} to {to_hz} Hz: rates are at least 1")
    values = values.astype(np.float32, copy=False)
    if from_hz == to_hz or len(values) == 0:
        return values
    import soxr

    converted: npt.NDArray[np.float32] = soxr.resample(values, from_hz, to_hz, quality="HQ")
    return converted
