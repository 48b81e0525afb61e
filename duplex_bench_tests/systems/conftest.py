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
