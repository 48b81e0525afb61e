"""Checks of a built scene against its plan and against a voice detector (P1 3.5; issue 3, item 5)."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.time import to_samples, to_seconds
from duplex_bench.multiparty.rules import ScoringRules
from duplex_bench.multiparty.scenes import Scene, SceneLayout


@dataclass(frozen=True, slots=True)
class ConstructionFault:
    """A scene that is not as planned: which check, which turn, and what was found."""

    check: str
    script_id: str
    utterance_id: str | None
    message: str


@dataclass(frozen=True, slots=True)
class BoundaryError:
    """Detector minus construction at both edges of one turn, seconds; None where the detector heard nothing near."""

    utterance_id: str
    onset_s: float | None
    offset_s: float | None


def boundary_errors(scene: Scene, detected: npt.ArrayLike, search_s: float = 0.5) -> list[BoundaryError]:
    """How far a voice detector's edges lie from the gold boundaries of every turn.

    Args:
        scene: the scene.
        detected: speech regions found in its audio, int64 (k, 2) [start, stop) samples at its rate.
        search_s: the nearest edge counts, if it lies within this of the gold one.

    Raises:
        ValueError: ``detected`` has another shape.
    """
    regions = np.asarray(detected, dtype=np.int64)
    if regions.size == 0:
        regions = regions.reshape(0, 2)
    if regions.ndim != 2 or regions.shape[1] != 2:
        raise ValueError(f"detected regions have shape {regions.shape}: give (k, 2) [start, stop) samples")
    reach = to_samples(search_s, scene.sample_rate_hz)

    def nearest(edges: npt.NDArray[np.int64], gold: int) -> float | None:
        errors = edges - gold
        near = errors[np.abs(errors) <= reach]
        return None if len(near) == 0 else int(near[np.argmin(np.abs(near))]) / scene.sample_rate_hz

    return [
        BoundaryError(
            turn.utterance.utterance_id,
            nearest(regions[:, 0], turn.start_sample),
            nearest(regions[:, 1], turn.stop_sample),
        )
        for turn in scene.turns
    ]


def construction_faults(
    scene: Scene,
    layout: SceneLayout,
    rules: ScoringRules | None = None,
    detected: npt.ArrayLike | None = None,
    tolerance_s: float = 0.2,
) -> list[ConstructionFault]:
    """What is wrong with ``scene``; empty where it is as planned.

    Checks: no clipping; turns in order without overlap; gaps as scheduled and digitally silent; no human speech in
    the windows after T and N4Q; and, where ``detected`` regions are given, both edges of every turn within
    ``tolerance_s`` of the detector's (the default allows for silero's measured bias of +22 ms and +60 ms, ours).
    Where the layout lets turns overlap, order and gaps are not checked.
    """
    rules = rules or ScoringRules()
    faults = [
        ConstructionFault(check, scene.script.script_id, utterance_id, message)
        for check, utterance_id, message in _planned(scene, layout, rules)
    ]
    if detected is not None:
        for error in boundary_errors(scene, detected):
            for edge, found in (("onset", error.onset_s), ("offset", error.offset_s)):
                if found is None or abs(found) > tolerance_s:
                    said = "not heard by the detector" if found is None else f"{found:+.3f} s away in the detector"
                    faults.append(
                        ConstructionFault(
                            "boundaries_agree", scene.script.script_id, error.utterance_id, f"{edge} {said}"
                        )
                    )
    return faults


def _planned(scene: Scene, layout: SceneLayout, rules: ScoringRules) -> Iterator[tuple[str, str | None, str]]:
    rate = scene.sample_rate_hz
    if rate != layout.sample_rate_hz:
        yield "sample_rate", None, f"the scene is at {rate} Hz, the layout at {layout.sample_rate_hz} Hz"
        return
    peak = float(np.abs(scene.samples).max(initial=0.0))
    if not np.isfinite(scene.samples).all() or peak >= 1.0:
        yield "no_clipping", None, f"the peak is {peak:.3f} of full scale"
    if layout.overlap_s > 0:
        yield from _free_windows(scene, rules)
        return
    edges = [scene.preamble_stop_sample]
    edges += [edge for turn in scene.turns for edge in (turn.start_sample, turn.stop_sample)] + [scene.n_samples]
    if any(later < earlier for earlier, later in pairwise(edges)):
        yield "turns_in_order", None, "turns overlap or leave the scene"
        return
    planned = [to_samples(layout.preamble_gap_s, rate)]
    planned += [layout.gap_samples(scene.script.scenario_id, turn.utterance) for turn in scene.turns[:-1]]
    planned.append(to_samples(layout.tail_s, rate))
    for number, gap in enumerate(planned):
        start, stop = edges[2 * number], edges[2 * number + 1]
        after = scene.turns[number - 1].utterance.utterance_id if number else None
        if stop - start != gap:
            yield "gaps_as_scheduled", after, f"{stop - start} samples of gap instead of {gap}"
        if scene.samples[start:stop].any():
            yield "gaps_are_silent", after, "the gap is not silent"
    yield from _free_windows(scene, rules)


def _free_windows(scene: Scene, rules: ScoringRules) -> Iterator[tuple[str, str | None, str]]:
    needed = {"T": rules.request_window_s, "N4Q": rules.question_window_s}
    for turn, following in pairwise(scene.turns):
        gap_s = to_seconds(following.start_sample - turn.stop_sample, scene.sample_rate_hz)
        kind = turn.utterance.turn_type
        if kind in needed and gap_s < needed[kind]:
            yield "windows_are_free", turn.utterance.utterance_id, f"{gap_s:.2f} s after {kind}: the window is longer"
