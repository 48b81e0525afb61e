"""The interactive form of a figure, as plotly reads it: made from the drawing, so that both show the same."""

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

Spec = dict[str, Any]

_PX_PER_INCH: Final = 115
_POINTS_PER_INCH: Final = 72
_SYMBOLS: Final = {
    "o": "circle", "s": "square", "D": "diamond", "^": "triangle-up", "v": "triangle-down", "P": "cross",
}  # fmt: skip
_UPRIGHT: Final = {"top": "top", "bottom": "bottom", "center": "middle"}
# Enough to tell apart what a screen can show.
_DIGITS: Final = 5


def interactive(figure: "Figure") -> Spec:
    """A drawn figure as data and layout of plotly.

    Lines, markers, steps, bars, points, reference lines, texts and axes are taken over with their colours and names;
    the colour of ink and grid is left to the page, which has two themes. Points whose axis has named places say the
    name. There is no legend: names stand where the drawing has them, and in what is told on hovering.

    Args:
        figure: already drawn once (saved), so that positions and tick labels are settled.

    Returns:
        ``data`` (traces), ``layout`` and ``height_px``; JSON without NaN.
    """
    traces: list[Spec] = []
    layout: Spec = {"annotations": [], "shapes": [], "barmode": "overlay", "bargap": 0, "showlegend": False}
    shown = [axes for axes in figure.axes if axes.get_visible()]
    for number, axes in enumerate(shown, start=1):
        suffix = "" if number == 1 else str(number)
        box = axes.get_position()
        layout[f"xaxis{suffix}"] = _axis(axes.xaxis, axes.get_xlim(), axes.get_xscale(), axes.get_xlabel(),
                                         (box.x0, box.x1), f"y{suffix}")  # fmt: skip
        # Names of rows are written level, which plotly's titles of axes are not.
        level = axes.get_ylabel() if axes.yaxis.label.get_rotation() == 0 else ""
        upright = "" if level else axes.get_ylabel()
        layout[f"yaxis{suffix}"] = _axis(axes.yaxis, axes.get_ylim(), axes.get_yscale(), upright, (box.y0, box.y1),
                                         f"x{suffix}")  # fmt: skip
        if level:
            layout["annotations"].append(
                {"text": _plain(level), "xref": "paper", "yref": f"y{suffix} domain", "x": box.x0, "y": 0.5,
                 "xshift": -24, "xanchor": "right", "align": "right", "showarrow": False, "font": {"size": 11}}
            )  # fmt: skip
        traces += [{**trace, "xaxis": f"x{suffix}", "yaxis": f"y{suffix}"} for trace in _traces(axes)]
        layout["shapes"] += _reference_lines(axes, suffix)
        layout["annotations"] += _texts(axes, suffix)
        title = axes.get_title(loc="left") or axes.get_title()
        if title:
            layout["annotations"].append(
                {"text": _plain(title), "xref": "paper", "yref": "paper", "x": box.x0, "y": box.y1, "yanchor": "bottom",
                 "xanchor": "left", "align": "left", "showarrow": False, "font": {"size": 12}}
            )  # fmt: skip
    for text, axis in ((figure.get_supxlabel(), "x"), (figure.get_supylabel(), "y")):
        if text:
            key = f"{axis}axis" + (str(len(shown)) if axis == "x" and len(shown) > 1 else "")
            layout[key]["title"] = {"text": _plain(text)}
    return {"data": traces, "layout": layout, "height_px": round(figure.get_figheight() * _PX_PER_INCH) + 80}


def _axis(axis: "Axis", limits: tuple[float, float], scale: str, label: str, domain: tuple[float, float],
          anchor: str) -> Spec:  # fmt: skip
    from matplotlib.ticker import FixedLocator, MaxNLocator

    ends = np.log10(np.maximum(limits, 1e-12)) if scale == "log" else np.asarray(limits)
    found: Spec = {
        "domain": _numbers(np.clip(domain, 0.0, 1.0)),
        "anchor": anchor,
        "type": "log" if scale == "log" else "linear",
        "range": _numbers(ends),
        "zeroline": False,
        "title": {"text": _plain(label)},
    }
    if scale == "log":
        found["dtick"] = "D2"  # labels at 1, 2 and 5 of each decade
    places, names = _named(axis)
    labels = [tick for tick in axis.get_ticklabels() if tick.get_visible() and tick.get_text()]
    if places:
        found |= {"tickvals": places, "ticktext": names}
    elif isinstance(axis.get_major_locator(), FixedLocator):
        found["tickvals"] = _numbers(axis.get_majorticklocs())
    elif isinstance(axis.get_major_locator(), MaxNLocator) and scale != "log":
        ticks = axis.get_majorticklocs()
        if len(ticks) > 1:
            found["dtick"] = _numbers([ticks[1] - ticks[0]])[0]
    if not labels:
        found["showticklabels"] = False
    return found


def _named(axis: "Axis") -> tuple[list[float], list[str]]:
    """Places of an axis whose ticks are names, and the names; none for a numeric axis."""
    from matplotlib.ticker import FixedFormatter, FuncFormatter

    formatter = axis.get_major_formatter()
    if not isinstance(formatter, FixedFormatter | FuncFormatter):
        return [], []
    named = [(float(place), label.get_text()) for place, label in zip(axis.get_ticklocs(), axis.get_ticklabels(),
                                                                      strict=False)]  # fmt: skip
    if all(_number(text) is not None for _, text in named if text):
        return [], []
    return [place for place, _ in named], [_plain(text) for _, text in named]


def _number(text: str) -> float | None:
    try:
        return float(text.replace("\N{MINUS SIGN}", "-"))
    except ValueError:
        return None


def _traces(axes: "Axes") -> list[Spec]:
    from matplotlib.collections import LineCollection, PathCollection
    from matplotlib.container import BarContainer

    rows, names = _named(axes.yaxis)
    bars = [one for one in axes.containers if isinstance(one, BarContainer) and len(one)]
    found = [_bars(container, rows, names) for container in bars]
    for collection in axes.collections:
        if isinstance(collection, LineCollection):
            x: list[float | None] = []
            y: list[float | None] = []
            for segment in collection.get_segments():
                x += [*_numbers(segment[:, 0]), None]
                y += [*_numbers(segment[:, 1]), None]
            colours = collection.get_colors()
            stroke = {"color": _hex(colours[0] if len(colours) else "#6b7683"), "width": 1.4}
            found.append({"type": "scatter", "mode": "lines", "x": x, "y": y, "hoverinfo": "skip", "line": stroke})
        elif isinstance(collection, PathCollection):
            points = np.asarray(collection.get_offsets(), dtype=np.float64)
            found.append({"type": "scatter", "mode": "markers", "x": _numbers(points[:, 0]),
                          "y": _numbers(points[:, 1]), "name": _name(collection.get_label()),
                          "marker": {"color": _hex(collection.get_facecolor()[0]), "size": 7}})  # fmt: skip
    found += [trace for line in axes.lines for trace in [_line(axes, line, rows, names)] if trace is not None]
    return found


def _line(axes: "Axes", line: "Line2D", rows: list[float], names: list[str]) -> Spec | None:
    if line.get_transform() != axes.transData:
        return None
    x, y = (np.asarray(values, dtype=np.float64) for values in line.get_data())
    marker, style = str(line.get_marker()), line.get_linestyle()
    marked, drawn = marker in _SYMBOLS, style not in ("None", "", " ")
    if not len(x) or not (marked or drawn):
        return None
    colour = _hex(line.get_color())
    if line.get_alpha() is not None:
        colour = f"rgba({', '.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))}, {line.get_alpha()})"
    trace: Spec = {
        "type": "scatter",
        "mode": "+".join(name for name, wanted in (("lines", drawn), ("markers", marked)) if wanted),
        "x": _numbers(x),
        "y": _numbers(y),
        "name": _name(line.get_label()),
        "hovertemplate": "%{x:.3~g}, %{y:.3~g}<extra>%{fullData.name}</extra>",
    }
    if drawn:
        stepped = str(line.get_drawstyle()) == "steps-post"
        trace["line"] = {
            "color": colour,
            "width": round(1.4 * float(line.get_linewidth()), 2),
            "dash": "solid" if style == "-" else "dash",
            "shape": "hv" if stepped else "linear",
        }
    if marked:
        hollow = line.get_markerfacecolor() == "none"
        trace["marker"] = {"color": colour, "size": 8, "symbol": _SYMBOLS[marker] + ("-open" if hollow else "")}
    if rows:
        trace["text"] = [_row(value, rows, names) for value in y]
        trace["hovertemplate"] = "%{text}: %{x:.3~g}<extra></extra>"
    return trace


def _bars(container: Any, rows: list[float], names: list[str]) -> Spec:
    patches = list(container)
    across = container.orientation == "horizontal"
    along = [patch.get_width() if across else patch.get_height() for patch in patches]
    base = [patch.get_x() if across else patch.get_y() for patch in patches]
    thick = [patch.get_height() if across else patch.get_width() for patch in patches]
    middle = [(patch.get_y() if across else patch.get_x()) + size / 2 for patch, size in zip(patches, thick,
                                                                                            strict=True)]  # fmt: skip
    trace: Spec = {
        "type": "bar",
        "orientation": "h" if across else "v",
        "base": _numbers(base),
        "width": _numbers(thick),
        "x": _numbers(along if across else middle),
        "y": _numbers(middle if across else along),
        "name": _name(container.get_label()),
        "marker": {"color": _hex(patches[0].get_facecolor())},
        # Plotly adds base to the length on hover: what is told is the length of the bar itself.
        "customdata": _numbers(along),
    }
    if across and rows:
        trace["text"] = [_row(value, rows, names) for value in middle]
        trace["textposition"] = "none"
        trace["hovertemplate"] = "%{text}: %{customdata:.3~g}<extra>%{fullData.name}</extra>"
    else:
        trace["hovertemplate"] = "%{customdata:.3~g}<extra>%{fullData.name}</extra>"
    return trace


def _row(value: float, rows: list[float], names: list[str]) -> str:
    return names[int(np.argmin(np.abs(np.asarray(rows) - value)))]


def _reference_lines(axes: "Axes", suffix: str) -> list[Spec]:
    """Lines that cross the whole panel (``axvline``, ``axhline``), and shaded stretches (``axvspan``)."""
    from matplotlib.patches import Rectangle

    bars = {id(bar) for container in axes.containers for bar in container}
    spans = [one for one in axes.patches if isinstance(one, Rectangle) and id(one) not in bars]
    found: list[Spec] = [
        {"type": "rect", "xref": f"x{suffix}", "yref": f"y{suffix} domain", "x0": one.get_x(), "y0": 0, "y1": 1,
         "x1": one.get_x() + one.get_width(), "fillcolor": _hex(one.get_facecolor()), "layer": "below",
         "opacity": one.get_alpha() or 1.0, "line": {"width": 0}}
        for one in spans
    ]  # fmt: skip
    for line in axes.lines:
        upright, level = axes.get_xaxis_transform(), axes.get_yaxis_transform()
        if line.get_transform() not in (upright, level):
            continue
        x, y = (_numbers(np.asarray(values, dtype=np.float64)) for values in line.get_data())
        across = line.get_transform() == level
        found.append(
            {"type": "line", "xref": f"x{suffix} domain" if across else f"x{suffix}",
             "yref": f"y{suffix}" if across else f"y{suffix} domain", "x0": x[0], "x1": x[-1], "y0": y[0], "y1": y[-1],
             "line": {"color": _hex(line.get_color()), "width": 1.1,
                      "dash": "solid" if line.get_linestyle() == "-" else "dash"}}
        )  # fmt: skip
    return found


def _texts(axes: "Axes", suffix: str) -> list[Spec]:
    from matplotlib import rcParams
    from matplotlib.text import Annotation

    found: list[Spec] = []
    for text in axes.texts:
        if not text.get_text():
            continue
        x, y = text.get_position()
        xref = f"x{suffix}"
        shift = (0.0, 0.0)
        if isinstance(text, Annotation):
            x, y = text.xy
            if text.get_anncoords() == "offset points":
                shift = (text.xyann[0] * 100 / _POINTS_PER_INCH, text.xyann[1] * 100 / _POINTS_PER_INCH)
            if isinstance(text.xycoords, tuple) and text.xycoords[0] == "axes fraction":
                xref = f"x{suffix} domain"
        # On a logarithmic axis plotly wants the logarithm of an annotation's place.
        if xref == f"x{suffix}" and axes.get_xscale() == "log":
            x = np.log10(max(float(x), 1e-12))
        font: Spec = {"size": 10}
        colour = _hex(text.get_color())
        # The figure's ink is left to the page; on a coloured bar, or as the name of a line, a colour stays.
        if colour != _hex(rcParams["text.color"]):
            font["color"] = colour
        found.append(
            {"text": _plain(text.get_text()), "x": float(x), "y": float(y), "xref": xref, "yref": f"y{suffix}",
             "showarrow": False, "font": font, "xanchor": text.get_horizontalalignment(), "xshift": round(shift[0], 1),
             "yshift": round(shift[1], 1), "yanchor": _UPRIGHT.get(text.get_verticalalignment(), "middle")}
        )  # fmt: skip
    return found


def _name(label: object) -> str:
    text = str(label)
    return "" if text.startswith("_") else _plain(text)


def _plain(text: str) -> str:
    """Text as it is: plotly reads some of HTML in names."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\n", "<br>")


def _hex(colour: Any) -> str:
    from matplotlib.colors import to_hex

    return str(to_hex(colour))


def _numbers(values: "npt.ArrayLike") -> list[float | None]:
    """Rounded to what can be seen; what is not finite is a gap."""
    array = np.asarray(values, dtype=np.float64)
    return [float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None for value in array]
