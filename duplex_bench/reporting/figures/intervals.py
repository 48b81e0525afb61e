"""Estimates with intervals: one panel per metric, one row per system, one mark per condition."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.figures.direct import wrapped
from duplex_bench.reporting.formats import number
from duplex_bench.reporting.inputs import SystemInfo
from duplex_bench.reporting.scales import Scale, Side, scale_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, with a marker each, so that colour is never the only difference.
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "D", "^", "v", "P")
_MOST_ACROSS = 4


def dot_intervals(statistics: pl.DataFrame, cards: Sequence[MetricCard], systems: Sequence[SystemInfo]) -> "Figure":
    """Dot plot of estimates. Systems without any estimate of these metrics have no row.

    Args:
        statistics: schema STATISTICS, without pooled rows.
        cards: one panel each, at most four to a row.
        systems: rows, first on top.
    """
    from matplotlib.figure import Figure

    mine = statistics.filter(pl.col("metric").is_in([card.id for card in cards]))
    known = set(mine.filter(pl.col("estimate").is_not_null())["system"])
    systems = [system for system in systems if system.name in known]
    down = -(-len(cards) // _MOST_ACROSS)
    across = -(-len(cards) // down)
    conditions = sorted(mine["condition"].unique())
    lines = max(_per_metric(statistics, card) for card in cards)
    height = 0.7 + len(systems) * (0.24 + 0.13 * lines)
    figure = Figure(figsize=(2.1 * across + 1.6, height * down + 0.1), layout="constrained")
    grid = figure.subplots(down, across, sharey=True, squeeze=False)
    for place, axes in enumerate(grid.flat):
        if place >= len(cards):
            axes.set_visible(False)
            continue
        card = cards[place]
        scale = scale_of(statistics, card, systems)
        _panel(axes, statistics.filter(pl.col("metric") == card.id), card, scale, systems, conditions)
        if lines > 1 and (place % across == across - 1 or place == len(cards) - 1):
            _name_conditions(axes, len(systems), conditions)
    for row in grid:
        row[0].set_yticks(range(len(systems)), [wrapped(system.title, 32) for system in systems])
        row[0].set_ylim(len(systems) - 0.45, -0.55)
    return figure


def _per_metric(statistics: pl.DataFrame, card: MetricCard) -> int:
    return max(statistics.filter(pl.col("metric") == card.id)["condition"].n_unique(), 1)


def _offset(line: int, lines: int) -> float:
    return (line - (lines - 1) / 2) * 0.28


def _panel(
    axes: "Axes",
    rows: pl.DataFrame,
    card: MetricCard,
    scale: Scale,
    systems: Sequence[SystemInfo],
    conditions: Sequence[str],
) -> None:
    mine = [name for name in conditions if name in set(rows["condition"])]
    for place, system in enumerate(systems):
        for line, condition in enumerate(mine):
            found = rows.filter((pl.col("system") == system.name) & (pl.col("condition") == condition))
            y = place + _offset(line, len(mine))
            colour = PALETTE[conditions.index(condition) % len(PALETTE) if len(mine) > 1 else 0]
            marker = MARKERS[conditions.index(condition) % len(MARKERS) if len(mine) > 1 else 0]
            row = found.row(0, named=True) if found.height else None
            if row is None or row["estimate"] is None:
                if line == 0:
                    axes.annotate("not scored", (0.02, place), xycoords=("axes fraction", "data"), va="center",
                                  fontsize=7.5, alpha=0.7)  # fmt: skip
                continue
            side = scale.side(row["estimate"])
            if side:
                off_scale(axes, row["estimate"], y, side, colour, card.unit)
                continue
            bounded = row["low"] is not None and row["high"] is not None
            if bounded:
                axes.plot([row["low"], row["high"]], [y, y], color=colour, solid_capstyle="butt", linewidth=1.6)
            axes.plot([row["estimate"]], [y], marker, color=colour, markersize=4.5,
                      markerfacecolor=colour if bounded else "none",
                      label=condition.replace("_", " ") if len(mine) > 1 else None)  # fmt: skip
    axes.set_title(wrapped(card.title, 24))
    arrow = {"higher": "higher is better", "lower": "lower is better", "none": ""}.get(card.direction, "")
    if card.direction == "target" and card.target is not None:
        axes.axvline(card.target, linestyle=(0, (4, 3)), linewidth=0.9, color="#7a8694")
        arrow = f"target {number(card.target)}"
    unit = {"s": "seconds", "ms": "milliseconds", "words": "words"}.get(card.unit, "")
    axes.set_xlabel(", ".join(part for part in (unit, arrow) if part))
    axes.grid(visible=False, axis="y")
    if card.statistic == "rate":
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    else:
        axes.set_xlim(scale.low, scale.high)


def off_scale(axes: "Axes", value: float, y: float, side: Side, colour: str, unit: str = "") -> None:
    """An arrow at the edge and the value beside it: the scale is made for what was evaluated, not for a rule."""
    left = side == "left"
    text = f"\N{LEFTWARDS ARROW} {number(value, unit)}" if left else f"{number(value, unit)} \N{RIGHTWARDS ARROW}"
    axes.annotate(text, (0.09 if left else 0.9, y), xycoords=("axes fraction", "data"), va="center",
                  ha="left" if left else "right", fontsize=7.5, color=colour)  # fmt: skip


def _name_conditions(axes: "Axes", rows: int, conditions: Sequence[str]) -> None:
    """Write the condition of each mark at the right edge of its row."""
    for place in range(rows):
        for line, condition in enumerate(conditions):
            axes.annotate(condition.replace("_", " "), (1.03, place + _offset(line, len(conditions))),
                          xycoords=("axes fraction", "data"), va="center", fontsize=7,
                          color=PALETTE[line % len(PALETTE)], annotation_clip=False)  # fmt: skip
