"""The speech engines as recordings of any length want them: edges by the gate, words stretch by stretch."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.gate import GateSettings, gate
from duplex_bench.audio.time import to_samples
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech import engines
from duplex_bench.speech.chunks import sound_chunks
from duplex_bench.speech.interfaces import Samples, VoiceActivityDetector
from duplex_bench.stages.pool import pool
from duplex_bench.stages.work import Task, resume
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.storage.digests import digest_pcm16, digest_value
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import from_json, to_json

# Fewer stretches than this are heard here: starting processes would take longer than hearing them.
_WORTH_PROCESSES: Final = 4


class RecordingError(ValueError):
    """A recording that cannot be scored; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class SpeechSettings:
    """Numbers of the speech stage.

    Attributes:
        recogniser: name of the recogniser.
        max_words_s: longer recordings go to no recogniser (ours): one channel is held in memory while it listens.
        reach_s: how far from the voice detector's edge the gate's is believed (ours).
        processes: worker processes; None: one per core.
    """

    recogniser: str = "whisper-base"
    max_words_s: float = 3600.0
    reach_s: float = 0.1
    processes: int | None = None


class EdgedVoiceActivity:
    """A voice detector whose edges are moved to the energy gate's where the two are near each other.

    Silero reports ends 60 ms late; the gate knows an edge to a hop, but not whether it is speech. Where the gate is
    open all the time, in noise, the detector's own edges stay.
    """

    def __init__(self, voice: VoiceActivityDetector, settings: GateSettings, reach_s: float) -> None:
        self.voice = voice
        self.settings = settings
        self.reach_s = reach_s

    @property
    def engine_id(self) -> str:
        """The detector's, and how its edges are moved."""
        return f"{self.voice.engine_id}, edges by the gate within {self.reach_s:g} s"

    def speech_regions(self, samples: Samples, sample_rate_hz: int) -> npt.NDArray[np.int64]:
        """Speech as [start, stop) samples (k, 2)."""
        regions = self.voice.speech_regions(samples, sample_rate_hz)
        return self.edged(regions, gate(samples, sample_rate_hz, self.settings), sample_rate_hz)

    def edged(
        self, regions: npt.NDArray[np.int64], gated: npt.NDArray[np.int64], sample_rate_hz: int
    ) -> npt.NDArray[np.int64]:
        """Regions (k, 2) with each edge moved to the nearest gate edge within reach, never into a neighbour."""
        reach = to_samples(self.reach_s, sample_rate_hz)
        moved = regions.copy()
        for row, (start, stop) in enumerate(regions.tolist()):
            inside = gated[(gated[:, 1] > start - reach) & (gated[:, 0] < stop + reach)]
            if not len(inside):
                continue
            floor = int(moved[row - 1, 1]) if row else 0
            ceiling = int(regions[row + 1, 0]) if row + 1 < len(regions) else int(gated[-1, 1])
            first, last = int(inside[0, 0]), int(inside[-1, 1])
            if abs(first - start) <= reach and floor <= first < stop:
                moved[row, 0] = first
            if abs(last - stop) <= reach and moved[row, 0] < last <= ceiling:
                moved[row, 1] = last
        return moved


class ChunkedRecogniser:
    """Recognition stretch by stretch, in processes where that pays: shown as it goes, and kept when interrupted."""

    def __init__(self, settings: SpeechSettings, store: FolderStore) -> None:
        self._settings = settings
        self._store = store
        self._recogniser = engines.recogniser(settings.recogniser, store)

    @property
    def engine_id(self) -> str:
        """The recogniser's."""
        return self._recogniser.engine_id

    def words(self, samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        """Words in order; times in seconds from the first sample.

        Raises:
            RecordingError: a stretch could not be recognised.
        """
        pcm = to_pcm16(samples)
        stretches = sound_chunks(from_pcm16(pcm), sample_rate_hz, vad=engines.voice_activity()).tolist()
        tasks = {
            (start, stop): Task(
                digest_value("recording-words/1", self.engine_id, digest_pcm16(pcm[start:stop], sample_rate_hz)),
                f"{start / sample_rate_hz:.2f} s",
                (pcm[start:stop], sample_rate_hz),
            )
            for start, stop in stretches
        }
        done = resume(
            ItemLedger(self._store, "score-audio/words"),
            "recognising words (stretches)",
            list(tasks.values()),
            hear,
            executor=pool(self._settings.processes) if len(tasks) >= _WORTH_PROCESSES else None,
            common=(str(self._store.root), self._settings.recogniser),
        )
        found: list[TimedWord] = []
        for (start, _), task in tasks.items():
            if task.key not in done.payloads:
                remedy = "run the same again, finished stretches are kept"
                why = done.failed[task.key]
                raise RecordingError(f"the stretch at {task.item_id} was not recognised ({why}); {remedy}")
            offset_s = start / sample_rate_hz
            found += [_moved(word, offset_s) for word in from_json(tuple[TimedWord, ...], done.payloads[task.key])]
        return tuple(found)


def hear(store: str, recogniser: str, argument: tuple[npt.NDArray[np.int16], int]) -> str:
    """Words of one stretch, PCM16 (n,) and its rate, as JSON; engines and their cache are those of the main job."""
    pcm, rate_hz = argument
    return to_json(engines.recogniser(recogniser, FolderStore(Path(store))).words(from_pcm16(pcm), rate_hz))


def _moved(word: TimedWord, offset_s: float) -> TimedWord:
    if word.start_s is None or word.end_s is None:
        return word
    return dataclasses.replace(word, start_s=word.start_s + offset_s, end_s=word.end_s + offset_s)
