"""Settings of the activity projection, and what it says of a recording."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class ProjectionSettings:
    """Which weights project, and how a long recording is cut for them.

    Attributes:
        weights: path of a checkpoint; empty: no projection, and the flags that need it are absent.
        context_s: how much a frame has heard before it at least, once there is so much (theirs: 20 s, the length
            that the model was trained on).
        step_s: how many seconds of frames are taken from each stretch (theirs: 5 s).
    """

    weights: str = ""
    context_s: float = 20.0
    step_s: float = 5.0

    def __post_init__(self) -> None:
        if self.context_s < 0 or self.step_s < 1:
            raise ValueError(
                f"projection context_s {self.context_s} and step_s {self.step_s}: give 0 or more, and 1 or more"
            )


@dataclass(frozen=True, slots=True)
class FloorProjection:
    """The left speaker's share of the floor, frame by frame; the right one's is the rest to 1.

    Attributes:
        frame_rate_hz: frames a second. Frame k has heard the recording up to (k + 1) / ``frame_rate_hz``.
        now: float32 (n,), over the next 0 to 0.6 s.
        future: float32 (n,), over the next 0.6 to 2 s.
    """

    frame_rate_hz: float
    now: npt.NDArray[np.float32]
    future: npt.NDArray[np.float32]

    def mean(self, values: npt.NDArray[np.float32], start_s: float, end_s: float) -> float | None:
        """Mean of ``values`` over the frames whose hearing ends in (``start_s``, ``end_s``]; None if there is none."""
        # A frame's time in whole hundredths of a frame, since decimal seconds do not divide exactly.
        first = int(np.floor(round(start_s * self.frame_rate_hz, 2)))
        last = int(np.floor(round(end_s * self.frame_rate_hz, 2)))
        part = values[max(first, 0) : max(last, 0)]
        return float(np.mean(part, dtype=np.float64)) if len(part) else None
