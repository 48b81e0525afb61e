"""The embedded cast behind the text-to-speech interface: 24 kHz, trimmed, one level, the same bytes each time."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.mixing import normalise_rms
from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.speech.hibari_engine import HibariEngine
from duplex_bench.speech.interfaces import SpokenClip
from duplex_bench.speech.joe_engine import JoeEngine
from duplex_bench.speech.model_catalogue import model_id
from duplex_bench.speech.voices import Cast, embedded_cast
from duplex_bench.storage.digests import generator_from

SAMPLE_RATE_HZ = 24000
# Edges more than this below the peak are cut (ours): hibari's clips carry 0.3 to 0.6 s of near silence.
TRIM_BELOW_PEAK_DB = 40.0
EDGE_S = 0.02
_RENDERER_VERSION = 1


class CastTextToSpeech:
    """Speaks every voice of a cast; engines are loaded when first needed and run on one thread."""

    def __init__(self, cast: Cast | None = None) -> None:
        self.cast = cast or embedded_cast()

    @property
    def engine_id(self) -> str:
        """Renderer version, both models with their hashes, and the digest of the recipes."""
        return f"cast/{_RENDERER_VERSION} {model_id('hibari')} {model_id('joe')} recipes@{self.cast.digest[:8]}"

    @property
    def voices(self) -> tuple[str, ...]:
        """Names of the voices, narrator first."""
        return tuple(self.cast.voices)

    @cached_property
    def _hibari(self) -> HibariEngine:
        return HibariEngine()

    @cached_property
    def _joe(self) -> JoeEngine:
        return JoeEngine()

    def speak(self, text: str, voice: str) -> SpokenClip:
        """Speech of ``text``, noise seeded by text and voice; raises ValueError if there is nothing to say."""
        if voice not in self.cast.voices:
            raise ValueError(f"no voice {voice!r}: choose one of {', '.join(self.voices)}")
        recipe = self.cast.voices[voice]
        chunks = self._hibari.phonemize(text)
        if not chunks:
            raise ValueError(f"nothing to say in {text!r}: give at least one word")
        rng = generator_from("cast", text, voice)
        raw = self._joe.say(chunks, recipe, rng) if recipe.engine == "joe" else self._hibari.say(text, recipe, rng)
        samples = resample(raw.samples, raw.sample_rate_hz, SAMPLE_RATE_HZ)
        start, stop = _sounding(samples)
        clip = normalise_rms(faded(samples[start:stop], SAMPLE_RATE_HZ), self.cast.level_dbfs)
        offset_s = start / SAMPLE_RATE_HZ
        return SpokenClip(clip, SAMPLE_RATE_HZ, tuple(max(0.0, onset - offset_s) for onset in raw.word_starts_s))


def _sounding(samples: npt.NDArray[np.float32]) -> tuple[int, int]:
    magnitude = np.abs(samples)
    loud = np.flatnonzero(magnitude >= magnitude.max() * 10 ** (-TRIM_BELOW_PEAK_DB / 20))
    edge = to_samples(EDGE_S, SAMPLE_RATE_HZ)
    return max(0, int(loud[0]) - edge), min(len(samples), int(loud[-1]) + 1 + edge)


def faded(samples: npt.NDArray[np.float32], sample_rate_hz: int) -> npt.NDArray[np.float32]:
    """Short ramps at the edges, so that a clip placed in silence does not click."""
    n = min(to_samples(EDGE_S / 2, sample_rate_hz), len(samples) // 2)
    ramp = np.linspace(0.0, 1.0, n, endpoint=False, dtype=np.float32)
    faded = samples.copy()
    faded[:n] *= ramp
    faded[len(faded) - n :] *= ramp[::-1]
    return faded
