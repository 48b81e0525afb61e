"""The energy gate against words: labels that no energy threshold made, a sweep, Otsu's threshold and AUC (P2 App. D).

Each response is tiled with windows that overlap; each window is peak-normalised before it is heard, so that the labels
cannot inherit the level that is being calibrated; an instant is labelled speech if every window over it has a word
there.
"""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import bridge
from duplex_bench.audio.gate import GateSettings, intervals_s
from duplex_bench.audio.time import to_samples
from duplex_bench.conversation.measures import as_spans, classify_pause
from duplex_bench.records.audio import TimedWord
from duplex_bench.statistics import auc, otsu_threshold
from duplex_bench.storage.digests import generator_from

Samples = npt.NDArray[np.float32]
Spans = npt.NDArray[np.float64]
Hear = Callable[[Samples, int], Sequence[TimedWord]]

_FRAME_S: Final = 0.01
# Below this a window is digital silence: there is nothing to normalise.
_SILENT_PEAK: Final = 1e-6


@dataclass(frozen=True, slots=True)
class CalibrationSettings:
    """Numbers of the calibration.

    Attributes:
        rollouts: how many pause rollouts of each system are labelled, drawn by hash; 0: none (P2: 57 of one system).
        window_s: length of a window that is heard (P2).
        hop_s: distance of window starts (P2).
        bridge_s: labelled instants closer than this are one utterance (ours).
        most_compression: a window whose text compresses better repeats itself and labels nothing (Whisper's guard).
        thresholds: openings of the gate that are tried.
        release_ratios: closings that are tried at the gate's own threshold.
        min_durations_s: shortest intervals that are tried at the gate's own threshold.
    """

    rollouts: int = 0
    window_s: float = 2.0
    hop_s: float = 1.0
    bridge_s: float = 0.25
    most_compression: float = 2.4
    thresholds: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.005, 0.01, 0.02, 0.05)
    release_ratios: tuple[float, ...] = (0.25, 0.75)
    min_durations_s: tuple[float, ...] = (0.04, 0.06)

    def __post_init__(self) -> None:
        if self.rollouts < 0 or not 0 < self.hop_s <= self.window_s:
            raise ValueError("calibration: give 0 or more rollouts and 0 < hop_s <= window_s")


@dataclass(frozen=True, slots=True)
class Labelled:
    """One response with its labels: audio (n,), labelled utterances (k, 2) in seconds, and its pause if it has one."""

    samples: Samples
    sample_rate_hz: int
    utterances_s: Spans
    pause_s: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class SweepRow:
    """The gate under one setting against the labels; None where there is nothing to compare.

    ``matched`` labelled utterances overlap an interval; ``onset_bias_s`` (median) and ``onset_error_s`` (mean of the
    absolute) are of the first interval over each, minus the label's onset; ``takeover_rate`` is over pauses, with the
    labels as words.
    """

    setting: str
    threshold: float
    release_ratio: float
    min_duration_s: float
    utterances: int
    matched: int
    onset_bias_s: float | None
    onset_error_s: float | None
    takeover_rate: float | None


def label(samples: Samples, sample_rate_hz: int, hear: Hear, settings: CalibrationSettings) -> Spans:
    """Labelled utterances (k, 2) in seconds of one response (n,).

    Args:
        samples: full scale 1.0.
        sample_rate_hz: its rate.
        hear: words of a stretch, with times in it; it says nothing where there is no speech.
        settings: windows and guards.
    """
    length_s = len(samples) / sample_rate_hz
    n_frames = int(np.ceil(length_s / _FRAME_S))
    covering, agreeing = np.zeros(n_frames, dtype=np.int64), np.zeros(n_frames, dtype=np.int64)
    starts_s = np.arange(0.0, max(length_s - settings.window_s, 0.0) + settings.hop_s, settings.hop_s)
    for start_s in starts_s:
        begin = to_samples(float(start_s), sample_rate_hz)
        part = samples[begin : begin + to_samples(settings.window_s, sample_rate_hz)]
        if not len(part):
            continue
        first = round(start_s / _FRAME_S)
        last = min(n_frames, first + round(settings.window_s / _FRAME_S))
        covering[first:last] += 1
        spoken = np.zeros(n_frames, dtype=bool)
        for word in _heard(part, sample_rate_hz, hear, settings):
            spoken[_frames(start_s + (word.start_s or 0.0), start_s + (word.end_s or 0.0))] = True
        agreeing[first:last] += spoken[first:last]
    found = _runs((covering > 0) & (agreeing == covering)) * _FRAME_S
    return bridge(np.minimum(found, length_s), settings.bridge_s)


def _heard(part: Samples, rate: int, hear: Hear, settings: CalibrationSettings) -> list[TimedWord]:
    peak = float(np.max(np.abs(part)))
    if peak < _SILENT_PEAK:
        return []
    words = hear((part / np.float32(peak) * np.float32(0.95)).astype(np.float32), rate)
    text = " ".join(word.text for word in words).encode()
    if not text or len(text) / len(zlib.compress(text)) > settings.most_compression:
        return []
    # A word that could not be placed says nothing about instants.
    return [word for word in words if word.aligned and word.start_s is not None and word.end_s is not None]


def _frames(start_s: float, end_s: float) -> slice:
    return slice(max(0, round(start_s / _FRAME_S)), max(0, round(end_s / _FRAME_S)))


def _runs(active: npt.NDArray[np.bool_]) -> Spans:
    edges = np.diff(np.concatenate([[False], active, [False]]).astype(np.int8))
    runs: Spans = np.stack([np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)], axis=1).astype(np.float64)
    return runs


def settings_tried(gate: GateSettings, settings: CalibrationSettings) -> list[tuple[str, GateSettings]]:
    """The gate as it is, then every variation of one of its three numbers."""
    tried = [("as set", gate)]
    tried += [(f"threshold {x:g}", replace(gate, threshold=x)) for x in settings.thresholds if x != gate.threshold]
    tried += [
        (f"release {x:g}", replace(gate, release_ratio=x)) for x in settings.release_ratios if x != gate.release_ratio
    ]
    tried += [
        (f"shortest {1000 * x:.0f} ms", replace(gate, min_duration_s=x))
        for x in settings.min_durations_s
        if x != gate.min_duration_s
    ]
    return tried


def sweep(responses: Sequence[Labelled], gate: GateSettings, settings: CalibrationSettings) -> list[SweepRow]:
    """The gate under every setting tried (P2 table 8), and under Otsu's threshold of the levels."""
    tried = settings_tried(gate, settings)
    levels, _ = levels_and_labels(responses, gate)
    split = otsu_threshold(levels)
    if np.isfinite(split) and split > 0:
        tried.append((f"Otsu {split:.2g}", replace(gate, threshold=float(split))))
    return [_row(name, one, responses) for name, one in tried]


def _row(name: str, gate: GateSettings, responses: Sequence[Labelled]) -> SweepRow:
    errors: list[float] = []
    utterances = 0
    took: list[bool] = []
    for one in responses:
        found = intervals_s(one.samples, one.sample_rate_hz, gate)
        utterances += len(one.utterances_s)
        for start_s, end_s in one.utterances_s:
            over = found[(found[:, 0] < end_s) & (found[:, 1] > start_s)]
            if len(over):
                errors.append(float(over[0, 0] - start_s))
        if one.pause_s is not None:
            took.append(classify_pause(found, as_spans(one.utterances_s, "labels"), one.pause_s).outcome == "takeover")
    return SweepRow(
        name,
        gate.threshold,
        gate.release_ratio,
        gate.min_duration_s,
        utterances,
        len(errors),
        float(np.median(errors)) if errors else None,
        float(np.mean(np.abs(errors))) if errors else None,
        float(np.mean(took)) if took else None,
    )


def levels_and_labels(
    responses: Sequence[Labelled], gate: GateSettings
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.bool_]]:
    """Level of every envelope window (m,) as a share of full scale, and whether its middle is labelled speech (m,)."""
    levels: list[npt.NDArray[np.float64]] = [np.zeros(0)]
    flags: list[npt.NDArray[np.bool_]] = [np.zeros(0, dtype=bool)]
    for one in responses:
        hop, window = (to_samples(seconds, one.sample_rate_hz) for seconds in (gate.hop_s, gate.window_s))
        if len(one.samples) < window:
            continue
        frames = np.lib.stride_tricks.sliding_window_view(one.samples, window)[::hop]
        levels.append(np.sqrt(np.mean(np.square(frames, dtype=np.float64), axis=1)))
        middles = (np.arange(len(frames)) * hop + window / 2) / one.sample_rate_hz
        spans = one.utterances_s.reshape(-1, 2)
        inside: npt.NDArray[np.bool_] = (middles[:, None] >= spans[:, 0]) & (middles[:, None] < spans[:, 1])
        flags.append(np.asarray(inside.any(axis=1)))
    return np.concatenate(levels), np.concatenate(flags)


def level_auc(responses: Sequence[Labelled], gate: GateSettings) -> float:
    """How well the level alone tells labelled from unlabelled windows; NaN without both."""
    levels, flags = levels_and_labels(responses, gate)
    return auc(levels, flags)


def controls(sample_rate_hz: int, length_s: float = 6.0) -> dict[str, Samples]:
    """What must get no label: digital silence, floor noise, noise at 0.05, a 120 Hz tone (P2 App. D)."""
    n = to_samples(length_s, sample_rate_hz)
    noise = generator_from("gate controls/1").standard_normal(n).astype(np.float32)
    tone = 0.1 * np.sin(2 * np.pi * 120 * np.arange(n) / sample_rate_hz)
    return {
        "digital silence": np.zeros(n, dtype=np.float32),
        "floor noise": (noise * np.float32(2.5e-4)).astype(np.float32),
        "noise at 0.05": (noise * np.float32(0.05)).astype(np.float32),
        "120 Hz tone": tone.astype(np.float32),
    }
