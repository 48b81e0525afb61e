"""Tracks cut into stretches of sound, and words kept per stretch: how systems and reruns share recognition.

A frame-stepped system's track is digital silence between replies, and a human channel of a scene between
utterances. A stretch with the same samples is recognised once, wherever it lies.
"""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.time import to_samples
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.interfaces import Recogniser, Samples, VoiceActivityDetector
from duplex_bench.speech.silero import checked_mono
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.storage.digests import digest_pcm16, digest_value
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.storage.serial import from_json, to_json

FOLDER = "speech/words"


def sound_chunks(
    samples: Samples,
    sample_rate_hz: int,
    min_zero_s: float = 0.3,
    max_s: float = 28.0,
    vad: VoiceActivityDetector | None = None,
) -> npt.NDArray[np.int64]:
    """Stretches of sound between runs of exact digital silence, each from its first to its last nonzero sample.

    A stretch longer than ``max_s`` is cut, from its start on, in the middle of the last silence that ``vad``
    finds before ``max_s``, or at ``max_s`` where there is none or no ``vad``. What a stretch is cut into depends
    on nothing outside it.

    Args:
        samples: (n,), integer or float.
        sample_rate_hz: their rate.
        min_zero_s: shortest run of zeros that separates two stretches (ours).
        max_s: longest stretch; Whisper hears 30 s at once.
        vad: finds silences to cut at.

    Returns:
        int64 (k, 2) of [start, stop) samples, sorted, apart from or next to each other.
    """
    sounding = np.flatnonzero(samples)
    if len(sounding) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    gap = max(1, to_samples(min_zero_s, sample_rate_hz))
    breaks = np.flatnonzero(np.diff(sounding) > gap)
    starts = sounding[np.concatenate([[0], breaks + 1])]
    stops = sounding[np.concatenate([breaks, [len(sounding) - 1]])] + 1
    most = to_samples(max_s, sample_rate_hz)
    chunks: list[tuple[int, int]] = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        silences = np.zeros(0, dtype=np.int64)
        if stop - start > most and vad is not None:
            regions = vad.speech_regions(samples[start:stop], sample_rate_hz)
            silences = start + (regions[:-1, 1] + regions[1:, 0]) // 2
        while stop - start > most:
            usable = silences[(silences > start) & (silences <= start + most)]
            cut = int(usable[-1]) if len(usable) else start + most
            following = int(np.searchsorted(sounding, cut))
            chunks.append((start, int(sounding[following - 1]) + 1))
            start = int(sounding[following])
        chunks.append((start, stop))
    return np.asarray(chunks, dtype=np.int64)


class CachedRecogniser:
    """Another recogniser, asked once for each stretch of sound; results are JSON in the store.

    Audio is rounded to PCM16 first, so that what is recognised is what the key says. Entries that cannot be read
    are recognised again.
    """

    def __init__(self, recogniser: Recogniser, store: ObjectStore, vad: VoiceActivityDetector | None = None) -> None:
        self._recogniser = recogniser
        self._store = store
        self._vad = vad

    @property
    def engine_id(self) -> str:
        """The recogniser's own."""
        return self._recogniser.engine_id

    def words(self, samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        """Words in order; times in seconds from the first sample."""
        checked_mono(samples)
        pcm = to_pcm16(samples)
        rounded = from_pcm16(pcm)
        found: list[TimedWord] = []
        for start, stop in sound_chunks(rounded, sample_rate_hz, vad=self._vad).tolist():
            offset_s = start / sample_rate_hz
            found += [
                replace(word, start_s=_later(word.start_s, offset_s), end_s=_later(word.end_s, offset_s))
                for word in self._chunk(pcm[start:stop], rounded[start:stop], sample_rate_hz)
            ]
        return tuple(found)

    def _chunk(self, pcm: npt.NDArray[np.int16], samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        key = digest_value("words/1", self.engine_id, digest_pcm16(pcm, sample_rate_hz))
        path = f"{FOLDER}/{key[:2]}/{key}.json"
        try:
            return from_json(tuple[TimedWord, ...], self._store.get(path))
        except (KeyError, ValueError):
            words = self._recogniser.words(samples, sample_rate_hz)
            self._store.put(path, to_json(words).encode())
            return words


def _later(time_s: float | None, offset_s: float) -> float | None:
    return None if time_s is None else time_s + offset_s
