"""Leaderboard cells: the number, its interval drawn on the metric's own scale, n of n, tie letter, or the reason."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.formats import interval, number, tie_letter, unit_suffix
from duplex_bench.reporting.inputs import POOLED, SystemInfo, TrackTables

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One estimate as shown. Positions are per cent of the bar's width; None where nothing is drawn."""

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


def board(tables: TrackTables, cards: Sequence[MetricCard], systems: Sequence[SystemInfo]) -> Board:
    """Estimates of ``cards`` for every system of the track; a system without a row shows that it has none."""
    ran = set(tables.rollouts["system"].unique())
    present = set(tables.statistics["system"].unique()) | ran
    rows: dict[tuple[str, str], list[Row]] = {}
    for row in tables.statistics.sort("condition").to_dicts():
        rows.setdefault((row["system"], row["metric"]), []).append(row)
    scales = {card.id: _scale(tables.statistics, card) for card in cards}
    groups: dict[str, list[tuple[SystemInfo, tuple[tuple[Cell, ...], ...]]]] = {}
    for system in systems:
        found = [rows.get((system.name, card.id), []) for card in cards]
        # A bound is no run: where it is not defined it has no row, and nothing is missing.
        if system.name in present and (any(found) or system.name in ran):
            cells = tuple(_cells(mine, card, scales[card.id]) for mine, card in zip(found, cards, strict=True))
            group = system.group_of_track.get(tables.track, system.group)
            groups.setdefault(group, []).append((system, cells))
    return Board(tuple(cards), tuple((name, tuple(members)) for name, members in groups.items()))


def _cells(rows: list[Row], card: MetricCard, scale: tuple[float, float]) -> tuple[Cell, ...]:
    single = [row for row in rows if row["condition"] != POOLED]
    return tuple(cell(row, card, scale) for row in single or rows)


def cell(row: Row, card: MetricCard, scale: tuple[float, float]) -> Cell:
    """One row of STATISTICS as shown; ``scale`` is the (left, right) end of the metric's bar."""

    def position(value: float | None) -> float | None:
        if value is None or value != value:
            return None
        return round(100.0 * min(max((value - scale[0]) / (scale[1] - scale[0]), 0.0), 1.0), 2)

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
        low=position(row["low"]) if known else None,
        high=position(row["high"]) if known else None,
        point=position(row["estimate"]),
        target=position(card.target) if card.direction == "target" else None,
        quartiles=interval(row["q1"], row["q3"], card.unit) if row["q1"] is not None else "",
    )


def _scale(statistics: pl.DataFrame, card: MetricCard) -> tuple[float, float]:
    """0 to 1 for rates; else from the least to the greatest bound of any system, with a margin, and the target."""
    if card.statistic == "rate":
        return 0.0, 1.0
    rows = statistics.filter(pl.col("metric") == card.id)
    values = [v for name in ("estimate", "low", "high") for v in rows[name].to_list() if v is not None and v == v]
    if card.target is not None:
        values.append(card.target)
    if not values:
        return 0.0, 1.0
    low, high = min([*values, 0.0]), max(values)
    margin = 0.06 * (high - low) or 0.5
    return low - (margin if low < 0 else 0.0), high + margin
