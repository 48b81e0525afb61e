"""Leaderboard cells: the number, its interval drawn on the metric's own scale, n of n, tie letter, or the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.formats import interval, number, tie_letter, unit_suffix
from duplex_bench.reporting.inputs import POOLED, SystemInfo, TrackTables
from duplex_bench.reporting.scales import Scale, Side, scale_of

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One estimate as shown. Positions are per cent of the bar's width; None where nothing is drawn.

    ``off`` says past which end of the bar the estimate lies.
    """

    condition: str
    text: str
    unit: str
    interval: str
    n: str
    partial: bool
    tie: str
    reason: str
    method: str
    sort: float | None
    low: float | None
    high: float | None
    point: float | None
    target: float | None
    quartiles: str
    off: Side


@dataclass(frozen=True, slots=True)
class Board:
    """A table of systems by metrics. ``groups``: heading and rows of (system, cells per metric)."""

    cards: tuple[MetricCard, ...]
    groups: tuple[tuple[str, tuple[tuple[SystemInfo, tuple[tuple[Cell, ...], ...]], ...]], ...]


# Wider tables do not fit a page side by side with their intervals.
_MOST_COLUMNS = 4


def boards(tables: TrackTables, cards: Sequence[MetricCard], systems: Sequence[SystemInfo]) -> list[tuple[str, Board]]:
    """Tables of at most four metrics each, with a heading: metrics of one set of conditions stand together.

    The heading is the condition where the track has metrics of different ones (pause, turn end), else empty.
    """
    rows = tables.statistics.filter(pl.col("condition") != POOLED).group_by("metric").agg(pl.col("condition").unique())
    conditions = {row["metric"]: tuple(sorted(row["condition"])) for row in rows.to_dicts()}
    together: dict[tuple[str, ...], list[MetricCard]] = {}
    for card in cards:
        together.setdefault(conditions.get(card.id, ()), []).append(card)
    found = []
    for names, members in together.items():
        parts = -(-len(members) // _MOST_COLUMNS)
        size = -(-len(members) // parts)
        for start in range(0, len(members), size):
            heading = " and ".join(names) or "not measured in this run"
            part = board(tables, members[start : start + size], systems)
            found.append((heading if len(together) > 1 else "", part))
    return found


def board(
    tables: TrackTables,
    cards: Sequence[MetricCard],
    systems: Sequence[SystemInfo],
    among: Sequence[SystemInfo] | None = None,
) -> Board:
    """Estimates of ``cards`` for every system of the track; a system without a row shows that it has none.

    Args:
        tables: the track.
        cards: columns.
        systems: rows.
        among: all systems of the report, for which the bars' scales are made; without, ``systems``.
    """
    ran = set(tables.rollouts["system"].unique())
    present = set(tables.statistics["system"].unique()) | ran
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in tables.statistics.sort("condition").to_dicts():
        rows.setdefault((row["system"], row["metric"]), []).append(row)
    scales = {card.id: scale_of(tables.statistics, card, systems if among is None else among) for card in cards}
    groups: dict[str, list[tuple[SystemInfo, tuple[tuple[Cell, ...], ...]]]] = {}
    for system in systems:
        found = [rows.get((system.name, card.id), []) for card in cards]
        # A bound is no run: where it is not defined it has no row, and nothing is missing.
        if system.name in present and (any(found) or system.name in ran):
            cells = tuple(_cells(mine, card, scales[card.id]) for mine, card in zip(found, cards, strict=True))
            groups.setdefault(system.group, []).append((system, cells))
    return Board(tuple(cards), tuple((name, tuple(members)) for name, members in groups.items()))


def _cells(rows: list[Row], card: MetricCard, scale: Scale) -> tuple[Cell, ...]:
    single = [row for row in rows if row["condition"] != POOLED]
    return tuple(cell(row, card, scale) for row in single or rows)


def cell(row: Row, card: MetricCard, scale: Scale) -> Cell:
    """One row of STATISTICS as shown, on the scale of its metric."""
    known = row["estimate"] is not None
    return Cell(
        condition=row["condition"],
        text=number(row["estimate"], card.unit),
        unit=unit_suffix(card.unit) if known else "",
        interval=interval(row["low"], row["high"], card.unit) if known else "",
        n=f"{row['n_scored']} of {row['n_expected']}",
        partial=row["n_scored"] != row["n_expected"],
        tie=tie_letter(row["tie_group"]) if known else "",
        reason=row["reason"] or ("" if known else "no reason was stored"),
        method=row["method"] or "",
        sort=row["estimate"],
        low=scale.per_cent(row["low"]) if known else None,
        high=scale.per_cent(row["high"]) if known else None,
        point=scale.per_cent(row["estimate"]),
        target=scale.per_cent(card.target) if card.direction == "target" else None,
        quartiles=interval(row["q1"], row["q3"], card.unit) if row["q1"] is not None else "",
        off=scale.side(row["estimate"]) if known else "",
    )
