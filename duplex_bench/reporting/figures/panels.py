"""One small panel for each system with a few named lines: systems that are equal do not hide one another."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from duplex_bench.reporting.figures.direct import end_labels, wrapped
from duplex_bench.reporting.figures.intervals import MARKERS, PALETTE

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_ACROSS: Final = 4
_PANEL_IN: Final = 1.18


@dataclass(frozen=True, slots=True)
class Curve:
    """A line: its points, its name, which colour and mark it has, and whether it is dashed (and then not named)."""

    x: Sequence[float]
    y: Sequence[float]
    name: str
    place: int
    dashed: bool = False


def system_panels(
    panels: Sequence[tuple[str, Sequence[Curve]]],
    *,
    x_label: str,
    y_label: str,
    ticks: tuple[Sequence[float], Sequence[str]] | None = None,
) -> "Figure":
    """A figure of panels that share both axes; the vertical one holds shares, 0 to 1.

    Args:
        panels: title and curves of each.
        x_label: name of the horizontal axis, with its unit.
        y_label: name of the vertical axis.
        ticks: places and names on the horizontal axis.
    """
    from matplotlib.figure import Figure

    across = min(len(panels), _MOST_ACROSS)
    down = -(-len(panels) // across)
    named = max((len(curve.name) for _, curves in panels for curve in curves), default=0)
    width = 1.35 + 0.055 * named
    figure = Figure(figsize=(width * across + 0.6, (_PANEL_IN + 0.55) * down + 0.35), layout="constrained")
    grid = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    values = [value for _, curves in panels for curve in curves for value in curve.x]
    margin = 0.06 * ((max(values) - min(values)) or 1.0)
    for place, axes in enumerate(grid.flat):
        if place >= len(panels):
            axes.set_visible(False)
            continue
        title, curves = panels[place]
        axes.set_ylim(-0.05, 1.05)
        axes.set_xlim(min(values) - margin, max(values) + margin)
        for curve in curves:
            # Of two lines in one place the first is seen on both sides of the second.
            axes.plot(curve.x, curve.y, color=PALETTE[curve.place % 6], marker=MARKERS[curve.place % 6],
                      markersize=4 - 0.6 * curve.place, linewidth=max(2.4 - 0.8 * curve.place, 0.8),
                      markerfacecolor="none" if curve.dashed else PALETTE[curve.place % 6],
                      linestyle=(0, (4, 2)) if curve.dashed else "-", label=curve.name)  # fmt: skip
        ends = _ends(curves)
        end_labels(axes, ends, _PANEL_IN, 7.0)
        axes.set_title(wrapped(title, max(18, round(width * 12))), fontsize=8)
        axes.set_yticks([0, 0.5, 1])
        if ticks is not None:
            axes.set_xticks(*ticks)
        # The last panel of each column carries the axis: below it there may be none.
        last = place + across >= len(panels)
        axes.tick_params(labelbottom=last, labelsize=7.5)
        if last:
            axes.set_xlabel(x_label, fontsize=8)
    for row in grid:
        row[0].set_ylabel(y_label, fontsize=8)
    return figure


def _ends(curves: Sequence[Curve]) -> list[tuple[float, float, str, str]]:
    """Where each name stands: at the end of its line, of the dashed one where there is no other."""
    full = {curve.name for curve in curves if not curve.dashed}
    return [
        (curve.x[-1], curve.y[-1], curve.name, PALETTE[curve.place % 6])
        for curve in curves
        if len(curve.x) and (not curve.dashed or curve.name not in full)
    ]
