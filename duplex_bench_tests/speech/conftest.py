"""Engines, loaded once for all tests of this room."""

import os
from pathlib import Path

import numpy as np
import pytest
import soundfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
from duplex_bench.speech import engines

RATE_HZ = 24000


@pytest.fixture(scope="session")
def tts():
    return engines.text_to_speech("embedded")


@pytest.fixture(scope="session")
def vad():
    return engines.voice_activity("silero")


@pytest.fixture(scope="session")
def tiny():
    return engines.recogniser("whisper-tiny.en")


@pytest.fixture(scope="session")
def base():
    return engines.recogniser("whisper-base")


@pytest.fixture(scope="session")
def real_speech():
    """A public-domain recording (16 kHz, 11 s): words known, with long pauses inside one sentence."""
    path = Path(__file__).parents[2] / "data" / "recordings" / "jfk_16k.flac"
    samples, rate_hz = soundfile.read(path, dtype="float32")
    return samples, rate_hz


@pytest.fixture(scope="session")
def track(tts):
    """Sentences of three voices on one track: samples, (start, stop) of each clip, word starts, all at 24 kHz."""
    sentences = [
        ("The train to Bristol leaves at noon from the old platform.", "narrator"),
        ("He forgot his umbrella, and of course it rained all afternoon.", "a"),
        ("Nobody knew who had painted the picture above the fireplace.", "d"),
    ]
    pieces, edges, starts_s, position = [], [], [], 0
    for text, voice in sentences:
        gap = np.zeros(RATE_HZ, dtype=np.float32)
        clip = tts.speak(text, voice)
        position += len(gap)
        edges.append((position, position + len(clip.samples)))
        starts_s += [position / RATE_HZ + start for start in clip.word_starts_s]
        position += len(clip.samples)
        pieces += [gap, clip.samples]
    return np.concatenate([*pieces, np.zeros(RATE_HZ, dtype=np.float32)]), edges, starts_s
