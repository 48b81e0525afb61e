"""Words with times: voice activity says where, Whisper says what, forced alignment says when."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.resample import resample
from duplex_bench.audio.time import to_samples
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.aligner import ForcedAligner, peak_normalised
from duplex_bench.speech.interfaces import Samples, VoiceActivityDetector
from duplex_bench.speech.silero import checked_mono
from duplex_bench.speech.whisper_engine import SAMPLE_RATE_HZ, HeardWord, WhisperEngine

# Kept on either side of a region (ours): the detector's onsets are late, and a first consonant matters.
REGION_PAD_S = 0.2
# Silence put between regions when several are heard in one call (ours).
PACK_GAP_S = 0.5
# Whisper hears 30 s at once.
PACK_MAX_S = 28.0


class _Region(NamedTuple):
    """Speech [start, stop) with its pads, in samples at 16 kHz."""

    start: int
    stop: int


class EmbeddedRecogniser:
    """Words of one speaker's audio; no speech region means no words, without asking Whisper."""

    def __init__(self, vad: VoiceActivityDetector, asr: WhisperEngine, aligner: ForcedAligner) -> None:
        self._vad = vad
        self._asr = asr
        self._aligner = aligner

    @property
    def engine_id(self) -> str:
        """All three engines, with versions and hashes."""
        return f"words/1 {self._asr.engine_id} | {self._aligner.engine_id} | {self._vad.engine_id}"

    def words(self, samples: Samples, sample_rate_hz: int) -> tuple[TimedWord, ...]:
        """Words in order; times in seconds from the first sample; ``aligned`` False where they are Whisper's own."""
        checked_mono(samples)
        at_16k = resample(samples, sample_rate_hz, SAMPLE_RATE_HZ)
        regions = padded_regions(self._vad.speech_regions(at_16k, SAMPLE_RATE_HZ), len(at_16k))
        found: list[TimedWord] = []
        for pack in packs(regions):
            found += self._heard(at_16k, pack)
        return tuple(found)

    def _heard(self, samples: Samples, pack: list[_Region]) -> list[TimedWord]:
        gap = np.zeros(to_samples(PACK_GAP_S, SAMPLE_RATE_HZ), dtype=np.float32)
        pieces: list[Samples] = []
        begins: list[int] = []
        n_before = 0
        for region in pack:
            begins.append(n_before)
            pieces += [samples[region.start : region.stop], gap]
            n_before += region.stop - region.start + len(gap)
        heard = self._asr.hear(np.concatenate(pieces))
        words: list[TimedWord] = []
        for number, (region, begin) in enumerate(zip(pack, begins, strict=True)):
            last = number == len(pack) - 1
            until = np.inf if last else (begins[number + 1] - len(gap) / 2) / SAMPLE_RATE_HZ
            since = -np.inf if number == 0 else (begin - len(gap) / 2) / SAMPLE_RATE_HZ
            own = [word for word in heard if since <= (word.start_s + word.end_s) / 2 < until]
            words += self._timed(samples, region, begin, own)
        return words

    def _timed(self, samples: Samples, region: _Region, begin: int, heard: list[HeardWord]) -> list[TimedWord]:
        if not heard:
            return []
        audio = peak_normalised(samples[region.start : region.stop])
        aligned = self._aligner.align(audio, [word.text for word in heard])
        start_s = region.start / SAMPLE_RATE_HZ
        if aligned is None:
            shift_s = start_s - begin / SAMPLE_RATE_HZ
            stop_s = region.stop / SAMPLE_RATE_HZ
            return [
                TimedWord(
                    word.text,
                    min(max(word.start_s + shift_s, start_s), stop_s),
                    min(max(word.end_s + shift_s, start_s), stop_s),
                    aligned=False,
                )
                for word in heard
            ]
        return [
            TimedWord(word.text, start_s + at.start_s, start_s + at.end_s)
            for word, at in zip(heard, aligned, strict=True)
        ]


def padded_regions(regions: npt.NDArray[np.int64], n_samples: int) -> list[_Region]:
    """Regions (k, 2) at 16 kHz with pads that never reach past the middle of the silence between two."""
    pad = to_samples(REGION_PAD_S, SAMPLE_RATE_HZ)
    padded: list[_Region] = []
    for number, (start, stop) in enumerate(regions.tolist()):
        floor = (regions[number - 1, 1] + start) // 2 if number else 0
        ceiling = (stop + regions[number + 1, 0]) // 2 if number + 1 < len(regions) else n_samples
        padded.append(_Region(int(max(floor, start - pad)), int(min(ceiling, stop + pad))))
    return padded


def packs(regions: list[_Region]) -> list[list[_Region]]:
    """Regions in groups that Whisper hears in one call; a longer region is first cut into equal parts."""
    most = to_samples(PACK_MAX_S, SAMPLE_RATE_HZ)
    gap = to_samples(PACK_GAP_S, SAMPLE_RATE_HZ)
    groups: list[list[_Region]] = []
    filled = 0
    for region in (part for whole in regions for part in _parts(whole, most)):
        length = region.stop - region.start + gap
        if groups and filled + length <= most + gap:
            groups[-1].append(region)
            filled += length
        else:
            groups.append([region])
            filled = length
    return groups


def _parts(region: _Region, most: int) -> list[_Region]:
    n_parts = -(-(region.stop - region.start) // most)
    edges = np.linspace(region.start, region.stop, n_parts + 1).astype(int).tolist()
    return [_Region(start, stop) for start, stop in zip(edges, edges[1:], strict=False)]
