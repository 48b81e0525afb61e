"""Estimates with intervals: one panel per metric, one row per system, one mark per condition."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.formats import number
from duplex_bench.reporting.inputs import SystemInfo

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, with a marker each, so that colour is never the only difference.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P")


def dot_intervals(statistics: pl.DataFrame, cards: Sequence[MetricCard], systems: Sequence[SystemInfo]) -> "Figure":
    """Dot plot of estimates.

    Args:
        statistics: schema STATISTICS, without pooled rows.
        cards: one panel each, at most four to a row.
        systems: rows, first on top.
    """
    from matplotlib.figure import Figure

    across = min(len(cards), 4)
    down = -(-len(cards) // across)
    conditions = sorted(statistics.filter(pl.col("metric").is_in([card.id for card in cards]))["condition"].unique())
    lines = max(_per_metric(statistics, card) for card in cards)
    height = 0.55 + len(systems) * (0.24 + 0.13 * lines)
    figure = Figure(figsize=(2.1 * across + 1.6, height * down + 0.25), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(cards):
            axes.set_visible(False)
            continue
        _panel(axes, statistics.filter(pl.col("metric") == cards[place].id), cards[place], systems, conditions)
    for row in grid:
        row[0].set_yticks(range(len(systems)), [system.title for system in systems])
        row[0].set_ylim(len(systems) - 0.45, -0.55)
    if lines > 1:
        _legend(figure, conditions)
    return figure


def _per_metric(statistics: pl.DataFrame, card: MetricCard) -> int:
    return max(statistics.filter(pl.col("metric") == card.id)["condition"].n_unique(), 1)


def _panel(
    axes: "Axes", rows: pl.DataFrame, card: MetricCard, systems: Sequence[SystemInfo], conditions: Sequence[str]
) -> None:
    mine = [name for name in conditions if name in set(rows["condition"])]
    for place, system in enumerate(systems):
        for line, condition in enumerate(mine):
            found = rows.filter((pl.col("system") == system.name) & (pl.col("condition") == condition))
            y = place + (line - (len(mine) - 1) / 2) * 0.28
            style = conditions.index(condition) % len(PALETTE) if len(mine) > 1 else 0
            row = found.row(0, named=True) if found.height else None
            if row is None or row["estimate"] is None:
                if line == 0:
                    axes.annotate("not scored", (0.02, place), xycoords=("axes fraction", "data"), va="center",
                                  fontsize=7.5, alpha=0.7)  # fmt: skip
                continue
            bounded = row["low"] is not None and row["high"] is not None
            if bounded:
                axes.plot([row["low"], row["high"]], [y, y], color=PALETTE[style], solid_capstyle="butt", linewidth=1.6)
            axes.plot([row["estimate"]], [y], MARKERS[style], color=PALETTE[style], markersize=4.5,
                      markerfacecolor=PALETTE[style] if bounded else "none",
                      label=condition.replace("_", " ") if len(mine) > 1 else None)  # fmt: skip
    axes.set_title(card.title)
    arrow = {"higher": "higher is better", "lower": "lower is better", "none": ""}.get(card.direction, "")
    if card.direction == "target" and card.target is not None:
        axes.axvline(card.target, linestyle=(0, (4, 3)), linewidth=0.9, color="#7a8694")
        arrow = f"target {number(card.target)}"
    unit = card.unit if card.unit in {"s", "ms", "words"} else ""
    axes.set_xlabel(", ".join(part for part in (unit, arrow) if part))
    axes.grid(visible=False, axis="y")
    if card.statistic == "rate":
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])


def _legend(figure: "Figure", conditions: Sequence[str]) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=PALETTE[i % 6], marker=MARKERS[i % 6], markersize=4.5, label=name.replace("_", " "))
        for i, name in enumerate(conditions)
    ]
    figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), fontsize=8.5)
