"""What stands behind a server: who hears, decides and speaks. The embedded cascade, or a tone without any model."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from duplex_bench.rollout.playback import Samples
from duplex_bench.speech.interfaces import TurnEndDetector
from duplex_bench.systems.adapters.cascade.cascade import Cascade

RATE_HZ = 24_000


class Voice(Protocol):
    """Hears a turn, decides what to say, and says it; audio is float32 (n,) at ``RATE_HZ``."""

    @property
    def turn_end(self) -> TurnEndDetector | None:
        """Judges whether a turn sounds complete, for semantic detection; None without one."""
        ...

    def hear(self, samples: Samples) -> str:
        """Words of a turn."""
        ...

    def reply(self, earlier: Sequence[str], turn: str) -> str | None:
        """What to say to ``turn`` after ``earlier``; None to stay silent."""
        ...

    def speak(self, text: str) -> Samples:
        """``text`` as audio."""
        ...


class CascadeVoice:
    """The ears, the rule and the voice of the embedded cascade."""

    def __init__(self, cascade: Cascade) -> None:
        self._cascade = cascade

    @property
    def turn_end(self) -> TurnEndDetector | None:
        """The cascade's own detector."""
        return self._cascade.parts.turn_end

    def hear(self, samples: Samples) -> str:
        """Recognised words."""
        return " ".join(word.text for word in self._cascade.parts.recogniser.words(samples, RATE_HZ))

    def reply(self, earlier: Sequence[str], turn: str) -> str | None:
        """By the cascade's rule."""
        return self._cascade.rule.reply(earlier, turn)

    def speak(self, text: str) -> Samples:
        """In the cascade's voice."""
        return self._cascade.speak(text)


class ToneVoice:
    """Answers every turn with a tone whose level tells how long the turn was; needs no model.

    Args:
        seconds: Length of a reply.
    """

    turn_end: TurnEndDetector | None = None

    def __init__(self, seconds: float = 2.0) -> None:
        self.seconds = seconds

    def hear(self, samples: Samples) -> str:
        """How long it was."""
        return f"sound of {len(samples) / RATE_HZ:.1f} seconds"

    def reply(self, earlier: Sequence[str], turn: str) -> str | None:
        """What was heard, said back; nothing was heard, nothing is said."""
        del earlier
        return f"I heard a {turn}." if turn else "I heard nothing."

    def speak(self, text: str) -> Samples:
        """A tone."""
        del text
        time_s = np.arange(round(self.seconds * RATE_HZ)) / RATE_HZ
        return (0.2 * np.sin(2 * np.pi * 220 * time_s)).astype(np.float32)
