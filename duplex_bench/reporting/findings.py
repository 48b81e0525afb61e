"""What a reader asks first: which system is best at what, is the difference real, and where to hear it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.comparisons import SIGN_FLIP
from duplex_bench.reporting.formats import interval, number, p_value, unit_suffix
from duplex_bench.reporting.inputs import CLUSTERS, POOLED, ReportInputs, TrackTables

# A headline metric as what a reader wants a system to be good at; others go by their title.
_PLAIN: Final[Mapping[str, str]] = {
    "fresh_onset_response": "starting to answer when asked",
    "answer_accuracy": "answering correctly",
    "silence_preservation": "keeping silent when not addressed",
    "answering_window_yield": "stopping when a person answers",
    "pause_silent": "keeping silent at a pause",
    "pause_takeover": "not taking the floor in a pause",
    "response_rate": "replying when the turn is over",
    "duration_ratio": "speaking as long as the person did",
    "word_ratio": "using as many words as the person did",
    "token_f1": "using the words the person used",
    "cosine": "meaning what the person meant",
    "recall_correct": "recalling what was said",
}


@dataclass(frozen=True, slots=True)
class Example:
    """One scored window to listen to."""

    item_id: str
    system: str
    at_s: float
    value: float
    measurement_id: str


@dataclass(frozen=True, slots=True)
class Finding:
    """The best evaluated system on one headline metric and condition, and whether it stands apart from the next.

    ``sentence`` is the quotable line and begins with ``lead``; ``separable`` is None when the pair was not compared.
    ``verdict`` says it in two or three words, ``question`` what the metric asks of a system, ``best_is`` who is best,
    ``shown`` the estimate with its interval. ``fails`` is a failing window of the best system, or where it has none of
    the next that has one; references last.
    """

    metric: MetricCard
    condition: str
    question: str
    best_is: str
    shown: str
    best: str
    runner_up: str | None
    separable: bool | None
    verdict: str
    lead: str
    sentence: str
    succeeds: Example | None
    fails: Example | None


def findings(inputs: ReportInputs, tables: TrackTables) -> list[Finding]:
    """One finding per headline metric with a direction, and condition with an estimate. References are never best."""
    found = []
    for card in tables.headline_cards:
        if card.direction == "none":
            continue
        rows = tables.statistics.filter(
            (pl.col("metric") == card.id) & (pl.col("condition") != POOLED) & pl.col("estimate").is_not_null()
        )
        for condition in sorted(rows["condition"].unique()):
            finding = _finding(inputs, tables, card, condition, rows.filter(pl.col("condition") == condition))
            if finding is not None:
                found.append(finding)
    return found


def badness(card: MetricCard, value: float) -> float:
    """How far from good a value lies: smaller is better, whatever the metric's direction."""
    if card.direction == "target":
        return abs(value - (card.target or 0.0))
    return value if card.direction == "lower" else -value


def examples(
    tables: TrackTables, card: MetricCard, system: str, *, condition: str | None = None, worst: bool, limit: int
) -> list[Example]:
    """Scored windows of one system to listen to: the worst or the best first, ties by measurement id.

    For a rate only windows that fail (or pass) are given, so that there may be none.
    """
    rows = tables.measurements.filter(
        (pl.col("metric") == card.id) & (pl.col("system") == system) & pl.col("value").is_not_null()
    )
    if condition is not None:
        rows = rows.filter(pl.col("condition") == condition)
    if card.statistic == "rate":
        bad_value = 1.0 if card.direction == "lower" else 0.0
        rows = rows.filter((pl.col("value") == bad_value) == worst)
    value = pl.col("value")
    # As ``badness``, over all rows at once: a metric of a paper-size run has tens of thousands for each system.
    bad = (value - (card.target or 0.0)).abs() if card.direction == "target" else value
    bad = bad if card.direction in {"target", "lower"} else -bad
    ranked = rows.sort(-bad if worst else bad, "measurement_id").head(limit)
    return [Example(**row) for row in ranked.select("item_id", "system", "at_s", "value", "measurement_id").to_dicts()]


def _finding(
    inputs: ReportInputs, tables: TrackTables, card: MetricCard, condition: str, rows: pl.DataFrame
) -> Finding | None:
    candidates = [row for row in rows.to_dicts() if not inputs.system(row["system"]).reference]
    if not candidates:
        return None
    ranked = sorted(candidates, key=lambda row: (badness(card, row["estimate"]), row["system"]))
    best = ranked[0]
    equal = [row for row in ranked if row["estimate"] == best["estimate"]]
    # The next is the first that is not as good.
    runner_up = next((row for row in ranked if row["estimate"] != best["estimate"]), None)
    title = _best_is(inputs, card, equal)
    unit_name = CLUSTERS[tables.track]
    unit = unit_suffix(card.unit)
    shown = f"{number(best['estimate'], card.unit)}{unit} {interval(best['low'], best['high'], card.unit)}"
    where = "" if _one_condition(tables, card) else f", {condition}"
    lead = f"{card.title}{where}: {title} {shown}"
    sentence = f"{lead}, {best['n_scored']} of {best['n_expected']} windows scored, {best['n_clusters']} {unit_name}"
    separable: bool | None = None
    verdict = "not compared"
    if len(equal) == len(ranked) > 1:
        verdict = "all alike"
        sentence += "; no system stands out."
    elif runner_up is not None:
        comparison = _comparison(tables, card.id, condition, best["system"], runner_up["system"])
        other = inputs.system(runner_up["system"]).title
        if comparison is None:
            sentence += f"; not compared with {other}: too few shared windows."
        else:
            sign = 1.0 if comparison["system_a"] == best["system"] else -1.0
            p = comparison["p_corrected"]
            separable = _told_apart(tables, card, comparison, best, runner_up)
            verdict = "separable" if separable else "not separable"
            sentence += (
                f"; {verdict} from the next, {other} "
                f"(difference {number(sign * comparison['difference'], card.unit, signed=True)}{unit} "
                f"{_turned(comparison, sign, card.unit)}, corrected p {p_value(p)}, "
                f"{comparison['n_pairs']} pairs)."
            )
            if not separable:
                sentence += _what_it_takes(tables, comparison, card, unit)
                if _out_of_reach(tables, comparison):
                    verdict = f"too few {unit_name} to tell"
    else:
        sentence += "."
    good = examples(tables, card, best["system"], condition=condition, worst=False, limit=1)
    others = [row["system"] for row in ranked[1:]]
    others += sorted(row["system"] for row in rows.to_dicts() if inputs.system(row["system"]).reference)
    bad = next(
        (found for system in (best["system"], *others)
         for found in [examples(tables, card, system, condition=condition, worst=True, limit=1)] if found), []
    )  # fmt: skip
    return Finding(
        metric=card,
        condition=condition,
        question=f"{_PLAIN.get(card.id, card.title)}{where}",
        best_is=title,
        shown=shown,
        best=best["system"],
        runner_up=None if runner_up is None else runner_up["system"],
        separable=separable,
        verdict=verdict,
        lead=lead,
        sentence=sentence,
        succeeds=good[0] if good else None,
        fails=bad[0] if bad else None,
    )


def _best_is(inputs: ReportInputs, card: MetricCard, equal: list[dict[str, Any]]) -> str:
    """Who is best: one system, several alike, or none where a rate is as bad as it can be."""
    worst = {"higher": 0.0, "lower": 1.0}.get(card.direction)
    if card.statistic == "rate" and equal[0]["estimate"] == worst:
        return "no system"
    return inputs.system(equal[0]["system"]).title if len(equal) == 1 else f"{len(equal)} systems alike"


def _told_apart(
    tables: TrackTables, card: MetricCard, comparison: dict[str, Any], best: dict[str, Any], other: dict[str, Any]
) -> bool:
    """Whether the headline test sets the two apart; under a target they must also lie at distances that differ."""
    p = comparison["p_corrected"]
    if p is None or not p < tables.alpha:
        return False
    return card.direction != "target" or best["tie_group"] != other["tie_group"]


def _turned(comparison: dict[str, Any], sign: float, unit: str) -> str:
    """The interval of a difference as text, from the other system's side where ``sign`` is -1."""
    low, high = comparison["low"], comparison["high"]
    if low is None or high is None:
        return "without an interval, since every cluster differs alike"
    low, high = sorted((sign * low, sign * high))
    return interval(low, high, unit, signed=True)


def _what_it_takes(tables: TrackTables, comparison: dict[str, Any], card: MetricCard, unit: str) -> str:
    if _out_of_reach(tables, comparison):
        return f" With {comparison['n_clusters']} {CLUSTERS[tables.track]} no pair of systems can be told apart here."
    least = comparison["minimum_detectable"]
    if not least:
        return ""
    return f" A difference of {number(least, card.unit)}{unit} would be found with 80 % power."


def _out_of_reach(tables: TrackTables, comparison: dict[str, Any]) -> bool:
    """Whether even the smallest p that sign flips of so few clusters can give fails after Holm's correction."""
    family = tables.comparisons.filter(
        (pl.col("metric") == comparison["metric"])
        & (pl.col("condition") == comparison["condition"])
        & (pl.col("test") == SIGN_FLIP)
    ).height
    return bool(family * 2.0 ** (1 - comparison["n_clusters"]) >= tables.alpha)


def _one_condition(tables: TrackTables, card: MetricCard) -> bool:
    shown = tables.statistics.filter((pl.col("metric") == card.id) & (pl.col("condition") != POOLED))
    return shown["condition"].n_unique() < 2


def _comparison(tables: TrackTables, metric: str, condition: str, one: str, other: str) -> dict[str, Any] | None:
    rows = tables.comparisons.filter(
        (pl.col("metric") == metric)
        & (pl.col("condition") == condition)
        & (pl.col("test") == SIGN_FLIP)
        & pl.col("difference").is_not_null()
        & pl.col("system_a").is_in([one, other])
        & pl.col("system_b").is_in([one, other])
    )
    return rows.row(0, named=True) if rows.height else None
