"""Voice activity over appended audio: the clock of a server's detection is what it was sent, never the wall clock."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from duplex_bench.audio.gate import DEFAULT_GATE
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.cascade.endpointers import Endpointer

FRAME_MS = 20
# Sound shorter than this is a click.
ONSET_FRAMES = 2


@dataclass(frozen=True, slots=True)
class Edge:
    """Speech began, or a turn ended; ``sound_ms`` is the onset or the last sound, ``now_ms`` when it was decided."""

    kind: Literal["started", "stopped"]
    sound_ms: int
    now_ms: int


class Ears:
    """Takes float audio of any length at ``rate_hz`` and finds speech in it by an energy gate on 20 ms frames.

    Args:
        rate_hz: Rate of the audio.
        endpointer: When a silence ends the turn.
    """

    def __init__(self, rate_hz: int, endpointer: Endpointer) -> None:
        self._rate_hz = rate_hz
        self._endpointer = endpointer
        self._frame = rate_hz * FRAME_MS // 1000
        self._rest = np.zeros(0, dtype=np.float32)
        self._heard: list[Samples] = []
        self._loud = 0
        self._last_sound = 0
        self._open = False
        self.speaking = False

    @property
    def now_ms(self) -> int:
        """Milliseconds of whole frames heard."""
        return len(self._heard) * FRAME_MS

    def hear(self, samples: Samples) -> list[Edge]:
        """Take audio; what began or ended in it."""
        self._rest = np.concatenate([self._rest, samples])
        edges = []
        while len(self._rest) >= self._frame:
            edge = self._take(self._rest[: self._frame].copy())
            self._rest = self._rest[self._frame :]
            if edge is not None:
                edges.append(edge)
        return edges

    def retune(self, endpointer: Endpointer) -> None:
        """Listen by another rule from here on; what was heard, and the clock, stay."""
        self._endpointer = endpointer
        self.speaking = False
        self._loud = 0

    def between(self, start_ms: int, stop_ms: int) -> Samples:
        """Audio heard between two instants."""
        frames = self._heard[max(0, start_ms) // FRAME_MS : stop_ms // FRAME_MS]
        return np.concatenate(frames) if frames else np.zeros(0, dtype=np.float32)

    def _take(self, frame: Samples) -> Edge | None:
        level = float(np.sqrt(np.mean(frame**2)))
        gate = DEFAULT_GATE.threshold * (DEFAULT_GATE.release_ratio if self._open else 1.0)
        self._open = level >= gate
        self._heard.append(frame)
        self._loud = self._loud + 1 if self._open else 0
        if self._loud >= ONSET_FRAMES:
            self._last_sound = self.now_ms
            self._endpointer.resumed()
            if not self.speaking:
                self.speaking = True
                return Edge("started", self.now_ms - self._loud * FRAME_MS, self.now_ms)
        elif self.speaking and not self._open and self._ended():
            self.speaking = False
            return Edge("stopped", self._last_sound, self.now_ms)
        return None

    def _ended(self) -> bool:
        silence_s = (self.now_ms - self._last_sound) / 1000
        return self._endpointer.ended(silence_s, self._tail)

    def _tail(self, seconds: float) -> Samples:
        return self.between(self.now_ms - round(seconds * 1000), self.now_ms)


def never_ends() -> Endpointer:
    """An endpointer for manual turns."""
    return _Never()


class _Never:
    def ended(self, silence_s: float, heard: Callable[[float], Samples]) -> bool:
        del silence_s, heard
        return False

    def resumed(self) -> None:
        pass
