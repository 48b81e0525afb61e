"""What the cascade heard: a streaming energy gate over units, stretches of speech, and their words when asked for."""

from dataclasses import dataclass

import numpy as np

from duplex_bench.audio.gate import DEFAULT_GATE, GateSettings
from duplex_bench.rollout.playback import Samples
from duplex_bench.speech.interfaces import Recogniser

RATE_HZ = 24_000
UNIT_SAMPLES = 480
UNIT_S = UNIT_SAMPLES / RATE_HZ
# Sound shorter than this is a click, not speech.
_MIN_SPEECH_UNITS = 3
# Kept on either side of a stretch when it is recognised.
_PAD_UNITS = 6
# A silence of so long parts two stretches. All cascades part them alike, so that they share what was recognised.
_STRETCH_SILENCE_UNITS = 15


@dataclass(slots=True)
class Stretch:
    """Speech between two silences, units [start, stop); ``text`` once it was recognised."""

    start: int
    stop: int
    text: str | None = None


class Listening:
    """Takes 20 ms units (480,) at 24 kHz; knows at each whether someone speaks, and since or until when.

    Args:
        recogniser: Asked for the words of a stretch, at most once each.
        gate: Opening level and release ratio of the energy gate.
    """

    def __init__(self, recogniser: Recogniser, gate: GateSettings = DEFAULT_GATE) -> None:
        self._recogniser = recogniser
        self._open_power = gate.threshold**2 * UNIT_SAMPLES
        self._close_power = (gate.threshold * gate.release_ratio) ** 2 * UNIT_SAMPLES
        self._units: list[Samples] = []
        self._active = False
        self._run = 0
        self._last_sound = -1
        self._onset = -1
        self.stretches: list[Stretch] = []

    def hear(self, unit: Samples) -> None:
        """Take one unit."""
        power = float(np.dot(unit, unit))
        self._active = power >= (self._close_power if self._active else self._open_power)
        number = len(self._units)
        self._units.append(unit)
        if not self._active:
            self._run = 0
            return
        self._run += 1
        if self._run < _MIN_SPEECH_UNITS:
            return
        start = number + 1 - self._run
        if self._run == _MIN_SPEECH_UNITS and (not self.stretches or start - self._last_sound > _STRETCH_SILENCE_UNITS):
            self.stretches.append(Stretch(start, number + 1))
        if self._run == _MIN_SPEECH_UNITS:
            self._onset = start
        self._last_sound = number
        self.stretches[-1].stop = number + 1
        self.stretches[-1].text = None

    @property
    def now_s(self) -> float:
        """Seconds heard."""
        return len(self._units) * UNIT_S

    @property
    def is_speech(self) -> bool:
        """Whether someone is speaking in the unit heard last."""
        return self._run >= _MIN_SPEECH_UNITS

    @property
    def silence_s(self) -> float | None:
        """Seconds since speech was heard last, None if there was none yet."""
        return None if self._last_sound < 0 else (len(self._units) - 1 - self._last_sound) * UNIT_S

    @property
    def onset_s(self) -> float:
        """Where the speech heard last began, after any break of one unit or more."""
        return self._onset * UNIT_S

    def last(self, seconds: float) -> Samples:
        """The last so many seconds heard."""
        count = min(len(self._units), round(seconds / UNIT_S))
        return np.concatenate(self._units[len(self._units) - count :])

    def text_of(self, stretch: Stretch) -> str:
        """Words of a stretch that has ended or is ending."""
        if stretch.text is None:
            first = max(0, stretch.start - _PAD_UNITS)
            audio = np.concatenate(self._units[first : stretch.stop + _PAD_UNITS])
            stretch.text = " ".join(word.text for word in self._recogniser.words(audio, RATE_HZ))
        return stretch.text
