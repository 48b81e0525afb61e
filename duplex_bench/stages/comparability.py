"""Whether two runs may be compared: which windows they share, and what about them differs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.reporting.comparisons import WINDOW
from duplex_bench.reporting.run_tables import Run
from duplex_bench.stages.rescore_scope import decides_scoring, setting_changes

# Columns that tell which engine or judge a table was made by.
_ENGINES: Final = {"activity": "vad_engine", "words": "engine", "judgements": "judge"}
_SHOWN: Final = 8


@dataclass(frozen=True, slots=True)
class Shared:
    """Scores of two sides on the windows they share.

    Attributes:
        a: rows of the first side, schema MEASUREMENTS.
        b: rows of the second.
        windows: shared windows.
        only_a: windows that only the first has.
        only_b: windows that only the second has.
        other_stimulus: windows of items whose stimulus is another on either side; they are not shared.
        other_bounds: windows that begin or end elsewhere on either side; they are not shared.
    """

    a: pl.DataFrame
    b: pl.DataFrame
    windows: int
    only_a: int
    only_b: int
    other_stimulus: int
    other_bounds: int

    @property
    def notes(self) -> tuple[str, ...]:
        """What is not shared, for people; empty where everything is."""
        told = {
            "windows are in A alone": self.only_a,
            "windows are in B alone": self.only_b,
            "windows are of items whose stimulus is another": self.other_stimulus,
            "windows begin or end elsewhere": self.other_bounds,
        }
        return tuple(f"{n} {what}: left out" for what, n in told.items() if n)


def shared_windows(run_a: Run, run_b: Run, track: Track, system_a: str, system_b: str) -> Shared:
    """Scores of a system of either run on windows of the same stimulus with the same bounds.

    Raises:
        ValueError: a run has no items of the track, so that nothing tells what was heard.
    """
    a, b = (
        run[f"{track}-measurements"].filter(pl.col("system") == system).select(*MEASUREMENTS)
        for run, system in ((run_a, system_a), (run_b, system_b))
    )
    stimuli = [_stimuli(run, track) for run in (run_a, run_b)]
    bounds = [_bounds(run, track) for run in (run_a, run_b)]
    keys = [set(side.select(*WINDOW).unique().iter_rows()) for side in (a, b)]
    both = keys[0] & keys[1]
    other = {key for key in both if stimuli[0].get(key[0]) != stimuli[1].get(key[0])}
    moved = {key for key in both - other if key in bounds[0] and key in bounds[1] and bounds[0][key] != bounds[1][key]}
    kept = both - other - moved
    chosen = pl.DataFrame(sorted(kept), schema=dict.fromkeys(WINDOW, pl.String), orient="row")
    return Shared(
        a=a.join(chosen, on=WINDOW, how="semi"),
        b=b.join(chosen, on=WINDOW, how="semi"),
        windows=len(kept),
        only_a=len(keys[0] - keys[1]),
        only_b=len(keys[1] - keys[0]),
        other_stimulus=len(other),
        other_bounds=len(moved),
    )


def _items(run: Run, track: Track) -> pl.DataFrame:
    name = f"{track}-items"
    if name not in run:
        raise ValueError(
            f"{run.path} has no table {name}: what its systems heard is not told, so nothing can be paired"
        )
    return run[name]


def _stimuli(run: Run, track: Track) -> dict[str, str]:
    return dict(_items(run, track).select("item_id", "stimulus_digest").iter_rows())


def _bounds(run: Run, track: Track) -> dict[tuple[str, str], tuple[float, float]]:
    """Start and end of every window; none where the run withholds references (a public report)."""
    items = _items(run, track)
    if "reference" not in items.columns:
        return {}
    return {
        (item_id, window["window_id"]): (window["start_s"], window["end_s"])
        for item_id, text in items.select("item_id", "reference").iter_rows()
        for window in json.loads(text)["windows"]
    }


def versions_of(rows: pl.DataFrame) -> dict[str, tuple[int, ...]]:
    """Metric to the versions it was scored by."""
    found = rows.group_by("metric").agg(pl.col("metric_version").unique().sort())
    return {metric: tuple(versions) for metric, versions in found.iter_rows()}


def differing_versions(a: pl.DataFrame, b: pl.DataFrame) -> dict[str, str]:
    """Metrics that the sides scored by different versions, and which."""
    first, second = versions_of(a), versions_of(b)
    return {
        metric: f"version {_list(first[metric])} against {_list(second[metric])}"
        for metric in sorted(first.keys() & second.keys())
        if first[metric] != second[metric]
    }


def notice(
    run_a: Run,
    run_b: Run,
    tracks: Iterable[Track],
    systems: Mapping[str, str],
    names: tuple[str, str] = ("A", "B"),
) -> tuple[str, ...]:
    """What differs between two runs apart from their scores; empty where nothing that is told does.

    Args:
        run_a: the first.
        run_b: the second.
        tracks: that are compared.
        systems: name of each system in the first run, to that in the second.
        names: what the two are called.
    """
    found = [*_settings(run_a, run_b, names), *_code(run_a, run_b)]
    for track in tracks:
        found += _engines(run_a, run_b, track, systems)
    return (*found, *_cards(run_a, run_b, systems))


def _settings(run_a: Run, run_b: Run, names: tuple[str, str]) -> list[str]:
    untold = [side for side, run in zip(names, (run_a, run_b), strict=True) if run.settings is None]
    if untold or run_a.settings is None or run_b.settings is None:
        return [f"the settings of {' and '.join(untold)} are not told: whether they differ cannot be said"]
    changes = setting_changes(run_a.settings, run_b.settings)
    found = []
    for kind, wanted in (("scoring", True), ("stimuli or rollouts", False)):
        mine = [change for change in changes if decides_scoring(change.setting) is wanted]
        told = [f"{change.setting} {change.before} -> {change.after}" for change in mine[:_SHOWN]]
        more = f" and {len(mine) - _SHOWN} more" if len(mine) > _SHOWN else ""
        if mine:
            found.append(f"settings of {kind} differ: {'; '.join(told)}{more}")
    return found


def _code(run_a: Run, run_b: Run) -> list[str]:
    found = []
    for name in ("version", "commit", "dirty", "lock"):
        first, second = (str(run.facts.get(name) or "") for run in (run_a, run_b))
        if first and second and first != second:
            found.append(f"code differs: {name} {first[:12]} -> {second[:12]}")
    packages = [run.facts.get("packages") or {} for run in (run_a, run_b)]
    moved = [
        f"{name} {packages[0][name]} -> {packages[1][name]}"
        for name in sorted(packages[0].keys() & packages[1].keys())
        if packages[0][name] != packages[1][name]
    ]
    return [*found, *([f"packages differ: {', '.join(moved)}"] if moved else [])]


def _engines(run_a: Run, run_b: Run, track: Track, systems: Mapping[str, str]) -> list[str]:
    found = []
    for table, column in _ENGINES.items():
        name = f"{track}-{table}"
        if name not in run_a or name not in run_b:
            continue
        used = [
            set(run[name].filter(pl.col("system").is_in(list(names)))[column].drop_nulls().unique())
            for run, names in ((run_a, systems.keys()), (run_b, systems.values()))
        ]
        if all(used) and used[0] != used[1]:
            found.append(f"{track} {table} are by other engines: {_list(used[0])} -> {_list(used[1])}")
    return found


def _cards(run_a: Run, run_b: Run, systems: Mapping[str, str]) -> list[str]:
    if "systems-cards" not in run_a or "systems-cards" not in run_b:
        return []
    digests: list[dict[str, Any]] = [
        dict(run["systems-cards"].select("system", "execution_digest").iter_rows()) for run in (run_a, run_b)
    ]
    return [
        f"{name} is run otherwise: the execution part of its card differs"
        for name, other in systems.items()
        if name == other and digests[0].get(name) != digests[1].get(other)
    ]


def _list(values: Iterable[Any]) -> str:
    return ", ".join(sorted(map(str, values))) or "none"
