"""Two runs, release bundles or reports: the same systems on the windows they share, and whether that is fair."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import polars as pl
from pydantic import TypeAdapter

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.formats import interval, number, p_value, unit_suffix
from duplex_bench.reporting.inputs import POOLED
from duplex_bench.reporting.run_tables import TRACKS, Run, load_run
from duplex_bench.stages import scoring
from duplex_bench.stages.comparability import Shared, differing_versions, notice, shared_windows
from duplex_bench.stages.compare import EXAMPLES_SCHEMA, PAIRED_SCHEMA, paired
from duplex_bench.stages.profile import StatisticsSettings

SIDES: Final = ("A", "B")
# Between the path of a run and the name of one of its systems.
OF: Final = "::"
RUN_PAIRS_SCHEMA = {"system_a": pl.String, "system_b": pl.String, **PAIRED_SCHEMA}
RUN_EXAMPLES_SCHEMA = {"system_a": pl.String, "system_b": pl.String, **EXAMPLES_SCHEMA}


@dataclass(frozen=True, slots=True)
class ComparedRuns:
    """Two runs side by side; differences are A minus B.

    Attributes:
        run_a: the first.
        run_b: the second.
        pairs: as ``compare.PAIRED_SCHEMA``, by pair of systems; ``better`` is A or B.
        examples: as ``compare.EXAMPLES_SCHEMA``, by pair of systems.
        differs: settings, code, engines and cards that differ (``comparability.notice``), and windows left out.
        only_a: systems that only the first has, with their track.
        only_b: systems that only the second has.
        level: of the intervals.
    """

    run_a: Run
    run_b: Run
    pairs: pl.DataFrame
    examples: pl.DataFrame
    differs: tuple[str, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    level: float

    @property
    def notice(self) -> str:
        """Whether the two may be compared number by number, in one sentence."""
        if not self.differs:
            return "Comparable: settings, code, engines and cards are the same as far as they are told."
        return f"Compare with care: {'; '.join(self.differs)}."


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison as the command line names it: a path, and perhaps one system of it."""

    path: Path
    system: str | None


def is_path(told: str) -> bool:
    """Whether ``told`` names a run (a path, perhaps with ``::system``) and no system of the current one."""
    return OF in told or "/" in told or "\\" in told or told in {".", ".."} or Path(told).exists()


def side_of(told: str) -> Side:
    """The path and system that ``told`` names."""
    path, _, system = told.partition(OF)
    return Side(Path(path), system or None)


def compare_runs(
    side_a: Side,
    side_b: Side,
    *,
    profiles: tuple[str | None, str | None] = (None, None),
    metrics: Sequence[str] = (),
    systems: Sequence[str] = (),
    n_examples: int = 5,
) -> ComparedRuns:
    """Compare two runs on the windows they share.

    Args:
        side_a: the first run; with a system, only that one is compared.
        side_b: the second; differences are the first minus the second.
        profiles: whose tables, where a data folder holds those of several.
        metrics: ids of metric cards; none takes the headline metrics.
        systems: which systems; none takes all that both have.
        n_examples: windows listed by metric and condition.

    Raises:
        ValueError: a run, system or metric that is not there, or nothing shared.
    """
    run_a, run_b = load_run(side_a.path, profiles[0]), load_run(side_b.path, profiles[1])
    settings = statistics_of(run_a)
    tracks: list[Track] = []
    pairs: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    differs: list[str] = []
    compared: dict[str, str] = {}
    for track in TRACKS:
        matched = _matched(run_a, run_b, track, side_a.system, side_b.system, systems)
        cards = _cards(track, metrics)
        if not matched or not cards:
            continue
        tracks.append(track)
        compared |= matched
        for system_a, system_b in matched.items():
            found = compare_systems(run_a, run_b, track, system_a, system_b, cards, settings, n_examples)
            pairs += found.pairs
            examples += found.examples
            differs += [f"{track} {system_a}: {note}" for note in found.shared.notes]
    _require(run_a, run_b, tracks, metrics, (*systems, *filter(None, (side_a.system, side_b.system))))
    return ComparedRuns(
        run_a=run_a,
        run_b=run_b,
        pairs=pl.DataFrame(pairs, schema=RUN_PAIRS_SCHEMA),
        examples=pl.DataFrame(examples, schema=RUN_EXAMPLES_SCHEMA),
        differs=(*notice(run_a, run_b, tracks, compared), *differs),
        only_a=_alone(run_a, run_b),
        only_b=_alone(run_b, run_a),
        level=settings.level,
    )


@dataclass(frozen=True, slots=True)
class SystemsCompared:
    """One pair of systems on a track: rows of ``RUN_PAIRS_SCHEMA`` and ``RUN_EXAMPLES_SCHEMA``, and what is shared."""

    pairs: list[dict[str, Any]]
    examples: list[dict[str, Any]]
    shared: Shared


def compare_systems(
    run_a: Run,
    run_b: Run,
    track: Track,
    system_a: str,
    system_b: str,
    cards: Sequence[MetricCard],
    settings: StatisticsSettings,
    n_examples: int = 0,
) -> SystemsCompared:
    """Compare a system of either run; metrics that other versions scored get a reason instead of a number."""
    shared = shared_windows(run_a, run_b, track, system_a, system_b)
    apart = differing_versions(shared.a, shared.b)
    both = [
        rows.with_columns(pl.lit(side).alias("system")) for rows, side in zip((shared.a, shared.b), SIDES, strict=True)
    ]
    alike = [rows.filter(~pl.col("metric").is_in(list(apart))) for rows in both]
    names = {"system_a": system_a, "system_b": system_b}
    found, examples = paired(track, alike, SIDES, cards, settings, n_examples, (system_a, system_b))
    rows = [{**names, **row} for row in found]
    for card in cards:
        if card.id in apart:
            empty: dict[str, Any] = dict.fromkeys(PAIRED_SCHEMA)
            told = {
                "track": track, "metric": card.id, "title": card.title, "unit": card.unit, "condition": POOLED,
                "n_pairs": 0, "n_clusters": 0,
                "reason": f"{apart[card.id]} of the metric: not comparable, rescore one of them",
            }  # fmt: skip
            rows.append({**names, **empty, **told})
    return SystemsCompared(rows, [{**names, **row} for row in examples], shared)


def statistics_of(run: Run) -> StatisticsSettings:
    """Level and resamples that a run tells, else the defaults."""
    if run.settings is None:
        return StatisticsSettings()
    return TypeAdapter(StatisticsSettings).validate_python(run.settings.get("statistics", {}))


def quote(row: Mapping[str, Any], found: ComparedRuns) -> str:
    """One line that can be quoted: what was compared, the difference with interval, n, test, and the two runs."""
    unit = unit_suffix(row["unit"])
    systems = row["system_a"] if row["system_a"] == row["system_b"] else f"{row['system_a']} and {row['system_b']}"
    where = f"{row['title']} ({row['track']}, {row['condition']}), {systems}, A minus B"
    runs = f"A: {found.run_a.title}, B: {found.run_b.title}"
    if row["difference"] is None or row["method"] is None:
        return f"{where}: {row['reason']}; {runs}"
    bounds = "" if row["low"] is None else f" {interval(row['low'], row['high'], signed=True)}"
    return (
        f"{where}: {number(row['difference'], signed=True)}{unit}{bounds} "
        f"({row['method']}; {row['n_pairs']} windows in {row['n_clusters']} clusters; "
        f"sign-flip p {p_value(row['p_sign_flip'])}, not corrected); {runs}"
    )


def _matched(
    run_a: Run, run_b: Run, track: Track, system_a: str | None, system_b: str | None, wanted: Sequence[str]
) -> dict[str, str]:
    there_a, there_b = run_a.systems(track), run_b.systems(track)
    if system_a is not None or system_b is not None:
        first, second = system_a or system_b or "", system_b or system_a or ""
        return {first: second} if first in there_a and second in there_b else {}
    both = [name for name in there_a if name in there_b]
    return {name: name for name in both if not wanted or name in wanted}


def _cards(track: Track, metrics: Sequence[str]) -> list[MetricCard]:
    return [card for card in scoring.metric_cards(track) if (card.id in metrics if metrics else card.headline)]


def _require(run_a: Run, run_b: Run, tracks: Sequence[Track], metrics: Sequence[str], systems: Sequence[str]) -> None:
    known = {card.id for track in TRACKS for card in scoring.metric_cards(track)}
    unknown = [metric for metric in metrics if metric not in known]
    if unknown:
        raise ValueError(f"no metric {unknown[0]}: there are {', '.join(sorted(known))}")
    there = [{name for track in TRACKS for name in run.systems(track)} for run in (run_a, run_b)]
    for name in systems:
        if name not in there[0] | there[1]:
            raise ValueError(f"no system {name!r} in either run: there are {', '.join(sorted(there[0] | there[1]))}")
    if not tracks:
        told = [f"{run.path} has {', '.join(sorted(names)) or 'no scores'}" for run, names in
                zip((run_a, run_b), there, strict=True)]  # fmt: skip
        raise ValueError(f"nothing to compare: no system of one track is in both ({'; '.join(told)})")


def _alone(run: Run, other: Run) -> tuple[str, ...]:
    return tuple(
        f"{track} {name}" for track in TRACKS for name in run.systems(track) if name not in other.systems(track)
    )
