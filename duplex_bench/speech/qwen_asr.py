"""Qwen3-ASR with Qwen3-ForcedAligner behind the recogniser interface: words of voiced audio only.

The package cuts audio at 180 s when times are wanted; utterances here are at most 28 s, joined and padded as for the
embedded recogniser, so that it never cuts. Its times come in steps of 80 ms, and on real speech many words have no
length: they serve turn-level timing, not differences of latency below about 0.1 s. A word without length, or beyond
its audio, is kept and flagged ``aligned=False``.
"""

from functools import cached_property

from duplex_bench.audio.resample import resample
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.foreign import ForeignEngine, ForeignEngineError
from duplex_bench.speech.interfaces import Samples, VoiceActivityDetector
from duplex_bench.speech.qwen_settings import ASR_PACKAGE_VERSION, QwenAsrSettings, model_revision, worker_settings
from duplex_bench.speech.recogniser import utterances
from duplex_bench.speech.silero import checked_mono

SAMPLE_RATE_HZ = 16000
# With time stamps the package cuts longer audio, and joins the texts without a space.
LONGEST_S = 180.0
WORKER = "duplex_bench.speech.workers.qwen_asr"
_VERSION = 1


class QwenRecogniser:
    """Words of one speaker's audio; no speech region means no words, without asking the model."""

    def __init__(self, vad: VoiceActivityDetector, settings: QwenAsrSettings) -> None:
        """Remember the settings; the worker starts when first needed."""
        self._vad = vad
        self.settings = settings
        worker = {
            "package_version": ASR_PACKAGE_VERSION,
            "model": settings.model,
            "aligner": settings.aligner,
            "most_tokens": settings.most_tokens,
            **worker_settings(settings.runtime),
        }
        self._engine = ForeignEngine(settings.runtime.interpreter, WORKER, worker, settings.runtime.timeouts)

    @cached_property
    def engine_id(self) -> str:
        """Package version, digests of both models' files and of everything set, and the voice detector."""
        models = (
            f"model@{model_revision(self.settings.model)[:12]} aligner@{model_revision(self.settings.aligner)[:12]}"
        )
        return (
            f"qwen3-asr/{_VERSION} qwen-asr=={ASR_PACKAGE_VERSION} {models} settings@{self.settings.digest[:12]} "
            f"| {self._vad.engine_id}"
        )

    def close(self) -> None:
        """End the worker; the next call starts another."""
        self._engine.close()

    def words(self, samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        """Words in order; times in seconds from the first sample; ``aligned`` False where they are not to be trusted.

        Raises:
            ForeignEngineError: the worker could not be started, or failed.
        """
        checked_mono(samples)
        at_16k = resample(samples, sample_rate_hz, SAMPLE_RATE_HZ)
        spans = utterances(self._vad.speech_regions(at_16k, SAMPLE_RATE_HZ), len(at_16k))
        found: list[TimedWord] = []
        for first in range(0, len(spans), self.settings.batch_size):
            batch = spans[first : first + self.settings.batch_size]
            pieces = [at_16k[span.start : span.stop] for span in batch]
            for span, heard in zip(batch, self._heard(pieces), strict=True):
                offset_s, duration_s = span.start / SAMPLE_RATE_HZ, (span.stop - span.start) / SAMPLE_RATE_HZ
                found += timed_words(heard, offset_s, duration_s)
        return tuple(found)

    def _heard(self, pieces: list[Samples]) -> list[list[tuple[str, float, float]]]:
        longest_s = max(len(piece) for piece in pieces) / SAMPLE_RATE_HZ
        if longest_s > LONGEST_S:
            raise ValueError(f"an utterance of {longest_s:.0f} s: with times at most {LONGEST_S:g} s are heard at once")
        reply, _ = self._engine.request({"kind": "hear", "language": self.settings.language}, pieces)
        heard = reply["heard"]
        if len(heard) != len(pieces):
            raise ForeignEngineError(f"qwen_asr answered {len(pieces)} utterances with {len(heard)} results")
        return [[(str(text), float(start), float(end)) for text, start, end in result["words"]] for result in heard]


def timed_words(heard: list[tuple[str, float, float]], offset_s: float, duration_s: float) -> list[TimedWord]:
    """Words of one utterance on the clock of the whole.

    Args:
        heard: (text, start, end) in seconds from the utterance's start, as the aligner gave them.
        offset_s: where the utterance starts.
        duration_s: how long it is: a time beyond it is moved to its end.

    Returns:
        Words with a letter or digit, in order. ``aligned`` is False where a word has no length, ends before it starts
        (its end is then moved to its start), or had a time beyond the audio.
    """
    words: list[TimedWord] = []
    for text, start_s, end_s in heard:
        if not any(sign.isalnum() for sign in text):
            continue
        start, end = min(max(start_s, 0.0), duration_s), min(max(end_s, 0.0), duration_s)
        aligned = start < end and (start, end) == (start_s, end_s)
        words.append(TimedWord(text, offset_s + start, offset_s + max(start, end), aligned=aligned))
    return words
