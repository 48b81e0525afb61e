"""The section of a track's page: measures of each type side by side, and each finding of the papers put to the data.

Every sentence is made from the numbers beside it; none is chosen by hand, and where the data cannot tell it says why.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.inputs import SystemInfo, SystemType, Table, TrackTables
from duplex_bench.reporting.papers import PAPERS
from duplex_bench.reporting.system_types.answers import Answer, answers
from duplex_bench.reporting.system_types.claims import CLAIMS, ENDPOINTER, FULL_DUPLEX, TYPE_TITLES, TYPES, Between
from duplex_bench.reporting.system_types.estimates import Estimate, TypeStatistics

_MEASURES: Final = (
    "Mean over the systems of a type of their estimates, each counting alike, with a {level} interval from resampling "
    "whole conversations or scenarios: it holds for these systems, not for others of their type. p: sign flips by "
    "cluster."
)
_FINDINGS: Final = (
    "Agrees or disagrees where the {level} interval leaves zero out and, where there is one, the cluster sign-flip "
    "test has p < {alpha:.2g}; for a correlation the interval alone; for the two addressing forms two one-sided tests "
    "within a margin of {margin:g}. Each finding is put to the data by itself; corrected p is Holm's over the findings "
    "of the track. P1: {P1}. P2: {P2}."
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One metric of both types: an estimate each, and full-duplex minus endpointer-dependent."""

    card: MetricCard
    by_type: tuple[tuple[SystemType, Estimate], ...]
    difference: Estimate


@dataclass(frozen=True, slots=True)
class TypesSection:
    """All of it for one track: ``members`` are the systems by type, ``caution`` says what rows cannot stand for."""

    track: str
    members: tuple[tuple[str, tuple[SystemInfo, ...]], ...]
    compared: tuple[Compared, ...]
    answers: tuple[Answer, ...]
    summary: str
    caution: str
    captions: tuple[str, str]

    def tables(self) -> list[Table]:
        """Both parts as tables, with the numbers that the page rounds."""
        return [_measures_table(self), _answers_table(self)]


def types_section(tables: TrackTables, systems: Sequence[SystemInfo]) -> TypesSection | None:
    """The section of one track, or None where no system has a type."""
    statistics = TypeStatistics(tables, systems)
    if not any(statistics.members.values()):
        return None
    wanted = {metric for claim in CLAIMS if claim.track == tables.track for metric in claim.metrics}
    measured = set(tables.measurements["metric"])
    cards = [card for card in tables.cards if card.id in measured and (card.headline or card.id in wanted)]
    compared = tuple(
        Compared(
            card,
            tuple((kind, statistics.of_type(card.id, kind)) for kind in TYPES),
            statistics.contrast(Between(card.id)),
        )
        for card in cards
    )
    answered = answers(tables, statistics)
    return TypesSection(
        tables.track,
        tuple((TYPE_TITLES[kind], statistics.members[kind]) for kind in TYPES),
        compared,
        answered,
        _summary(answered),
        _caution(statistics.members),
        (
            _MEASURES.format(level=tables.level_text),
            _FINDINGS.format(
                level=tables.level_text, alpha=tables.alpha, margin=tables.analysis.equivalence_margin, **PAPERS
            ),
        ),
    )


def _summary(answers: Sequence[Answer]) -> str:
    counted = {name: sum(one.agreement == name for one in answers) for name in ("agrees", "disagrees", "cannot tell")}
    return (
        f"Of {len(answers)} findings of the papers this run agrees with {counted['agrees']}, disagrees with "
        f"{counted['disagrees']}, and cannot tell for {counted['cannot tell']}."
    )


def _caution(members: dict[SystemType, tuple[SystemInfo, ...]]) -> str:
    told = []
    for kind in TYPES:
        here = [one for one in members[kind] if one.stands_in_for]
        if here:
            share = "all" if len(here) == len(members[kind]) else f"{len(here)} of the {len(members[kind])}"
            told.append(f"{share} {TYPE_TITLES[kind]} systems")
    if not told:
        return ""
    whose = " and ".join(told)
    return (
        f"{whose[0].upper()}{whose[1:]} stand in for others. What a stand-in does says nothing about the system that "
        "it stands in for: an answer below then shows what the benchmark makes of such behaviour, not whether the "
        "papers are right."
    )


def _measures_table(section: TypesSection) -> Table:
    rows = []
    for one in section.compared:
        sides = [(TYPE_TITLES[kind], estimate) for kind, estimate in one.by_type]
        for name, estimate in [*sides, (f"{TYPE_TITLES[FULL_DUPLEX]} minus {TYPE_TITLES[ENDPOINTER]}", one.difference)]:
            rows.append(
                {"metric": one.card.id, "title": one.card.title, "unit": one.card.unit, "system_type": name,
                 "estimate": estimate.value, "low": estimate.low, "high": estimate.high, "p": estimate.p,
                 "n_systems": estimate.n_systems, "n": estimate.n, "n_clusters": estimate.n_clusters,
                 "note": estimate.why or None}
            )  # fmt: skip
    schema = {"metric": pl.String, "title": pl.String, "unit": pl.String, "system_type": pl.String,
              "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64, "n_systems": pl.Int64,
              "n": pl.Int64, "n_clusters": pl.Int64, "note": pl.String}  # fmt: skip
    return Table(
        f"{section.track}-system-types",
        "Measures by type of system",
        section.captions[0],
        pl.DataFrame(rows, schema=schema),
    )


def _answers_table(section: TypesSection) -> Table:
    rows = [
        {"paper": one.claim.paper, "paper_section": one.claim.where, "finding": one.claim.finding,
         "agreement": one.agreement, "in_words": one.sentence, "estimate": one.estimate.value, "low": one.estimate.low,
         "high": one.estimate.high, "p": one.estimate.p, "p_corrected": one.p_corrected,
         "n_systems": one.estimate.n_systems, "n": one.estimate.n, "n_clusters": one.estimate.n_clusters}
        for one in section.answers
    ]  # fmt: skip
    schema = {"paper": pl.String, "paper_section": pl.String, "finding": pl.String, "agreement": pl.String,
              "in_words": pl.String, "estimate": pl.Float64, "low": pl.Float64, "high": pl.Float64, "p": pl.Float64,
              "p_corrected": pl.Float64, "n_systems": pl.Int64, "n": pl.Int64, "n_clusters": pl.Int64}  # fmt: skip
    return Table(
        f"{section.track}-paper-findings",
        "Findings of the papers, and this run",
        f"{section.summary} {section.caution} {section.captions[1]}".replace("  ", " "),
        pl.DataFrame(rows, schema=schema),
    )
