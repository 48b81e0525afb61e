"""Cumulative curves, one row for each system under a shared axis, with the median written at it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from duplex_bench.reporting.figures.direct import wrapped
from duplex_bench.reporting.figures.intervals import PALETTE
from duplex_bench.reporting.figures.log_axis import plain_log_x
from duplex_bench.reporting.formats import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

_PERSON: Final = "#6b7683"
_DASHED: Final = (0, (4, 2))


@dataclass(frozen=True, slots=True)
class Ridge:
    """A column of curves.

    Attributes:
        label: of the axis, with its unit.
        values: of each row, sorted; empty where a row has none.
        of: how many each row's curve is a share of.
        at: where the dashed line stands.
        log: a logarithmic axis; values below ``floor`` are drawn at it.
        floor: the left end of a logarithmic axis, or None.
    """

    label: str
    values: Sequence[Floats]
    of: Sequence[int]
    at: float
    log: bool = False
    floor: float | None = None


def ridges(titles: Sequence[str], columns: Sequence[Ridge]) -> "Figure":
    """Rows of curves that rise to the share of rollouts that have a value."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.4, 0.55 + 0.62 * len(titles)), layout="constrained")
    grid = figure.subplots(len(titles), len(columns), sharex="col", sharey=True, squeeze=False)
    for across, column in enumerate(columns):
        for row, title in enumerate(titles):
            axes = grid[row][across]
            values = column.values[row] if column.floor is None else np.maximum(column.values[row], column.floor)
            if len(values):
                share = np.arange(1, len(values) + 1) / column.of[row]
                axes.step(values, share, where="post", color=PALETTE[0], linewidth=1.4, label=title)
                _median(axes, values, share, column.floor)
            axes.axvline(column.at, color=_PERSON, linewidth=1.0, linestyle=_DASHED)
            axes.set_ylim(0, 1.06)
            axes.set_yticks([0, 1])
            axes.tick_params(axis="y", labelsize=7)
            if across == 0:
                axes.set_ylabel(wrapped(title, 24), rotation=0, ha="right", va="center", fontsize=8)
            if column.log:
                plain_log_x(axes)
        bottom = grid[-1][across]
        if column.floor is not None:
            bottom.set_xlim(left=column.floor)
        bottom.set_xlabel(column.label)
    return figure


def _median(axes: "Axes", values: Floats, share: Floats, floor: float | None) -> None:
    """The value at which half of those that have one are reached, marked and written below the curve."""
    middle = float(np.median(values))
    level = float(share[-1]) / 2
    text = "\N{LESS-THAN OR EQUAL TO} 0" if floor is not None and middle <= floor else number(middle)
    axes.plot([middle], [level], "o", color=PALETTE[0], markersize=3.5)
    axes.annotate(text, (middle, level), xytext=(5, -5), textcoords="offset points", va="center", fontsize=7)
