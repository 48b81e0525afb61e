import numpy as np
import pytest

from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.chunks import CachedRecogniser
from duplex_bench.speech.clip_cache import CachedTextToSpeech
from duplex_bench.speech.interfaces import SpokenClip
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit


class CountingVoice:
    engine_id = "counting/1"
    voices = ("one",)

    def __init__(self):
        self.calls = 0

    def speak(self, text, voice):
        self.calls += 1
        rng = np.random.default_rng(len(text))
        return SpokenClip(rng.uniform(-0.5, 0.5, 2400).astype(np.float32), 24000, (0.0, 0.05))


class CountingEar:
    engine_id = "ear/1"

    def __init__(self):
        self.calls = 0

    def words(self, samples, sample_rate_hz):
        self.calls += 1
        return (
            TimedWord("word", 0.01, len(samples) / sample_rate_hz),
            TimedWord("lost", None, None, aligned=False),
        )


def test_a_second_clip_is_read_and_equal(tmp_path):
    voice = CountingVoice()
    cached = CachedTextToSpeech(voice, FolderStore(tmp_path))
    first = cached.speak("Hello.", "one")
    second = CachedTextToSpeech(voice, FolderStore(tmp_path)).speak("Hello.", "one")
    assert voice.calls == 1
    assert np.array_equal(first.samples, second.samples)
    assert first.word_starts_s == second.word_starts_s
    cached.speak("Good evening.", "one")
    assert voice.calls == 2


@pytest.mark.parametrize("suffix", [".flac", ".json"])
@pytest.mark.parametrize("damage", [b"", b"{}", b"nonsense", None])
def test_a_damaged_clip_is_spoken_again(tmp_path, suffix, damage):
    voice = CountingVoice()
    cached = CachedTextToSpeech(voice, FolderStore(tmp_path))
    first = cached.speak("Hello.", "one")
    (path,) = tmp_path.rglob(f"*{suffix}")
    if damage is None:
        path.unlink()
    else:
        path.write_bytes(damage)
    again = cached.speak("Hello.", "one")
    assert voice.calls == 2
    assert np.array_equal(first.samples, again.samples)
    cached.speak("Hello.", "one")
    assert voice.calls == 2


def test_equal_stretches_are_heard_once_wherever_they_lie(tmp_path):
    ear = CountingEar()
    cached = CachedRecogniser(ear, FolderStore(tmp_path))
    reply = np.random.default_rng(0).uniform(-0.5, 0.5, 4800).astype(np.float32)
    track = np.zeros(24000 * 3, dtype=np.float32)
    track[1000:5800] = reply
    track[40000:44800] = reply
    words = cached.words(track, 24000)
    assert ear.calls == 1
    assert [word.start_s for word in words if word.aligned] == pytest.approx(
        [1000 / 24000 + 0.01, 40000 / 24000 + 0.01]
    )
    assert [word.start_s for word in words if not word.aligned] == [None, None]
    assert CachedRecogniser(ear, FolderStore(tmp_path)).words(track, 24000) == words
    assert ear.calls == 1


def test_damaged_words_are_heard_again(tmp_path):
    ear = CountingEar()
    cached = CachedRecogniser(ear, FolderStore(tmp_path))
    track = np.full(2400, 0.25, dtype=np.float32)
    words = cached.words(track, 24000)
    (path,) = tmp_path.rglob("*.json")
    path.write_bytes(b'[{"text": "wo')
    assert cached.words(track, 24000) == words
    assert ear.calls == 2


def test_silence_is_not_heard_at_all(tmp_path):
    ear = CountingEar()
    assert CachedRecogniser(ear, FolderStore(tmp_path)).words(np.zeros(24000, dtype=np.float32), 24000) == ()
    assert ear.calls == 0
