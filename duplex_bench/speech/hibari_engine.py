"""hibari: a small source-filter network whose pitch and envelope can be changed before synthesis.

Source: hibari-tts 0.2.1 (Apache-2.0). Its graph also knows each phoneme's duration, in frames of 25 ms; that
tensor is added as an output, which gives word starts by construction.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.resample import resample
from duplex_bench.speech.model_cache import edited_graph
from duplex_bench.speech.model_catalogue import model_cards, verified_model
from duplex_bench.speech.phonemes import STRESS_MARKS, letters_to_sound
from duplex_bench.speech.voices import VoiceRecipe

SAMPLE_RATE_HZ = 24000
DURATION_OUTPUT = "/Clip_output_0"
DURATION_FRAME_S = 0.025
# The synthesis frames are centred so that a phoneme sounds this much before its cumulated duration (measured
# against forced alignment: reference/embedded-models.md section 3).
DURATION_LEAD_FRAMES = 3
_BREAKS = frozenset(' ;:,.!?—…"“”()')


class RawSpeech(NamedTuple):
    """Untrimmed speech: float32 (n,) at its rate, and word onsets in seconds from the first sample."""

    samples: npt.NDArray[np.float32]
    sample_rate_hz: int
    word_starts_s: tuple[float, ...]


class HibariEngine:
    """Speaks with hibari's bundled voice and the voices derived from it, on one thread."""

    def __init__(self) -> None:
        from hibari.tts import Hibari

        source = verified_model("hibari")["hibari.onnx"]
        graph = edited_graph(source, model_cards()["hibari"].files[0].sha256, "hibari-durations-1", _add_durations)
        self._hibari: Any = Hibari(model=str(graph), threads=1, g2p=letters_to_sound())

    def phonemize(self, text: str) -> list[str]:
        """Phoneme strings of ``text``, one for each stretch that is spoken at once; empty if nothing can be said."""
        chunks: list[str] = self._hibari.phonemize(text)
        return [chunk for chunk in chunks if any(letter.isalpha() for letter in chunk)]

    def say(self, text: str, recipe: VoiceRecipe, rng: np.random.Generator) -> RawSpeech:
        """Speech of ``text`` by ``recipe``; ``rng`` makes the noise component."""
        parts: list[npt.NDArray[np.float32]] = []
        starts: list[float] = []
        n_before = 0
        for phonemes in self.phonemize(text):
            samples, durations = self._chunk(phonemes, recipe, rng)
            chunk_starts = word_starts_s(phonemes_in_vocabulary(phonemes, self._hibari.vocab), durations)
            starts += [n_before / SAMPLE_RATE_HZ + start for start in chunk_starts]
            parts.append(samples)
            n_before += len(samples)
        joined = np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)
        if recipe.tape_ratio != 1.0:
            joined = resample(joined, round(SAMPLE_RATE_HZ * recipe.tape_ratio), SAMPLE_RATE_HZ)
            starts = [start / recipe.tape_ratio for start in starts]
        return RawSpeech(joined, SAMPLE_RATE_HZ, tuple(max(0.0, start) for start in starts))

    def _chunk(
        self, phonemes: str, recipe: VoiceRecipe, rng: np.random.Generator
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        from hibari import dsp

        ids = np.asarray([self._hibari.ids(phonemes)], dtype=np.int64)
        speed = np.asarray([recipe.speed / recipe.tape_ratio], dtype=np.float32)
        *frames, durations = self._hibari.sess.run(None, {"ids": ids, "speed": speed})
        harmonic, theta, noise, rest, phase, pitch_hz = (frame[0] for frame in frames)
        if recipe.formant_ratio != 1.0:
            harmonic, theta, noise, rest = (
                stretch_frequencies(frame, recipe.formant_ratio) for frame in (harmonic, theta, noise, rest)
            )
        pitch_hz = pitch_hz * np.float32(recipe.pitch_ratio)
        samples: npt.NDArray[np.float32] = dsp.synth(harmonic, theta, noise, rest, phase, pitch_hz, rng)
        return samples, durations


def stretch_frequencies(frames: npt.NDArray[np.float32], ratio: float) -> npt.NDArray[np.float32]:
    """Frames (bins, n) whose bin i holds what bin i / ``ratio`` held, linearly interpolated; above 1 is higher."""
    n_bins = len(frames)
    position = np.minimum(np.arange(n_bins) / ratio, n_bins - 1)
    below = np.floor(position).astype(np.int64)
    above = np.minimum(below + 1, n_bins - 1)
    share = (position - below).astype(np.float32)[:, None]
    stretched: npt.NDArray[np.float32] = frames[below] * (1 - share) + frames[above] * share
    return stretched


def phonemes_in_vocabulary(phonemes: str, vocabulary: dict[str, int]) -> str:
    """The phonemes that the network receives: those it has an id for."""
    return "".join(letter for letter in phonemes if letter in vocabulary)


def word_starts_s(phonemes: str, durations_frames: npt.NDArray[np.floating]) -> list[float]:
    """Onset of each spoken word in seconds.

    Args:
        phonemes: the m letters sent to the network.
        durations_frames: their durations with one pad on either side (m + 2,), in frames of 25 ms.
    """
    onsets = np.cumsum(durations_frames)[: len(phonemes)] - DURATION_LEAD_FRAMES
    starts: list[float] = []
    in_word = False
    for letter, onset in zip(phonemes, onsets, strict=True):
        if letter in _BREAKS:
            in_word = False
        elif not in_word and letter not in STRESS_MARKS:
            in_word = True
            starts.append(float(onset) * DURATION_FRAME_S)
    return starts


def _add_durations(model: Any) -> None:
    import onnx

    shape = ["n_phonemes"]
    model.graph.output.append(onnx.helper.make_tensor_value_info(DURATION_OUTPUT, onnx.TensorProto.FLOAT, shape))
