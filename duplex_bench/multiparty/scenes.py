"""Scenes: the preamble and every utterance's clip on one timeline, with gold boundaries by construction (P1 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.mixing import place
from duplex_bench.audio.time import to_samples
from duplex_bench.multiparty.scripts import Script, Utterance
from duplex_bench.storage.digests import generator_from

Mono = npt.NDArray[np.float32]


class SceneError(ValueError):
    """A scene cannot be built: a clip is missing, empty, not finite, or the mix would clip."""


@dataclass(frozen=True, slots=True)
class SceneLayout:
    """Where utterances lie. All layout numbers are ours: the paper says only that T leaves 5 s to start speaking."""

    sample_rate_hz: int = 24_000
    gap_min_s: float = 0.35
    """Shortest and longest pause between turns; each is drawn by name, equal in both conditions of a pair. The
    shortest stays above what the voice detector joins (0.25 s and its edge bias), so that boundaries can be checked.
    """
    gap_max_s: float = 0.65
    gap_after_t_s: float = 5.0
    gap_after_n4q_s: float = 3.0
    preamble_gap_s: float = 1.0
    tail_s: float = 5.0
    """Silence after the last turn."""
    overlap_s: float = 0.0
    """Above 0, turns begin this much before the turn before them ends, instead of after a gap; the windows after T
    and N4Q stay free, and a turn never begins before the turn before it is half over."""

    def __post_init__(self) -> None:
        if self.sample_rate_hz < 1:
            raise ValueError(f"sample_rate_hz is {self.sample_rate_hz}: give a positive rate")
        for name in ("gap_min_s", "gap_after_t_s", "gap_after_n4q_s", "preamble_gap_s", "tail_s", "overlap_s"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}: give 0 or more seconds")
        if self.gap_max_s < self.gap_min_s:
            raise ValueError(f"gap_max_s {self.gap_max_s} is below gap_min_s {self.gap_min_s}")

    def gap_samples(self, scenario_id: str, utterance: Utterance) -> int:
        """Samples of silence scheduled after ``utterance``, where another turn follows it."""
        if utterance.turn_type == "T":
            return to_samples(self.gap_after_t_s, self.sample_rate_hz)
        if utterance.turn_type == "N4Q":
            return to_samples(self.gap_after_n4q_s, self.sample_rate_hz)
        low, high = (to_samples(gap, self.sample_rate_hz) for gap in (self.gap_min_s, self.gap_max_s))
        return int(generator_from("scene-gap/1", scenario_id, utterance.utterance_id).integers(low, high + 1))

    def step_samples(self, scenario_id: str, utterance: Utterance, clip_samples: int) -> int:
        """Samples from the end of ``utterance`` to the onset of the next turn; below 0 where they overlap."""
        if self.overlap_s > 0 and utterance.turn_type not in {"T", "N4Q"}:
            return -min(to_samples(self.overlap_s, self.sample_rate_hz), clip_samples // 2)
        return self.gap_samples(scenario_id, utterance)


@dataclass(frozen=True, slots=True)
class PlacedTurn:
    """An utterance and where its clip lies: samples [start, stop) of the scene."""

    utterance: Utterance
    start_sample: int
    stop_sample: int


@dataclass(frozen=True, eq=False, slots=True)
class Scene:
    """A conversation's audio, float32 (n,) mono in [-1, 1], from the first sample of the preamble."""

    script: Script
    samples: Mono
    sample_rate_hz: int
    turns: tuple[PlacedTurn, ...]
    preamble_stop_sample: int

    @property
    def n_samples(self) -> int:
        """Length in samples, preamble and tail included."""
        return len(self.samples)


def _checked(name: str, samples: npt.NDArray[np.floating]) -> Mono:
    if samples.ndim != 1 or not np.issubdtype(samples.dtype, np.floating):
        raise SceneError(f"{name}: clip has shape {samples.shape} and type {samples.dtype}: give float mono (n,)")
    if len(samples) == 0:
        raise SceneError(f"{name}: clip is empty: synthesise it again")
    if not np.isfinite(samples).all():
        raise SceneError(f"{name}: clip is not finite: synthesise it again")
    return samples.astype(np.float32, copy=False)


def build_scene(
    script: Script,
    clips: Mapping[str, npt.NDArray[np.floating]],
    preamble: npt.NDArray[np.floating],
    layout: SceneLayout | None = None,
) -> Scene:
    """The scene of ``script``: preamble, gap, every clip with its gap, tail.

    Args:
        script: a valid script.
        clips: trimmed speech of each utterance by its id, float (n,) at the layout's rate.
        preamble: speech of the duty instruction at the same rate; may be empty for none.
        layout: where utterances lie; the default layout where None.

    Raises:
        SceneError: a clip is missing, empty, not mono float or not finite, or the sum passes full scale.
    """
    layout = layout or SceneLayout()
    rate = layout.sample_rate_hz
    missing = [turn.utterance_id for turn in script.utterances if turn.utterance_id not in clips]
    if missing:
        raise SceneError(f"script {script.script_id}: no clip for {', '.join(missing)}: a scene never has a hole")
    placed: list[tuple[int, Mono]] = []
    at = 0
    if len(preamble):
        placed.append((0, _checked(f"script {script.script_id}, preamble", preamble)))
        at = len(preamble)
    preamble_stop = at
    at += to_samples(layout.preamble_gap_s, rate)
    turns: list[PlacedTurn] = []
    for number, turn in enumerate(script.utterances):
        clip = _checked(f"script {script.script_id}, {turn.utterance_id}", clips[turn.utterance_id])
        placed.append((at, clip))
        turns.append(PlacedTurn(turn, at, at + len(clip)))
        last = number + 1 == len(script.utterances)
        step = to_samples(layout.tail_s, rate) if last else layout.step_samples(script.scenario_id, turn, len(clip))
        at += len(clip) + step
    mix = place(placed, at)
    if mix.peak > 1.0 and layout.overlap_s > 0:
        # Two voices at once may pass full scale though neither does.
        return Scene(script, (mix.samples / mix.peak).astype(np.float32), rate, tuple(turns), preamble_stop)
    if mix.peak > 1.0:
        raise SceneError(f"script {script.script_id}: peak {mix.peak:.3f} is above full scale: lower the clips' level")
    return Scene(script, mix.samples, rate, tuple(turns), preamble_stop)
