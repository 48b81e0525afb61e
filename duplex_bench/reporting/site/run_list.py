"""Runs over all items: the packed list behind the page "Listen", and which of them are heard from both sides."""

from collections.abc import Sequence
from typing import Any

from duplex_bench.reporting.findings import examples
from duplex_bench.reporting.inputs import ReportInputs
from duplex_bench.reporting.site.chunks import Both, Row
from duplex_bench.storage.digests import draw_order


class RunList:
    """Every run with its scores, names as numbers: a paper-size run has a hundred thousand, with two million scores."""

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._runs: list[list[Any]] = []

    def add(self, item: int, runs: Sequence[Row]) -> None:
        """Add the runs of an item's script file; ``item`` is its place in the list of items."""
        for run in runs:
            scores: list[Any] = []
            for score in run["scores"]:
                value, at_s = score["value"], score["at"]
                scores += [
                    self._number(score["metric"]),
                    None if value is None else _short(value),
                    None if score["reason"] is None else self._number(score["reason"]),
                    None if at_s is None else _short(at_s),
                ]
            self._runs.append([item, self._number(run["system"]), run["repeat"], self._number(run["outcome"]), scores])

    def packed(self) -> dict[str, Any]:
        """``names``; ``runs``: item, system, repeat, outcome, then metric, value, reason and second of each score."""
        return {"names": list(self._names), "runs": self._runs}

    def _number(self, name: str) -> int:
        return self._names.setdefault(name, len(self._names))


def _short(value: float) -> float | int:
    """To a thousandth, and whole numbers without a point: the whole score is in the item's own file."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded


def chosen_runs(inputs: ReportInputs) -> Both:
    """Which runs have a player with both channels: of many only those listed as examples, and a draw of items."""
    total = sum(track.rollouts.height for track in inputs.tracks)
    if total <= inputs.settings.both_sides:
        return lambda *_: True
    items: set[str] = set()
    listed: set[tuple[str, str]] = set()
    for track in inputs.tracks:
        share = inputs.settings.both_sides * track.rollouts.height / total
        per_item = dict(track.rollouts.group_by("item_id").len().iter_rows())
        for item_id in draw_order(0, sorted(per_item)):
            share -= per_item[item_id]
            if share < 0:
                break
            items.add(item_id)
        for system in track.measurements["system"].unique():
            for card in track.cards:
                for worst in (True, False):
                    found = examples(track, card, system, worst=worst, limit=inputs.settings.examples)
                    listed |= {(example.item_id, system) for example in found}

    def both(item_id: str, rollout: Row) -> bool:
        return item_id in items or (rollout["repeat"] == 0 and (item_id, rollout["system"]) in listed)

    return both
