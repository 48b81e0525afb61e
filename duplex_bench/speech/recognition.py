"""How well the recogniser and the detectors do on sound whose words and edges are known."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import nan
from typing import Final

import numpy as np
import polars as pl

from duplex_bench.audio.gate import GateSettings, speech_intervals
from duplex_bench.audio.resample import resample
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.interfaces import Recogniser, Samples, SpokenClip, TextToSpeech, VoiceActivityDetector
from duplex_bench.storage.digests import generator_from
from duplex_bench.text.error_rate import WordErrors, align, word_errors
from duplex_bench.text.normalise import normalised_words

RATE_HZ: Final = 24_000
# Replies of under a second, as people give them (ours).
SHORT_REPLIES: Final = ("Yes.", "No.", "Okay.", "Sure.", "Right.", "Thanks.", "Stop.", "Seven.")
SHORT_MARGIN_S: Final = 1.0
LENGTH_EDGES_S: Final = (0.0, 0.4, 0.6, 1.0)
GAP_S: Final = 1.0
# Silence this close to speech is not asked about: detectors may hold on (ours).
GUARD_S: Final = 0.3
LEVELS_DB: Final = (0, -12, -24, -36)
SNRS_DB: Final = (20, 10, 0)


@dataclass(frozen=True, slots=True)
class Heard:
    """A clip of known text with what the recogniser made of it."""

    text: str
    clip: SpokenClip
    words: tuple[TimedWord, ...]


def word_table(heard: Mapping[str, Sequence[Heard]]) -> pl.DataFrame:
    """Word errors and word-time errors by voice.

    Starts are compared for words that are heard as spoken, in clips whose engine knows its onsets; they are to within
    about 15 ms themselves, so that the figures bound the recogniser's error from above.

    Args:
        heard: clips by voice.

    Returns:
        Columns ``voice``, ``n_clips``, ``n_words``, ``substitutions``, ``deletions``, ``insertions``,
        ``word_error_rate``, ``n_timed``, ``start_bias_ms`` (median), ``start_median_ms`` and ``start_p90_ms``
        (absolute), ``not_aligned`` (words without a time by alignment).
    """
    rows: list[dict[str, object]] = []
    for voice, clips in heard.items():
        errors, late_ms, unaligned = WordErrors(), [], 0
        for one in clips:
            errors += word_errors(one.text, " ".join(word.text for word in one.words))
            late_ms += start_errors_ms(one)
            unaligned += sum(not word.aligned for word in one.words)
        size = np.abs(late_ms)
        rows.append(
            {"voice": voice, "n_clips": len(clips), "n_words": errors.n_reference,
             "substitutions": errors.substitutions, "deletions": errors.deletions, "insertions": errors.insertions,
             "word_error_rate": _known(errors.rate), "n_timed": len(late_ms),
             "start_bias_ms": _known(float(np.median(late_ms)) if late_ms else nan),
             "start_median_ms": _known(float(np.median(size)) if late_ms else nan),
             "start_p90_ms": _known(float(np.quantile(size, 0.9)) if late_ms else nan), "not_aligned": unaligned}
        )  # fmt: skip
    schema = {"voice": pl.String, "n_clips": pl.Int64, "n_words": pl.Int64, "substitutions": pl.Int64,
              "deletions": pl.Int64, "insertions": pl.Int64, "word_error_rate": pl.Float64, "n_timed": pl.Int64,
              "start_bias_ms": pl.Float64, "start_median_ms": pl.Float64, "start_p90_ms": pl.Float64,
              "not_aligned": pl.Int64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


def start_errors_ms(one: Heard) -> list[float]:
    """Found minus spoken onset of each word, where every word of the clip was heard as it was spoken.

    A clip with a word error is left out: which onset belongs to which word is then a guess.
    """
    spoken = [word for word in one.text.split() if normalised_words(word)]
    if len(spoken) != len(one.clip.word_starts_s) or len(spoken) != len(one.words):
        return []
    if align(normalised_words(one.text), normalised_words(" ".join(word.text for word in one.words))).errors:
        return []
    return [
        1000.0 * (word.start_s - start_s)
        for word, start_s in zip(one.words, one.clip.word_starts_s, strict=True)
        if word.aligned and word.start_s is not None
    ]


def framed(clip: SpokenClip, margin_s: float = SHORT_MARGIN_S) -> Samples:
    """A clip between two stretches of digital silence."""
    silence = np.zeros(round(margin_s * clip.sample_rate_hz), dtype=np.float32)
    return np.concatenate([silence, clip.samples, silence])


def short_table(heard: Sequence[Heard]) -> pl.DataFrame:
    """Recall of utterances under a second by their length; clips of a second and more take no part.

    Returns:
        Columns ``length``, ``from_s``, ``to_s``, ``n``, ``heard`` (share with any word), ``right`` (share with
        exactly the words spoken), ``wrong`` (share with other words). NaN never: a length without clips has no row.
    """
    rows = []
    for low_s, high_s in pairwise(LENGTH_EDGES_S):
        mine = [one for one in heard if low_s <= len(one.clip.samples) / one.clip.sample_rate_hz < high_s]
        if not mine:
            continue
        found = [" ".join(word.text for word in one.words) for one in mine]
        right = sum(normalised_words(text) == normalised_words(one.text) for text, one in zip(found, mine, strict=True))
        some = sum(bool(normalised_words(text)) for text in found)
        rows.append(
            {"length": f"{low_s:g} to {high_s:g} s", "from_s": low_s, "to_s": high_s, "n": len(mine),
             "heard": some / len(mine), "right": right / len(mine), "wrong": (some - right) / len(mine)}
        )  # fmt: skip
    schema = {"length": pl.String, "from_s": pl.Float64, "to_s": pl.Float64, "n": pl.Int64, "heard": pl.Float64,
              "right": pl.Float64, "wrong": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema)


@dataclass(frozen=True, slots=True)
class PlacedSpeech:
    """Clips at known samples of one track at ``RATE_HZ``; ``spans`` are [start, stop) samples."""

    samples: Samples
    spans: tuple[tuple[int, int], ...]


def placed(tts: TextToSpeech, sentences: Sequence[str]) -> PlacedSpeech:
    """One sentence of every voice, a second of silence around each."""
    pieces, spans, at = [], [], 0
    gap = np.zeros(round(GAP_S * RATE_HZ), dtype=np.float32)
    for place, voice in enumerate(tts.voices):
        clip = tts.speak(sentences[place % len(sentences)], voice)
        samples = resample(clip.samples, clip.sample_rate_hz, RATE_HZ)
        at += len(gap)
        spans.append((at, at + len(samples)))
        at += len(samples)
        pieces += [gap, samples]
    return PlacedSpeech(np.concatenate([*pieces, gap]).astype(np.float32), tuple(spans))


def conditions(track: PlacedSpeech) -> dict[str, Samples]:
    """The track at lower levels, and under white noise; noise is that far below the speech's RMS."""
    speech = np.concatenate([track.samples[start:stop] for start, stop in track.spans])
    rms = float(np.sqrt(np.mean(np.square(speech, dtype=np.float64))))
    found = {
        "as it is" if level_db == 0 else f"{-level_db} dB quieter": track.samples * np.float32(10 ** (level_db / 20))
        for level_db in LEVELS_DB
    }
    for snr_db in SNRS_DB:
        noise = generator_from("detector noise", snr_db).standard_normal(len(track.samples))
        loud = track.samples + noise * rms * 10 ** (-snr_db / 20)
        found[f"white noise {snr_db} dB below" if snr_db else "white noise as loud"] = np.clip(loud, -1, 1).astype(
            np.float32
        )
    return found


def detector_table(track: PlacedSpeech, vad: VoiceActivityDetector, gate: GateSettings) -> pl.DataFrame:
    """What the energy gate and the voice detector find of known speech, and what they call speech that is none.

    Returns:
        A row for each condition and detector: ``speech_found`` (share of the speech's time), ``silence_called_speech``
        (share of the time further than ``GUARD_S`` from speech), ``onset_ms`` and ``offset_ms`` (median of found minus
        true edge, of utterances that were found).
    """
    is_speech, is_silence = _masks(track)
    rows = []
    for name, samples in conditions(track).items():
        found = {
            "energy gate": speech_intervals(samples, RATE_HZ, gate.threshold, gate.release_ratio, gate.min_duration_s),
            "voice detector": vad.speech_regions(samples, RATE_HZ),
        }
        for detector, regions in found.items():
            active = np.zeros(len(samples), dtype=bool)
            for start, stop in regions:
                active[start:stop] = True
            onsets, offsets = _edges_ms(track, regions)
            rows.append(
                {"condition": name, "detector": detector, "speech_found": float(active[is_speech].mean()),
                 "silence_called_speech": float(active[is_silence].mean()), "utterances_found": len(onsets),
                 "n_utterances": len(track.spans), "onset_ms": _known(float(np.median(onsets)) if onsets else nan),
                 "offset_ms": _known(float(np.median(offsets)) if offsets else nan)}
            )  # fmt: skip
    return pl.DataFrame(rows)


def edge_table(track: PlacedSpeech, vad: VoiceActivityDetector) -> pl.DataFrame:
    """Errors of the voice detector's edges, one row for each utterance and condition that it found.

    Returns:
        Columns ``condition``, ``onset_s`` and ``offset_s``: found minus true, seconds.
    """
    rows = []
    for name, samples in conditions(track).items():
        onsets, offsets = _edges_ms(track, vad.speech_regions(samples, RATE_HZ))
        rows += [
            {"condition": name, "onset_s": onset / 1000, "offset_s": offset / 1000}
            for onset, offset in zip(onsets, offsets, strict=True)
        ]
    return pl.DataFrame(rows, schema={"condition": pl.String, "onset_s": pl.Float64, "offset_s": pl.Float64})


def _masks(track: PlacedSpeech) -> tuple[np.ndarray, np.ndarray]:
    speech = np.zeros(len(track.samples), dtype=bool)
    near = np.zeros(len(track.samples), dtype=bool)
    guard = round(GUARD_S * RATE_HZ)
    for start, stop in track.spans:
        speech[start:stop] = True
        near[max(0, start - guard) : stop + guard] = True
    return speech, ~near


def _edges_ms(track: PlacedSpeech, regions: np.ndarray) -> tuple[list[float], list[float]]:
    """Errors of the outer edges of what was found of each utterance."""
    onsets, offsets = [], []
    half = round(GAP_S * RATE_HZ / 2)
    for start, stop in track.spans:
        mine = [(a, b) for a, b in regions if a < stop and b > start and a > start - half and b < stop + half]
        if mine:
            onsets.append(1000 * (mine[0][0] - start) / RATE_HZ)
            offsets.append(1000 * (mine[-1][1] - stop) / RATE_HZ)
    return onsets, offsets


def hear(recogniser: Recogniser, text: str, clip: SpokenClip, *, margin_s: float = 0.0) -> Heard:
    """Recognise one clip, with digital silence around it where ``margin_s`` is given."""
    samples = framed(clip, margin_s) if margin_s else clip.samples
    return Heard(text, clip, recogniser.words(samples, clip.sample_rate_hz))


def _known(value: float) -> float | None:
    return None if np.isnan(value) else value
