"""The 256 futures that a projection chooses from, and what they say about the floor (Ekstedt and Skantze 2022).

Each of two speakers is active or not in four bins of the next two seconds, 0 to 0.2, 0.6, 1.2 and 2.0 s. A class is
those eight bits, little-endian, the first speaker's before the second's.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

N_BINS: Final = 4
N_CLASSES: Final = 2 ** (2 * N_BINS)
NOW_BINS: Final = (0, 1)
FUTURE_BINS: Final = (2, 3)
# Added to both sums (theirs: to their total alone), so that futures in which nobody speaks give a half each.
_SMALL: Final = 1e-5


def active_bins() -> npt.NDArray[np.bool_]:
    """Which speaker is active in which bin of which class: (256, 2, 4)."""
    bits = np.arange(N_CLASSES)[:, None] >> np.arange(2 * N_BINS)[None, :] & 1
    return bits.reshape(N_CLASSES, 2, N_BINS).astype(np.bool_)


def first_speakers_share(probabilities: npt.NDArray[np.floating], bins: tuple[int, int]) -> npt.NDArray[np.float32]:
    """The first speaker's share of the activity that is expected in ``bins`` (both included).

    Each class counts with its probability times the number of the speaker's active bins.

    Args:
        probabilities: (n, 256), rows sum to 1.
        bins: first and last bin.

    Returns:
        (n,) in [0, 1].

    Raises:
        ValueError: another shape.
    """
    if probabilities.ndim != 2 or probabilities.shape[1] != N_CLASSES:
        raise ValueError(f"probabilities have shape {probabilities.shape}, (n, {N_CLASSES}) is wanted")
    first, last = bins
    counts = active_bins()[:, :, first : last + 1].sum(axis=2).astype(np.float64)
    expected = probabilities.astype(np.float64) @ counts + _SMALL
    share: npt.NDArray[np.float32] = (expected[:, 0] / expected.sum(axis=1)).astype(np.float32)
    return share
