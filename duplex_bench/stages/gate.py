"""A run against a baseline, by interval: which metric of which system holds, and why the others do not."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.outcome import SCORED_OUTCOMES
from duplex_bench.reporting.formats import interval, number
from duplex_bench.reporting.inputs import ADDRESSING, POOLED
from duplex_bench.reporting.run_tables import TRACKS, Run
from duplex_bench.stages import scoring
from duplex_bench.stages.comparability import notice
from duplex_bench.stages.compare_runs import SystemsCompared, compare_systems, statistics_of
from duplex_bench.stages.gate_rules import GateRules, MetricRule, Policy

Status = Literal["passed", "failed", "reported"]
# Bounds are sums of floats: one that is the margin must not fail by the last digit.
_SLACK: Final = 1e-9
NO_MARGIN: Final = "no margin is set"
_HELD: Final = {
    "non_inferiority": "not worse by more than the margin",
    "equivalence": "the same within the margin",
    "no_regression": "not shown to be worse by more than the margin",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """One thing that was checked: ``check`` is a metric with its condition, or what else was looked at."""

    track: str
    system: str
    check: str
    status: Status
    reason: str
    difference: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Gated:
    """A run against its baseline; differences are the run minus the baseline."""

    run: Run
    baseline: Run
    verdicts: tuple[Verdict, ...]

    @property
    def passed(self) -> bool:
        """Whether nothing failed and something was gated at all."""
        return self.count("failed") == 0 and self.count("passed") > 0

    def count(self, status: Status) -> int:
        """Verdicts of a status."""
        return sum(verdict.status == status for verdict in self.verdicts)


def gate(run: Run, baseline: Run, rules: GateRules, systems: Sequence[str] = ()) -> Gated:
    """Check a run against a baseline.

    Every system of the baseline is looked for: what the run lacks fails or is reported by rule, and is never passed
    over. A metric is gated on both addressing forms together where both were run, else in each condition.

    Args:
        run: what is checked.
        baseline: what it is held against.
        rules: margins and policies.
        systems: which systems of the baseline; none takes all.

    Raises:
        ValueError: a metric or system that the rules or options name is unknown, or the baseline has no scores.
    """
    _check_names(baseline, rules, systems)
    verdicts: list[Verdict] = []
    matched: dict[str, str] = {}
    tracks: list[Track] = []
    for track in TRACKS:
        there = run.systems(track)
        for system in baseline.systems(track):
            if systems and system not in systems:
                continue
            if system not in there:
                reason = "the baseline has scores of it, the run has none"
                verdicts.append(Verdict(track, system, "present", _by(rules.missing_systems), reason))
                continue
            matched[system] = system
            tracks += [] if track in tracks else [track]
            verdicts += _system(run, baseline, track, system, rules)
        for system in there:
            if system not in baseline.systems(track) and (not systems or system in systems):
                verdicts.append(Verdict(track, system, "present", "reported", "the baseline has no scores of it"))
    differs = notice(baseline, run, tracks, matched, ("the baseline", "the run"))
    if differs:
        verdicts.append(Verdict("all", "all", "made alike", _by(rules.differing), "; ".join(differs)))
    if not any(verdict.status != "reported" for verdict in verdicts):
        reason = "no metric was gated: give a margin, or a baseline of the same systems"
        verdicts.append(Verdict("all", "all", "gated", "failed", reason))
    return Gated(run, baseline, tuple(verdicts))


def _check_names(baseline: Run, rules: GateRules, systems: Sequence[str]) -> None:
    known = {card.id for track in TRACKS for card in scoring.metric_cards(track)}
    unknown = sorted(set(rules.margins) - known)
    if unknown:
        raise ValueError(
            f"the gate has a margin for {unknown[0]}, which is no metric: there are {', '.join(sorted(known))}"
        )
    there = {name for track in TRACKS for name in baseline.systems(track)}
    if not there:
        raise ValueError(f"the baseline {baseline.path} has no scores: name another run or bundle")
    lacking = [name for name in systems if name not in there]
    if lacking:
        raise ValueError(f"the baseline has no system {lacking[0]!r}: there are {', '.join(sorted(there))}")


def _by(policy: Policy) -> Status:
    return "failed" if policy == "fail" else "reported"


def _system(run: Run, baseline: Run, track: Track, system: str, rules: GateRules) -> Iterator[Verdict]:
    cards = [card for card in scoring.metric_cards(track) if card.headline or card.id in rules.margins]
    found = compare_systems(run, baseline, track, system, system, cards, statistics_of(baseline))
    yield from _coverage(run, baseline, track, system, found, rules)
    old = baseline[f"{track}-measurements"].filter(pl.col("system") == system)
    rows = {(row["metric"], row["condition"]): row for row in found.pairs}
    for card in cards:
        mine = old.filter(pl.col("metric") == card.id)
        for condition, values in _conditions(track, mine):
            # A metric of two versions has one row, which stands for every condition.
            row = rows.get((card.id, condition)) or rows.get((card.id, POOLED))
            yield _metric(track, system, card, condition, values, row, rules)


def _conditions(track: Track, rows: pl.DataFrame) -> Iterator[tuple[str, pl.DataFrame]]:
    """Conditions in which the baseline has a metric, and its values there."""
    values = {
        condition: rows.filter((pl.col("condition") == condition) & pl.col("value").is_not_null())
        for condition in sorted(rows["condition"].unique())
    }
    if track == "multiparty" and set(ADDRESSING) <= set(values):
        yield POOLED, pl.concat([values.pop(condition) for condition in ADDRESSING])
    yield from values.items()


def _coverage(
    run: Run, baseline: Run, track: Track, system: str, found: SystemsCompared, rules: GateRules
) -> Iterator[Verdict]:
    old, new = (_scored(one, track, system) for one in (baseline, run))
    if old is None or new is None:
        untold = "the baseline" if old is None else "the run"
        yield Verdict(track, system, "items scored", "reported", f"{untold} has no table of its rollouts")
    else:
        kept = len(old & new)
        yield _covered(track, system, "items scored", kept, len(old), "scored items", rules)
    shared = found.shared
    total = shared.windows + shared.only_b + shared.other_stimulus + shared.other_bounds
    yield _covered(track, system, "windows shared", shared.windows, total, "windows", rules, shared.notes)


def _covered(
    track: Track, system: str, check: str, kept: int, total: int, what: str, rules: GateRules, notes: Sequence[str] = ()
) -> Verdict:
    enough = total > 0 and kept >= rules.min_coverage * total - _SLACK
    reason = f"{kept} of the baseline's {total} {what} are there, at least {100 * rules.min_coverage:g} % are needed"
    more = "".join(f"; {note}" for note in notes)
    return Verdict(track, system, check, "passed" if enough else "failed", reason + more)


def _scored(run: Run, track: Track, system: str) -> set[tuple[str, str]] | None:
    """Items with their stimulus of which the first repeat was scored; None where the run does not tell."""
    name = f"{track}-rollouts"
    if name not in run:
        return None
    rows = run[name].filter(
        (pl.col("system") == system)
        & (pl.col("repeat") == 0)
        & pl.col("outcome").is_in([str(outcome) for outcome in SCORED_OUTCOMES])
    )
    return set(rows.select("item_id", "stimulus_digest").iter_rows())


def _metric(
    track: Track,
    system: str,
    card: MetricCard,
    condition: str,
    before: pl.DataFrame,
    row: Mapping[str, Any] | None,
    rules: GateRules,
) -> Verdict:
    check = f"{card.id} ({condition})"
    rule = rules.margins.get(card.id)
    if rule is None and card.statistic == "rate" and rules.rate_margin is not None:
        rule = MetricRule(margin=rules.rate_margin)
    told = _numbers(row)
    if rule is None:
        return Verdict(track, system, check, "reported", f"{NO_MARGIN}, so it is not gated{_seen(row)}", **told)
    n_before, n_clusters = before.height, before["cluster"].n_unique()
    if n_before == 0:
        return Verdict(track, system, check, "reported", "the baseline has no value to hold the run against")
    if n_before < card.minimum_n or n_clusters < 2:
        reason = (
            f"the baseline has too few values: {n_before} in {n_clusters} clusters, {card.minimum_n} in 2 are needed"
        )
        return Verdict(track, system, check, _by(rules.too_few), reason, **told)
    if row is None:
        return Verdict(track, system, check, "failed", "the run shares no window with the baseline")
    if row["n_pairs"] == 0 and row["reason"]:
        return Verdict(track, system, check, "failed", f"cannot be judged: {row['reason']}")
    if row["n_pairs"] < rules.min_shared * n_before - _SLACK:
        reason = (
            f"cannot be judged: the run has a value beside {row['n_pairs']} of the baseline's {n_before}, at least "
            f"{100 * rules.min_shared:g} % are needed"
        )
        return Verdict(track, system, check, "failed", reason, **told)
    if row["method"] is None or row["difference"] is None:
        why = row["reason"] or "no interval"
        return Verdict(track, system, check, "failed", f"cannot be judged: {why}", **told)
    low, high = row["low"], row["high"]
    if not row["spread"]:
        # The change itself is held against the margin, and the answer says what that is worth.
        low = high = row["difference"]
        told |= {"low": None, "high": None}
    status, reason = decide(card, rule, rules, low, high)
    return Verdict(track, system, check, status, f"{reason}{_seen(row)}", **told)


def decide(card: MetricCard, rule: MetricRule, rules: GateRules, low: float, high: float) -> tuple[Status, str]:
    """What the interval of a change [low, high] (run minus baseline) says about a metric under its margin.

    Metrics whose best value is a target, or that have no better or worse, are tested for equivalence.

    Raises:
        ValueError: ``low`` is above ``high``, or either is no number.
    """
    if not low <= high:
        raise ValueError(f"{card.id}: [{low}, {high}] is no interval")
    margin = rule.margin
    test = rule.test or rules.test
    if card.direction in {"target", "none"}:
        test = "equivalence"
    # Upwards is better from here on.
    worst, best = (-high, -low) if card.direction == "lower" else (low, high)
    if test == "equivalence":
        holds = -margin - _SLACK <= low and high <= margin + _SLACK
        beyond = low > margin + _SLACK or high < -margin - _SLACK
        what = "changed by more than the margin"
    else:
        holds = worst >= -margin - _SLACK if test == "non_inferiority" else best >= -margin - _SLACK
        beyond = best < -margin - _SLACK
        what = "worse by more than the margin"
    at = f"margin {number(margin)}"
    if holds:
        return "passed", f"{_HELD[test]} ({at})"
    if beyond:
        return "failed", f"{what} ({at})"
    worse = " and is worse than the baseline" if test != "equivalence" and best < -_SLACK else ""
    return _by(rules.not_shown), (
        f"not shown to be {_HELD[test].removeprefix('not shown to be ')}: the interval reaches past it{worse} ({at}); "
        "more items or a wider margin would tell"
    )


def _numbers(row: Mapping[str, Any] | None) -> dict[str, float | None]:
    return {name: None if row is None else row[name] for name in ("difference", "low", "high")}


def _seen(row: Mapping[str, Any] | None) -> str:
    if row is None or row["difference"] is None:
        return ""
    seen = f": {number(row['value_b'])} -> {number(row['value_a'])}, change {number(row['difference'], signed=True)}"
    counted = f"{row['n_pairs']} windows in {row['n_clusters']} clusters"
    if row["n_differ"] == 0:
        return f"{seen}, none of the {counted} moved: so they came out, which says nothing about others"
    if row["spread"] is False:
        return f"{seen} alike in all {counted}: no interval, since nothing tells how others would come out"
    if row["low"] is None:
        return f"{seen}, {counted}"
    return f"{seen} {interval(row['low'], row['high'], signed=True)}, {counted}"
