"""When does the cascade take a turn as ended? By silence, or by how the speaker sounded."""

from collections.abc import Callable
from typing import Protocol

from duplex_bench.rollout.playback import Samples
from duplex_bench.speech.interfaces import TurnEndDetector


class Endpointer(Protocol):
    """Asked once per unit of silence after speech, until it says that the turn has ended or speech resumes."""

    def ended(self, silence_s: float, heard: Callable[[float], Samples]) -> bool:
        """Whether the turn has ended, ``silence_s`` after its last speech.

        Args:
            silence_s: Silence so far.
            heard: Returns the last so many seconds heard, float32 (n,) at ``listening.RATE_HZ``.
        """
        ...

    def resumed(self) -> None:
        """Speech went on: forget what was judged of the silence before."""
        ...


class SilenceEndpointer:
    """Ends a turn after a fixed silence, as server-side voice activity detection does."""

    def __init__(self, silence_s: float) -> None:
        if silence_s <= 0:
            raise ValueError(f"silence_s must be positive, got {silence_s}")
        self.silence_s = silence_s

    def ended(self, silence_s: float, heard: Callable[[float], Samples]) -> bool:
        """True from ``silence_s`` of silence on."""
        del heard
        # Units add up in floating point: a hair below the threshold is the threshold.
        return silence_s >= self.silence_s - 1e-9

    def resumed(self) -> None:
        """Nothing to forget."""


class SemanticEndpointer:
    """Asks a turn-end detector once after a short silence; an incomplete turn ends at ``cap_s`` of silence.

    Args:
        detector: Judges the last 8 s.
        sample_rate_hz: Rate of what is heard.
        check_after_s: Silence before it is asked (the detector was made for 0.2 s).
        threshold: Probability from which a turn counts as complete.
        cap_s: Silence that ends any turn.
    """

    WINDOW_S = 8.0

    def __init__(
        self,
        detector: TurnEndDetector,
        sample_rate_hz: int,
        check_after_s: float = 0.2,
        threshold: float = 0.5,
        cap_s: float = 2.0,
    ) -> None:
        if not 0 < check_after_s <= cap_s:
            raise ValueError(f"semantic endpointer: 0 < check_after_s <= cap_s, got {check_after_s} and {cap_s}")
        self.detector = detector
        self.sample_rate_hz = sample_rate_hz
        self.check_after_s = check_after_s
        self.threshold = threshold
        self.cap_s = cap_s
        self._complete: bool | None = None

    def ended(self, silence_s: float, heard: Callable[[float], Samples]) -> bool:
        """True if the detector called the turn complete, or at the cap."""
        if silence_s < self.check_after_s - 1e-9:
            return False
        if self._complete is None:
            probability = self.detector.completion_probability(heard(self.WINDOW_S), self.sample_rate_hz)
            self._complete = probability > self.threshold
        return self._complete or silence_s >= self.cap_s - 1e-9

    def resumed(self) -> None:
        """The next silence is judged anew."""
        self._complete = None
