"""Clips spoken once: FLAC and a JSON note in the object store, keyed by engine, voice and text."""

import io
import json
from collections.abc import Sequence

import soundfile

from duplex_bench.speech.interfaces import SpeaksInBatches, SpokenClip, TextToSpeech
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.storage.digests import canonical_json, digest_bytes, digest_value
from duplex_bench.storage.object_store import ObjectStore

FOLDER = "speech/clips"


class CachedTextToSpeech:
    """Another engine's clips, read from the store where they are whole; its samples are rounded to PCM16.

    A first and a second call give the same samples, since both return what the FLAC holds. An entry that cannot
    be read, or whose audio has another digest than its note, is spoken again and replaced.
    """

    def __init__(self, tts: TextToSpeech, store: ObjectStore) -> None:
        self._tts = tts
        self._store = store

    @property
    def engine_id(self) -> str:
        """The engine's own."""
        return self._tts.engine_id

    @property
    def voices(self) -> tuple[str, ...]:
        """The engine's own."""
        return self._tts.voices

    def speak(self, text: str, voice: str) -> SpokenClip:
        """Speech of ``text``; raises what the engine raises."""
        stored = self._stored(self._path(text, voice))
        return stored if stored is not None else self._keep(text, voice, self._tts.speak(text, voice))

    def speak_ahead(self, lines: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Speak what the store lacks of (text, voice) pairs, if the engine speaks in batches; else do nothing.

        The clips of a batch are stored as it ends, so that an interrupted run goes on where it was.

        Returns:
            The error of each pair that could not be said.
        """
        failed: dict[tuple[str, str], str] = {}
        if not isinstance(self._tts, SpeaksInBatches):
            return failed
        missing = [line for line in dict.fromkeys(lines) if self._stored(self._path(*line)) is None]
        # Batches of like length are shorter: one runs until its longest text is said.
        missing.sort(key=lambda line: (len(line[0]), line))
        for first in range(0, len(missing), self._tts.batch_size):
            batch = missing[first : first + self._tts.batch_size]
            for line, result in zip(batch, self._tts.speak_batch(batch), strict=True):
                if result.clip is None:
                    failed[line] = result.error
                else:
                    self._keep(*line, result.clip)
        return failed

    def _path(self, text: str, voice: str) -> str:
        key = digest_value("clip/1", self.engine_id, voice, text)
        return f"{FOLDER}/{key[:2]}/{key}"

    def _keep(self, text: str, voice: str, clip: SpokenClip) -> SpokenClip:
        path = self._path(text, voice)
        pcm = to_pcm16(clip.samples)
        buffer = io.BytesIO()
        soundfile.write(buffer, pcm, clip.sample_rate_hz, format="FLAC", subtype="PCM_16")
        audio = buffer.getvalue()
        note = {"audio": digest_bytes(audio), "voice": voice, "text": text, "word_starts_s": list(clip.word_starts_s)}
        # The note comes last: without it the audio counts as absent.
        self._store.put(f"{path}.flac", audio)
        self._store.put(f"{path}.json", canonical_json(note).encode())
        return SpokenClip(from_pcm16(pcm), clip.sample_rate_hz, clip.word_starts_s)

    def _stored(self, path: str) -> SpokenClip | None:
        try:
            note = json.loads(self._store.get(f"{path}.json"))
            audio = self._store.get(f"{path}.flac")
            if digest_bytes(audio) != note["audio"]:
                return None
            starts = tuple(float(start) for start in note["word_starts_s"])
        except (KeyError, TypeError, ValueError):
            return None
        samples, sample_rate_hz = soundfile.read(io.BytesIO(audio), dtype="int16")
        return SpokenClip(from_pcm16(samples), int(sample_rate_hz), starts)
