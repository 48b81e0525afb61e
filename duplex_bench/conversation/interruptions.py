"""Who speaks over whom in a recording, and who gives way (for recordings scored without an adapter; ours)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import bridge
from duplex_bench.conversation.cards import card
from duplex_bench.conversation.label_types import Label, Speaker
from duplex_bench.conversation.measures import Spans, as_spans, overlap_matrix
from duplex_bench.records.score import Measurement, Score

Party = Literal["user", "system"]


@dataclass(frozen=True, slots=True)
class InterruptionSettings:
    """Numbers of the interruption measures, all ours.

    Attributes:
        bridge_s: gaps up to this do not interrupt speech (design 5).
        stop_within_s: who stops later than this after the other's start has not given way.
        backchannel_max_s: without a label, speech over the other of at most this ...
        backchannel_max_words: ... and at most this many words is a backchannel (P2's rule for labels).
    """

    bridge_s: float = 0.25
    stop_within_s: float = 2.0
    backchannel_max_s: float = 1.0
    backchannel_max_words: int = 2


@dataclass(frozen=True, slots=True)
class Interruption:
    """One start while the other speaks; seconds of the recording.

    Attributes:
        by: who starts.
        kind: ``backchannel`` if short by label or by rule, else ``interruption``.
        at_s: where it starts.
        until_s: where that stretch of speech ends.
        stopped: the other ended within the time allowed, while this one went on, and did not begin again before it
            ended.
        stop_latency_s: end of the other's speech minus ``at_s``, if it stopped.
        overlap_s: how long both spoke, to the first end.
        resumed: the other stopped but began again before this one ended.
    """

    by: Party
    kind: Literal["interruption", "backchannel"]
    at_s: float
    until_s: float
    stopped: bool
    stop_latency_s: float | None
    overlap_s: float
    resumed: bool


def find_interruptions(
    user_s: Spans,
    system_s: Spans,
    *,
    user_word_times_s: Spans | None = None,
    system_word_times_s: Spans | None = None,
    labels: Sequence[Label] = (),
    user_side: Speaker = "left",
    settings: InterruptionSettings | None = None,
) -> list[Interruption]:
    """Every start of one party while the other is speaking, in order of time.

    Args:
        user_s: gate intervals of the user's channel, (k, 2) seconds.
        system_s: the same of the system's channel.
        user_word_times_s: the user's word times; None if unknown, then only length tells a backchannel.
        system_word_times_s: the same of the system.
        labels: backchannel labels decide where they are; empty if there are none.
        user_side: which speaker of the labels is the user.
        settings: the numbers.

    Raises:
        MeasureError: spans that are not finite, ordered pairs.
    """
    chosen = settings or InterruptionSettings()
    runs: dict[Party, npt.NDArray[np.float64]] = {
        "user": bridge(as_spans(user_s, "user_s"), chosen.bridge_s),
        "system": bridge(as_spans(system_s, "system_s"), chosen.bridge_s),
    }
    words: dict[Party, Spans | None] = {"user": user_word_times_s, "system": system_word_times_s}
    found: list[Interruption] = []
    pairs: tuple[tuple[Party, Party], ...] = (("user", "system"), ("system", "user"))
    for by, over in pairs:
        spoken = words[by]
        timed = None if spoken is None else as_spans(spoken, f"{by} word times")
        marked = [
            (label.start_s, label.end_s)
            for label in labels
            if label.kind == "backchannel" and (label.speaker == user_side) == (by == "user")
        ]
        for run in runs[by]:
            broken = runs[over][(runs[over][:, 0] < run[0]) & (runs[over][:, 1] > run[0])]
            if len(broken):
                backchannel = _is_backchannel(run, timed, marked, bool(labels), chosen)
                found.append(_interruption(by, run, float(broken[0, 1]), runs[over], backchannel, chosen))
    return sorted(found, key=lambda one: (one.at_s, one.by))


def _is_backchannel(
    run: npt.NDArray[np.float64],
    words: npt.NDArray[np.float64] | None,
    marked: Sequence[tuple[float, float]],
    labelled: bool,
    settings: InterruptionSettings,
) -> bool:
    if labelled:
        middle = float(run.mean())
        return any(start <= middle <= end for start, end in marked)
    if run[1] - run[0] > settings.backchannel_max_s:
        return False
    return words is None or int(overlap_matrix(run[None, :], words).sum()) <= settings.backchannel_max_words


def _interruption(
    by: Party,
    run: npt.NDArray[np.float64],
    other_end_s: float,
    others: npt.NDArray[np.float64],
    backchannel: bool,
    settings: InterruptionSettings,
) -> Interruption:
    at_s, until_s = float(run[0]), float(run[1])
    latency_s = other_end_s - at_s
    gave_way = other_end_s < until_s and latency_s <= settings.stop_within_s
    resumed = gave_way and bool(((others[:, 0] >= other_end_s) & (others[:, 0] < until_s)).any())
    stopped = gave_way and not resumed
    return Interruption(
        by=by,
        kind="backchannel" if backchannel else "interruption",
        at_s=at_s,
        until_s=until_s,
        stopped=stopped,
        stop_latency_s=latency_s if stopped else None,
        overlap_s=min(other_end_s, until_s) - at_s,
        resumed=resumed,
    )


def interruption_measurements(item_id: str, found: Sequence[Interruption]) -> list[Measurement]:
    """One window for each interruption of a recording, with the metrics that apply to its kind."""
    measurements: list[Measurement] = []
    for number, one in enumerate(found):
        scores: dict[str, Score]
        if one.by == "system":
            scores = {"system_interruption_overlap": Score(one.overlap_s)} if one.kind == "interruption" else {}
        elif one.kind == "backchannel":
            gave_way = one.stopped or one.resumed
            scores = {"backchannel_kept_on": Score(float(not gave_way))}
        else:
            latency = Score(None, "did not stop") if one.stop_latency_s is None else Score(one.stop_latency_s)
            scores = {"interruption_stopped": Score(float(one.stopped)), "interruption_stop_latency": latency}
        details: dict[str, float | int | str | bool | None] = {
            "by": one.by,
            "kind": one.kind,
            "until_s": one.until_s,
            "overlap_s": one.overlap_s,
            "resumed": one.resumed,
        }
        measurements += [
            Measurement(item_id, f"interruption-{number}", metric, card(metric).version, score, one.at_s, dict(details))
            for metric, score in scores.items()
        ]
    return measurements
