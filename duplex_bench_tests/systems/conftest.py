import asyncio
import selectors
import time

import numpy as np
import pytest

from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.interfaces import SpokenClip

RATE = 24_000


class ToneVoice:
    """Speaks a steady tone, 0.1 s a word; remembers what it said."""

    engine_id = "tone"
    voices = ("narrator",)

    def __init__(self):
        self.said = []

    def speak(self, text, voice):
        self.said.append(text)
        n = round(0.1 * RATE) * len(text.split())
        return SpokenClip(np.full(n, 0.2, dtype=np.float32), RATE)


class LevelRecogniser:
    """Reads a stretch's level as its words: ``texts[k]`` for audio of level 0.1 + k / 100."""

    engine_id = "level"

    def __init__(self, texts):
        self.texts = texts
        self.calls = 0

    def words(self, samples, sample_rate_hz):
        self.calls += 1
        k = round((float(np.abs(samples).max()) - 0.1) * 100)
        return tuple(TimedWord(word, None, None, aligned=False) for word in self.texts[k].split())


class _Waits(selectors.DefaultSelector):
    """Sums up what it was asked to wait and did wait; what the machine kept it beyond that is not its."""

    waited_s = 0.0

    def select(self, timeout=None):
        began_s = time.monotonic()
        found = super().select(timeout)
        took_s = time.monotonic() - began_s
        self.waited_s += took_s if timeout is None else min(took_s, max(0.0, timeout))
        return found


class PatientLoop(asyncio.SelectorEventLoop):
    """Real sockets and real waits, on a clock that stands still while other processes have the processor.

    Both ends of a conversation in one such loop keep their times however busy the machine is. What this thread computes
    counts: who is slow is late here too.
    """

    def __init__(self):
        self._waits = _Waits()
        super().__init__(self._waits)

    def time(self):
        return self._waits.waited_s + time.thread_time()


@pytest.fixture
def on_patient_clock():
    """``on_patient_clock(program)`` runs a coroutine to its end in such a loop."""

    def run(program):
        with asyncio.Runner(loop_factory=PatientLoop) as runner:
            return runner.run(program)

    return run


@pytest.fixture
def tone_voice():
    return ToneVoice()


@pytest.fixture
def level_recogniser():
    return LevelRecogniser


@pytest.fixture
def turns():
    """Audio of turns given as (seconds, index of its text) or (seconds, None) for silence."""

    def make(*parts):
        levels = [np.full(round(s * RATE), 0.0 if k is None else 0.1 + k / 100, dtype=np.float32) for s, k in parts]
        return np.concatenate(levels)

    return make
