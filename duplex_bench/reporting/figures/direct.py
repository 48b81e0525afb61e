"""Names that stand at what they name instead of in a legend: at the end of a line, in a bar, beside a point."""

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_POINTS_PER_INCH: Final = 72.0
# Mean advance of a character of the figures' typeface, as a share of its size.
_ADVANCE: Final = 0.52
_LEAST_SHARE: Final = 0.06
# How far from its point a name may go, in steps of the gap between them, and from where on a line joins them.
_STEPS: Final = (0.5, 1.5, 3, 4.5, 6, 7.5, 9, 10.5, 12, 14)
_NEAR_IN: Final = 0.22
_DARK: Final = "#10161e"


@dataclass(frozen=True, slots=True)
class Part:
    """A kind of segment of stacked bars. ``dark_text``: its colour is light, so that text on it is dark."""

    name: str
    colour: str
    dark_text: bool = False


def wrapped(title: str, width: int) -> str:
    """A title on as many lines as ``width`` characters ask for."""
    return textwrap.fill(title, width)


def text_width_in(text: str, size_pt: float) -> float:
    """About how wide a line of text is, inches."""
    return len(text) * size_pt * _ADVANCE / _POINTS_PER_INCH


def spread(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Places moved apart to at least ``gap``, in their order, within ``low`` and ``high`` where that is possible.

    Args:
        places: wanted places (n,), in any order.
        gap: least distance of two.
        low: least place.
        high: greatest place.

    Returns:
        A place for each, in the order given.
    """
    order = sorted(range(len(places)), key=lambda n: (places[n], n))
    found = [0.0] * len(places)
    at = low - gap
    for n in order:
        at = max(places[n], at + gap, low)
        found[n] = at
    at = high + gap
    for n in reversed(order):
        at = min(found[n], at - gap)
        found[n] = at
    return found


def end_labels(axes: "Axes", ends: Sequence[tuple[float, float, str, str]], height_in: float, size_pt: float) -> None:
    """Write (x, y, name, colour) to the right of each line's end; names that would touch are moved apart.

    Args:
        axes: with its limits set.
        ends: the last point of each line, its name and its colour.
        height_in: about how high the axes are, inches.
        size_pt: of the text.
    """
    low, high = axes.get_ylim()
    gap = 1.15 * size_pt / _POINTS_PER_INCH / height_in * (high - low)
    places = spread([y for _, y, _, _ in ends], gap, low, high)
    for (x, y, name, colour), place in zip(ends, places, strict=True):
        lift = (place - y) / (high - low) * height_in * _POINTS_PER_INCH
        axes.annotate(name, (x, y), xytext=(6, lift), textcoords="offset points", va="center", fontsize=size_pt,
                      color=colour, annotation_clip=False)  # fmt: skip


def stacked_bars(
    axes: "Axes",
    parts: Sequence[Part],
    widths: npt.NDArray[np.float64],
    shown: Callable[[float], str],
    across_in: float,
    size_pt: float = 8.0,
) -> None:
    """Horizontal bars of segments. Each kind of segment is named once, where it is widest.

    Args:
        axes: to draw on.
        parts: kinds, from left to right.
        widths: (rows, kinds).
        shown: a width as text.
        across_in: about how wide the longest bar is, inches.
        size_pt: of the text.
    """
    rows = len(widths)
    span = float(widths.sum(axis=1).max()) or 1.0
    left = np.zeros(rows)
    for place, part in enumerate(parts):
        mine = widths[:, place]
        axes.barh(range(rows), mine, left=left, height=0.66, color=part.colour, label=part.name)
        named = int(np.argmax(mine)) if mine.max() > 0 else -1
        ink = _DARK if part.dark_text else "white"
        for row in range(rows):
            width_in = mine[row] / span * across_in
            middle = float(left[row] + mine[row] / 2)
            value = shown(float(mine[row]))
            text = f"{part.name} {value}" if row == named else value
            if width_in > text_width_in(text, size_pt):
                axes.text(middle, row, text, ha="center", va="center", fontsize=size_pt, color=ink)
                continue
            if row == named:
                axes.annotate(part.name, (middle, row - 0.36), ha="center", va="bottom", fontsize=size_pt - 1.5,
                              annotation_clip=False)  # fmt: skip
            if mine[row] >= _LEAST_SHARE * span:
                axes.text(middle, row, value, ha="center", va="center", fontsize=size_pt, color=ink)
        left += mine
    axes.set_ylim(rows - 0.5, -0.62)


def beside_points(
    axes: "Axes",
    points: Sequence[tuple[float, float, str, str]],
    size_in: tuple[float, float],
    size_pt: float,
) -> None:
    """Write (x, y, name, colour) beside each point where it covers no other point or name, as far as there is room.

    Points that lie on one another share a label of several lines. A name that had to go further away is joined to its
    point by a line.
    """
    together: dict[tuple[float, float], list[tuple[str, str]]] = {}
    for x, y, name, colour in points:
        together.setdefault((round(x, 3), round(y, 3)), []).append((name, colour))
    (left, right), (bottom, top) = axes.get_xlim(), axes.get_ylim()
    scale = (size_in[0] / (right - left), size_in[1] / (top - bottom))
    spots = {place: ((place[0] - left) * scale[0], (place[1] - bottom) * scale[1]) for place in together}
    taken = [(x - 0.07, y - 0.07, x + 0.07, y + 0.07) for x, y in spots.values()]
    for place, names in sorted(together.items()):
        lines = [name for name, _ in names]
        wide = max(text_width_in(line, size_pt) for line in lines)
        tall = 1.2 * size_pt / _POINTS_PER_INCH * len(lines)
        box, align, away = min(
            _around(spots[place], wide, tall),
            key=lambda one: sum(_overlap(one[0], other) for other in taken) + _outside(one[0], size_in) + 0.3 * one[2],
        )
        taken.append(box)
        shift = ((box[0] if align == "left" else box[2] if align == "right" else (box[0] + box[2]) / 2)
                 - spots[place][0], (box[1] + box[3]) / 2 - spots[place][1])  # fmt: skip
        joined = {"arrowstyle": "-", "linewidth": 0.6, "color": names[0][1], "shrinkA": 0, "shrinkB": 3}
        axes.annotate("\n".join(lines), place, xytext=(shift[0] * _POINTS_PER_INCH, shift[1] * _POINTS_PER_INCH),
                      textcoords="offset points", ha=align, va="center", fontsize=size_pt,
                      color=names[0][1] if len(names) == 1 else None, annotation_clip=False,
                      arrowprops=joined if away > _NEAR_IN else None)  # fmt: skip


_Box = tuple[float, float, float, float]


def _around(spot: tuple[float, float], wide: float, tall: float) -> list[tuple[_Box, str, float]]:
    """Boxes for a text around a point, near ones first, each with how the text is aligned in it and how far it is."""
    x, y = spot
    gap = 0.09
    found: list[tuple[_Box, str, float]] = []
    for lift in (0.0, *(sign * (tall / 2 + step * gap) for step in _STEPS for sign in (1, -1))):
        low, high = y + lift - tall / 2, y + lift + tall / 2
        found.append(((x + gap, low, x + gap + wide, high), "left", abs(lift)))
        found.append(((x - gap - wide, low, x - gap, high), "right", abs(lift)))
    middle: list[tuple[_Box, str, float]] = [
        ((x - wide / 2, low, x + wide / 2, low + tall), "center", tall / 2) for low in (y + gap, y - gap - tall)
    ]
    return found + middle


def _overlap(one: _Box, other: _Box) -> float:
    wide = min(one[2], other[2]) - max(one[0], other[0])
    tall = min(one[3], other[3]) - max(one[1], other[1])
    return max(wide, 0.0) * max(tall, 0.0) * 100


def _outside(box: _Box, size_in: tuple[float, float]) -> float:
    over = max(-box[0], 0.0) + max(box[2] - size_in[0], 0.0) + max(-box[1], 0.0) + max(box[3] - size_in[1], 0.0)
    return 4 * over


def whole_numbers(axes: "Axes", *, x: bool = False, y: bool = False) -> None:
    """Ticks at whole numbers alone: counts have no halves."""
    from matplotlib.ticker import MaxNLocator

    if x:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    if y:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=4, integer=True))
