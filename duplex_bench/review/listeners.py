"""What listeners would have done, as the metrics that systems are scored by, and how far people differ (ours).

A listener hears up to the boundary and says whether and when they would speak. Over a pause that is a takeover if they
would begin before the pause ends; over a turn end a response. What they would do after the time that the task allows
nobody knows: they count as silent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from duplex_bench.review.judgements import ListenerAnswer
from duplex_bench.review.material import WindowEntry
from duplex_bench.statistics import variance_components

SHARES: Final = ("pause_silent", "pause_takeover", "pause_after", "response_rate")


class HumanScore(NamedTuple):
    """One person's value of one metric on one window."""

    point_id: str
    person: str
    condition: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class HumanRow:
    """A metric over all listeners: how far two people on one window differ, and how far windows do beyond that.

    ``center`` is a mean for shares, a median for seconds. ``people_differ`` is the share of pairs of people on one
    window who do not say the same. What needs two people on a window is None without.
    """

    condition: str
    metric: str
    n_people: int
    n_windows: int
    n_windows_of_two: int
    n_answers: int
    center: float
    people_differ: float | None
    sd_between_people: float | None
    sd_between_windows: float | None


def pause_lengths(windows: Sequence[WindowEntry]) -> dict[str, float | None]:
    """Length of the pause (s) of every window; None for a turn end."""
    return {one.point_id: one.end_s - one.start_s if one.kind == "pause" else None for one in windows}


def human_scores(answers: Sequence[ListenerAnswer], pauses_s: Mapping[str, float | None]) -> list[HumanScore]:
    """Every answer to a selected window, as metrics of conversation cards.

    Args:
        answers: one a person and window.
        pauses_s: the selected windows, as ``pause_lengths`` tells them; answers to others are left out.
    """
    found: list[HumanScore] = []
    for answer in answers:
        if answer.point_id not in pauses_s:
            continue
        pause_s = pauses_s[answer.point_id]
        condition, values = ("turn_end", _turn_end(answer)) if pause_s is None else ("pause", _pause(answer, pause_s))
        found += [
            HumanScore(answer.point_id, answer.person, condition, metric, value) for metric, value in values.items()
        ]
    return found


def _pause(answer: ListenerAnswer, pause_s: float) -> dict[str, float]:
    at_s = answer.after_boundary_s
    takes = at_s is not None and at_s < pause_s
    shares = {
        "pause_silent": float(at_s is None),
        "pause_takeover": float(takes),
        "pause_after": float(at_s is not None and not takes),
    }
    # As for systems: what begins before the pause is a takeover at latency 0.
    return shares | ({"takeover_latency": max(0.0, at_s)} if at_s is not None and takes else {})


def _turn_end(answer: ListenerAnswer) -> dict[str, float]:
    at_s = answer.after_boundary_s
    return {"response_rate": float(at_s is not None)} | ({"turn_end_latency": at_s} if at_s is not None else {})


def human_rows(scores: Sequence[HumanScore]) -> list[HumanRow]:
    """One row a condition and metric, in order of their names."""
    groups: dict[tuple[str, str], list[HumanScore]] = {}
    for score in scores:
        groups.setdefault((score.condition, score.metric), []).append(score)
    return [_row(condition, metric, mine) for (condition, metric), mine in sorted(groups.items())]


def _row(condition: str, metric: str, mine: Sequence[HumanScore]) -> HumanRow:
    values = np.array([score.value for score in mine], dtype=np.float64)
    windows = np.array([score.point_id for score in mine])
    sizes = np.unique(windows, return_counts=True)[1]
    parts = variance_components(values, windows)
    return HumanRow(
        condition,
        metric,
        len({score.person for score in mine}),
        len(sizes),
        int((sizes > 1).sum()),
        len(mine),
        float(np.mean(values) if metric in SHARES else np.median(values)),
        _pairs_that_differ(values, windows) if metric in SHARES else None,
        _root(parts.run),
        _root(parts.item),
    )


def _pairs_that_differ(values: np.ndarray, windows: np.ndarray) -> float | None:
    differ = pairs = 0
    for window in np.unique(windows):
        said = values[windows == window]
        yes = int(said.sum())
        differ += yes * (len(said) - yes)
        pairs += len(said) * (len(said) - 1) // 2
    return differ / pairs if pairs else None


def _root(variance: float) -> float | None:
    return None if np.isnan(variance) else float(np.sqrt(variance))
