"""Qwen3-TTS behind the text-to-speech interface, and its voice cloning: a worker speaks, this side accepts or refuses.

The models sometimes finish a sentence and never emit the end token (3 to 5 of 1,000 requests in public reports), skip
words, or stay silent. Every clip is therefore capped, trimmed, measured and heard by a recogniser; what fails is
spoken again with another seed, and after the last attempt refused with the reason. A clip is never passed on with a
fault that these checks see.
"""

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from duplex_bench.audio.mixing import normalise_rms, trim_silence
from duplex_bench.speech.cast_tts import EDGE_S, TRIM_BELOW_PEAK_DB, faded
from duplex_bench.speech.foreign import ForeignEngine, ForeignEngineError
from duplex_bench.speech.interfaces import Recogniser, Samples, SpeechResult, SpokenClip
from duplex_bench.speech.qwen_settings import (
    TTS_PACKAGE_VERSION,
    QwenTtsSettings,
    SpeakingRules,
    model_revision,
    worker_settings,
)
from duplex_bench.speech.voices import embedded_cast
from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.storage.digests import digest_pcm16, seed_from
from duplex_bench.text.error_rate import word_errors

CODES_PER_SECOND = 12.5
# A digit is a word when it is spoken.
LETTERS_OF_A_DIGIT = 5
WORKER = "duplex_bench.speech.workers.qwen_tts"
_VERSION = 1

Ask = Callable[[list[int], dict[str, Any]], tuple[int, list[Samples]]]


class SpeechRefusedError(ValueError):
    """No attempt at a text gave a clip that passes the checks; the message gives each attempt's reason."""


def expected_s(text: str, rules: SpeakingRules) -> float:
    """How long ``text`` should take to say.

    Raises:
        ValueError: it has no letter and no digit.
    """
    letters = sum(LETTERS_OF_A_DIGIT if sign.isdigit() else 1 for sign in text if sign.isalnum())
    if letters == 0:
        raise ValueError(f"nothing to say in {text!r}: give at least one word")
    return letters / rules.letters_per_second


def most_codes(text: str, rules: SpeakingRules) -> int:
    """After how many codes of 80 ms generation of ``text`` is stopped."""
    return max(rules.cap_at_least_codes, math.ceil(CODES_PER_SECOND * expected_s(text, rules) * rules.cap_ratio))


def fault_of(
    raw: Samples, sample_rate_hz: int, text: str, rules: SpeakingRules, recogniser: Recogniser | None
) -> str | None:
    """Why a clip as the model gave it cannot be used, or None.

    Args:
        raw: (n,), untrimmed.
        sample_rate_hz: its rate.
        text: what it should say.
        rules: the limits.
        recogniser: hears it; None leaves out the check of words.
    """
    if not np.isfinite(raw).all():
        return "samples that are no numbers"
    cap = most_codes(text, rules)
    # The package returns one code less than the limit when the limit stops it.
    if len(raw) / sample_rate_hz * CODES_PER_SECOND >= cap - 1.5:
        return f"no end within {cap} codes ({cap / CODES_PER_SECOND:.1f} s)"
    if not np.any(raw):
        return "silence"
    duration_s = len(_trimmed(raw, sample_rate_hz)) / sample_rate_hz
    wanted_s = expected_s(text, rules)
    if duration_s < rules.least_ratio * wanted_s:
        return f"{duration_s:.2f} s of speech where about {wanted_s:.2f} s were expected"
    if recogniser is not None:
        heard = " ".join(word.text for word in recogniser.words(raw, sample_rate_hz))
        errors = word_errors(text, heard)
        if errors.rate > rules.most_word_errors:
            return f"{errors.rate:.0%} word errors: heard as {heard!r}"
    return None


def finished(raw: Samples, sample_rate_hz: int) -> SpokenClip:
    """A sound clip as the interface promises it: edges trimmed and faded, at the level of the embedded cast."""
    clip = faded(_trimmed(raw, sample_rate_hz), sample_rate_hz)
    return SpokenClip(normalise_rms(clip, embedded_cast().level_dbfs), sample_rate_hz)


def _trimmed(raw: Samples, sample_rate_hz: int) -> Samples:
    return trim_silence(raw, sample_rate_hz, TRIM_BELOW_PEAK_DB, EDGE_S)


class _QwenSpeaker:
    """What custom voices and cloning share: the worker, the id, batches with retries."""

    def __init__(self, settings: QwenTtsSettings, recogniser: Callable[[], Recogniser] | None = None) -> None:
        """Remember the settings; the worker starts, and the recogniser is made, when first needed.

        Args:
            settings: which environment, model and rules.
            recogniser: makes the recogniser that ``rules.checked_by`` names; None leaves out the check of words.
        """
        self.settings = settings
        self._make_recogniser = recogniser
        worker = {"package_version": TTS_PACKAGE_VERSION, "model": settings.model, **worker_settings(settings.runtime)}
        self._engine = ForeignEngine(settings.runtime.interpreter, WORKER, worker, settings.runtime.timeouts)

    @cached_property
    def engine_id(self) -> str:
        """Package version, digest of the model's files, and digest of everything set."""
        revision, settings = model_revision(self.settings.model)[:12], self.settings.digest[:12]
        return f"qwen3-tts/{_VERSION} qwen-tts=={TTS_PACKAGE_VERSION} model@{revision} settings@{settings}"

    @cached_property
    def _recogniser(self) -> Recogniser | None:
        return None if self._make_recogniser is None else self._make_recogniser()

    @property
    def batch_size(self) -> int:
        """How many texts are spoken in one call."""
        return self.settings.rules.batch_size

    def close(self) -> None:
        """End the worker; the next call starts another."""
        self._engine.close()

    def _with_retries(self, texts: Sequence[str], names: Sequence[str], ask: Ask) -> list[SpeechResult]:
        """Speak ``texts``; ``ask`` gets positions and a request and returns rate and clips of those positions."""
        rules = self.settings.rules
        results: dict[int, SpeechResult] = {}
        faults: dict[int, list[str]] = {number: [] for number in range(len(texts))}
        for attempt in range(rules.attempts):
            # Like lengths together: a batch runs until its longest text is said.
            waiting = sorted((n for n in faults if n not in results), key=lambda n: most_codes(texts[n], rules))
            for first in range(0, len(waiting), rules.batch_size):
                batch = waiting[first : first + rules.batch_size]
                request = {
                    "texts": [texts[number] for number in batch],
                    "language": self.settings.language,
                    "seed": seed_from("qwen3-tts", rules.seed, attempt, *[f"{names[n]}: {texts[n]}" for n in batch]),
                    "most_codes": max(most_codes(texts[number], rules) for number in batch),
                    "sampling": rules.sampling,
                }
                rate, clips = ask(batch, request)
                if len(clips) != len(batch):
                    raise ForeignEngineError(f"qwen_tts answered {len(batch)} texts with {len(clips)} clips")
                for number, raw in zip(batch, clips, strict=True):
                    fault = fault_of(raw, rate, texts[number], rules, self._recogniser)
                    if fault is None:
                        results[number] = SpeechResult(finished(raw, rate))
                    else:
                        faults[number].append(fault)
        for number, told in faults.items():
            if number not in results:
                reasons = "; ".join(f"attempt {count}: {fault}" for count, fault in enumerate(told, start=1))
                results[number] = SpeechResult(None, f"{texts[number]!r} by {names[number]}: {reasons}")
        return [results[number] for number in range(len(texts))]


class QwenTextToSpeech(_QwenSpeaker):
    """Speaks in the custom voices of a Qwen3-TTS CustomVoice checkpoint.

    A text spoken alone gives the same bytes each time on one machine. In a batch it shares the random numbers of its
    batch: give it through a cache (``CachedTextToSpeech``), which keeps what was said first.
    """

    def __init__(self, settings: QwenTtsSettings, recogniser: Callable[[], Recogniser] | None = None) -> None:
        """As for any Qwen speaker."""
        super().__init__(settings, recogniser)
        self._refused: dict[tuple[str, str], str] = {}

    @property
    def voices(self) -> tuple[str, ...]:
        """The names that the settings map to the model's speakers."""
        return tuple(self.settings.voices)

    def speak(self, text: str, voice: str) -> SpokenClip:
        """Speech of ``text``.

        Raises:
            ValueError: an unknown voice, or nothing to say.
            SpeechRefusedError: no attempt passed the checks.
            ForeignEngineError: the worker could not be started, or failed.
        """
        # Seeds are fixed, so that another try would take as long and end the same.
        told = self._refused.get((text, voice))
        result = self.speak_batch([(text, voice)])[0] if told is None else SpeechResult(None, told)
        if result.clip is None:
            raise SpeechRefusedError(result.error)
        return result.clip

    def speak_batch(self, lines: Sequence[tuple[str, str]]) -> list[SpeechResult]:
        """Speech of (text, voice) pairs, ``batch_size`` at a time; what no attempt gave soundly is an error in place.

        Raises:
            ValueError: an unknown voice, or nothing to say in a text; nothing is spoken.
            ForeignEngineError: the worker could not be started, or failed.
        """
        voices = self.settings.voices
        for text, voice in lines:
            if voice not in voices:
                raise ValueError(f"no voice {voice!r}: choose one of {', '.join(voices)}")
            expected_s(text, self.settings.rules)

        def ask(batch: list[int], request: dict[str, Any]) -> tuple[int, list[Samples]]:
            speakers = [voices[lines[number][1]] for number in batch]
            reply, clips = self._engine.request({"kind": "speak", "speakers": speakers, **request})
            return int(reply["sample_rate_hz"]), clips

        results = self._with_retries([text for text, _ in lines], [voice for _, voice in lines], ask)
        self._refused |= {
            (text, voice): result.error
            for (text, voice), result in zip(lines, results, strict=True)
            if result.clip is None
        }
        return results


class QwenVoiceCloning(_QwenSpeaker):
    """Speaks in the voice of a recording, by a Qwen3-TTS Base checkpoint. ``voices`` of the settings is not used.

    With ``reference_text`` the model continues the recording, and the package cuts the recording off the result in
    proportion of lengths: a remnant of it, or a lost onset, is possible. Without, the speaker vector alone is used.
    """

    def speak_as(
        self, texts: Sequence[str], reference: Samples, reference_rate_hz: int, reference_text: str | None = None
    ) -> list[SpeechResult]:
        """Speech of ``texts`` in the voice of ``reference``.

        Args:
            texts: what is said.
            reference: float (n,), 20 to 40 s of one speaker (P2 appendix).
            reference_rate_hz: its rate.
            reference_text: its words.

        Raises:
            ValueError: an empty or non-finite reference, or nothing to say in a text.
            ForeignEngineError: the worker could not be started, or failed.
        """
        if reference.ndim != 1 or not len(reference) or not np.isfinite(reference).all() or not np.any(reference):
            raise ValueError("the reference is empty, silent or holds NaN: give 20 to 40 s of one speaker")
        for text in texts:
            expected_s(text, self.settings.rules)
        mono = np.asarray(reference, dtype=np.float32)
        name = digest_pcm16(to_pcm16(mono), reference_rate_hz)[:16]

        def ask(_: list[int], request: dict[str, Any]) -> tuple[int, list[Samples]]:
            header = {"reference_rate_hz": reference_rate_hz, "reference_text": reference_text, **request}
            reply, clips = self._engine.request({"kind": "clone", **header}, [mono])
            return int(reply["sample_rate_hz"]), clips

        return self._with_retries(texts, [f"clone of {name}"] * len(texts), ask)
