"""Words with times: voice activity says where, Whisper says what, forced alignment says when."""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.aligner import ForcedAligner, peak_normalised
from duplex_bench.speech.interfaces import Samples, VoiceActivityDetector
from duplex_bench.speech.silero import checked_mono
from duplex_bench.speech.whisper_engine import LONGEST_S, SAMPLE_RATE_HZ, WhisperEngine

# Kept on either side of an utterance (ours): the detector's onsets are late, and a first consonant matters.
PAD_S = 0.2
# Regions nearer than this are heard together (ours): context helps, and a call costs what 15 s of audio cost.
JOIN_S = 0.5


class Utterance(NamedTuple):
    """Audio [start, stop) that is heard in one call, in samples at 16 kHz."""

    start: int
    stop: int


class EmbeddedRecogniser:
    """Words of one speaker's audio; no speech region means no words, without asking Whisper.

    Joining regions with their own silence, rather than squeezing many into one call, keeps Whisper from dropping
    a sentence that it has just heard (measured: of five equal sentences in one call it often wrote four).
    """

    def __init__(self, vad: VoiceActivityDetector, asr: WhisperEngine, aligner: ForcedAligner) -> None:
        self._vad = vad
        self._asr = asr
        self._aligner = aligner

    @property
    def engine_id(self) -> str:
        """All three engines, with versions and hashes."""
        return f"words/2 {self._asr.engine_id} | {self._aligner.engine_id} | {self._vad.engine_id}"

    def words(self, samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        """Words in order; times in seconds from the first sample; ``aligned`` False where they are Whisper's own."""
        checked_mono(samples)
        at_16k = resample(samples, sample_rate_hz, SAMPLE_RATE_HZ)
        found: list[TimedWord] = []
        for utterance in utterances(self._vad.speech_regions(at_16k, SAMPLE_RATE_HZ), len(at_16k)):
            found += self._heard(at_16k[utterance.start : utterance.stop], utterance.start / SAMPLE_RATE_HZ)
        return tuple(found)

    def _heard(self, samples: Samples, offset_s: float) -> list[TimedWord]:
        heard = self._asr.hear(samples)
        if not heard:
            return []
        aligned = self._aligner.align(peak_normalised(samples), [word.text for word in heard])
        if aligned is None:
            return [
                TimedWord(word.text, offset_s + word.start_s, offset_s + word.end_s, aligned=False) for word in heard
            ]
        return [
            TimedWord(word.text, offset_s + at.start_s, offset_s + at.end_s)
            for word, at in zip(heard, aligned, strict=True)
        ]


def utterances(regions: npt.NDArray[np.int64], n_samples: int) -> list[Utterance]:
    """Speech regions (k, 2) at 16 kHz joined into utterances with pads, each short enough for one call.

    Pads never reach past the middle of the silence between two utterances.
    """
    most, join = to_samples(LONGEST_S, SAMPLE_RATE_HZ), to_samples(JOIN_S, SAMPLE_RATE_HZ)
    pad = to_samples(PAD_S, SAMPLE_RATE_HZ)
    joined: list[Utterance] = []
    for start, stop in regions.tolist():
        if joined and start - joined[-1].stop <= join and stop - joined[-1].start <= most - 2 * pad:
            joined[-1] = Utterance(joined[-1].start, stop)
        else:
            joined += _parts(Utterance(start, stop), most - 2 * pad)
    padded: list[Utterance] = []
    for number, (start, stop) in enumerate(joined):
        floor = (joined[number - 1].stop + start) // 2 if number else 0
        ceiling = (stop + joined[number + 1].start) // 2 if number + 1 < len(joined) else n_samples
        padded.append(Utterance(max(floor, start - pad), min(ceiling, stop + pad)))
    return padded


def _parts(region: Utterance, most: int) -> list[Utterance]:
    n_parts = -(-(region.stop - region.start) // most)
    edges = np.linspace(region.start, region.stop, n_parts + 1).astype(int).tolist()
    return [Utterance(start, stop) for start, stop in pairwise(edges)]
