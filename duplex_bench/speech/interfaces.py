"""What each speech engine promises. Engines are chosen by name in the profile and made by ``speech.engines``."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.projection.settings import FloorProjection

Samples = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class SpokenClip:
    """Synthesised speech: float32 samples (n,) in [-1, 1] at ``sample_rate_hz``, edges trimmed, level normalised.

    ``word_starts_s`` are onsets by construction where the engine knows them, else empty.
    """

    samples: Samples
    sample_rate_hz: int
    word_starts_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SpeechResult:
    """A clip, or why there is none."""

    clip: SpokenClip | None
    error: str = ""


class TextToSpeech(Protocol):
    """Speaks a sentence in one of its voices; the same bytes for the same arguments on one machine."""

    @property
    def engine_id(self) -> str:
        """Name, version and model hash: part of every cache key."""
        ...

    @property
    def voices(self) -> tuple[str, ...]:
        """Names of the voices that ``speak`` accepts."""
        ...

    def speak(self, text: str, voice: str) -> SpokenClip:
        """Speech of ``text``; raises ValueError for an unknown voice or text with nothing to say."""
        ...


@runtime_checkable
class SpeaksInBatches(TextToSpeech, Protocol):
    """A text-to-speech engine that says many texts faster together than one by one."""

    @property
    def batch_size(self) -> int:
        """How many texts it says at once."""
        ...

    def speak_batch(self, lines: Sequence[tuple[str, str]]) -> list[SpeechResult]:
        """Speech of (text, voice) pairs, in order; what cannot be said soundly is an error in its place."""
        ...


class VoiceCloning(Protocol):
    """Speaks in the voice of a recording."""

    @property
    def engine_id(self) -> str:
        """Name, version and model hash."""
        ...

    def speak_as(
        self, texts: Sequence[str], reference: Samples, reference_rate_hz: int, reference_text: str | None = None
    ) -> list[SpeechResult]:
        """Speech of ``texts`` in the voice of ``reference`` (n,); what cannot be said soundly is an error in place."""
        ...


class VoiceActivityDetector(Protocol):
    """Finds speech; never calls silence, noise, tones or clicks speech for long."""

    @property
    def engine_id(self) -> str:
        """Name, version and model hash."""
        ...

    def speech_regions(self, samples: Samples, sample_rate_hz: int) -> npt.NDArray[np.int64]:
        """Speech as [start, stop) samples (k, 2) at the input rate, sorted, apart from each other."""
        ...


class Recogniser(Protocol):
    """Words with times of one speaker's audio; no words where there is no speech."""

    @property
    def engine_id(self) -> str:
        """Recogniser and aligner with versions and hashes."""
        ...

    def words(self, samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        """Words in order; times in seconds from the first sample; ``aligned`` False where they are coarse."""
        ...


class TurnEndDetector(Protocol):
    """Judges from sound whether a speaker has finished."""

    @property
    def engine_id(self) -> str:
        """Name, version and model hash."""
        ...

    def completion_probability(self, samples: Samples, sample_rate_hz: int) -> float:
        """Probability that the turn that ends with these samples (at most the last 8 s count) is complete."""
        ...


class ActivityProjection(Protocol):
    """Foresees from the sound of two speakers which of them will be speaking."""

    @property
    def engine_id(self) -> str:
        """Name, version, weights' hash and settings."""
        ...

    def project(self, samples: Samples, sample_rate_hz: int) -> FloorProjection:
        """Shares of the floor, frame by frame, of samples (n, 2), one speaker a channel."""
        ...
