"""Figures of the conversation track: when words land at pauses, the plane of both decisions, turn-end distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from duplex_bench.reporting.figures.endpointers import endpointer_curves
from duplex_bench.reporting.figures.intervals import MARKERS, PALETTE
from duplex_bench.reporting.figures.log_axis import plain_log_x
from duplex_bench.reporting.figures.multiparty import Sketch
from duplex_bench.reporting.figures.pause_point import pause_point, turn_end_quartiles
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.conversation_recall import KINDS, by_history

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DASHES: Final = ("-", (0, (4, 2)))
# Where non-positive latencies are drawn on a log axis (P2 figure 8: at the left edge).
_LEFT_EDGE_S: Final = 0.05


def conversation_sketches(tables: TrackTables, systems: Sequence[SystemInfo]) -> list[Sketch]:
    """The figures that this run's data allow; none for another track."""
    if tables.track != "conversation" or not tables.measurements.height:
        return []
    found = [
        pause_point(tables, systems),
        _first_words(tables, systems),
        _plane(tables, systems),
        endpointer_curves(tables, systems),
        turn_end_quartiles(tables, systems),
        _turn_ends(tables, systems),
        _recall(tables, systems),
    ]
    return [sketch for sketch in found if sketch is not None]


def _values(tables: TrackTables, metric: str, system: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    mine = tables.measurements.filter(
        (pl.col("metric") == metric) & (pl.col("system") == system) & pl.col("value").is_not_null()
    )
    return np.sort(mine["value"].to_numpy()).astype(np.float64)


def _ink(place: int) -> dict[str, object]:
    return {"color": PALETTE[place % len(PALETTE)], "linestyle": _DASHES[place // len(PALETTE) % 2], "linewidth": 1.3}


def _steps(axes: "Axes", values: "np.ndarray[tuple[int], np.dtype[np.float64]]", of: int, place: int, title: str,
           floor: float | None = None) -> None:  # fmt: skip
    """A cumulative curve of ``values`` that rises to their share of ``of`` rollouts."""
    x = values if floor is None else np.maximum(values, floor)
    axes.step(x, np.arange(1, len(x) + 1) / of, where="post", label=title, **_ink(place))  # type: ignore[arg-type]


def _scored(tables: TrackTables, metric: str, system: str) -> int:
    mine = tables.measurements.filter((pl.col("metric") == metric) & (pl.col("system") == system))
    return mine.height - mine["value"].null_count()


def _legend(figure: "Figure") -> None:
    drawn: dict[str, Artist] = {}
    for axes in figure.axes:
        lines, names = axes.get_legend_handles_labels()
        drawn.update(zip(names, lines, strict=True))
    figure.legend(list(drawn.values()), list(drawn), loc="outside upper center", ncols=3, fontsize=8)


def _first_words(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    shown = [one for one in systems if len(_values(tables, "first_word_from_pause_end", one.name))]
    if not shown:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 3.0), layout="constrained")
        axes = figure.subplots()
        for place, system in enumerate(shown):
            values = _values(tables, "first_word_from_pause_end", system.name)
            _steps(axes, values, _scored(tables, "pause_takeover", system.name), place, system.title)
        axes.axvline(0.0, color="#6b7683", linewidth=1.0, linestyle=(0, (4, 2)))
        axes.set_ylim(0, 1.03)
        axes.set_xlabel("first words after the pause end (s)")
        axes.set_ylabel("share of pauses")
        _legend(figure)
        return figure

    n = sum(len(_values(tables, "first_word_from_pause_end", one.name)) for one in shown)
    return Sketch(
        "conversation-first-words",
        "When first words land at pauses",
        f"n = {n} rollouts with words, as shares of all scored pauses of a system. Left of the dashed line the person "
        "had not resumed yet. A curve that ends below 1 leaves the pauses at which a system said nothing.",
        make,
    )


def _plane(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    known = {
        (row["system"], row["metric"]): row["estimate"]
        for row in tables.statistics.filter(pl.col("metric").is_in(["pause_takeover", "response_rate"])).to_dicts()
    }
    shown = [(one, known.get((one.name, "pause_takeover")), known.get((one.name, "response_rate"))) for one in systems]
    points = [(one, x, y) for one, x, y in shown if x is not None and y is not None]
    if not points:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(4.4, 4.2), layout="constrained")
        axes = figure.subplots()
        for place, (system, x, y) in enumerate(points):
            axes.plot([x], [y], linestyle="none", marker=MARKERS[place % len(MARKERS)], markersize=7,
                      color=PALETTE[place % len(PALETTE)], label=system.title, clip_on=False)  # fmt: skip
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.03)
        axes.set_xlabel("takeover rate at pauses")
        axes.set_ylabel("response rate at turn ends")
        _legend(figure)
        return figure

    return Sketch(
        "conversation-takeover-and-response",
        "Two decisions in one plane",
        f"n = {len(points)} systems with both. The person stands at the top left: silent at every pause, a reply at "
        "every turn end. A system on the diagonal answers pauses and turn ends alike.",
        make,
    )


def _turn_ends(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    shown = [one for one in systems if len(_values(tables, "turn_end_latency", one.name))]
    if not shown:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.4, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for place, system in enumerate(shown):
            latency = _values(tables, "turn_end_latency", system.name)
            _steps(left, latency, len(latency), place, system.title, floor=_LEFT_EDGE_S)
            ratio = _values(tables, "duration_ratio", system.name)
            if len(ratio):
                _steps(right, ratio, len(ratio), place, system.title)
        right.axvline(1.0, color="#6b7683", linewidth=1.0, linestyle=(0, (4, 2)))
        for axes, name in ((left, "latency to the first word (s)"), (right, "duration to the person's")):
            plain_log_x(axes)
            axes.set_xlabel(name)
        left.set_xlim(left=_LEFT_EDGE_S)
        left.set_ylim(0, 1.03)
        left.set_ylabel("share of rollouts")
        _legend(figure)
        return figure

    n = sum(len(_values(tables, "turn_end_latency", one.name)) for one in shown)
    return Sketch(
        "conversation-turn-end-distributions",
        "Turn ends: latency and length",
        f"n = {n} rollouts with words, cumulative, log axes. Words under way at the turn end are drawn at the left "
        "edge; dashed: the person's own length. Rollouts without words are in no curve: their share is in the table of "
        "exceptional outcomes.",
        make,
    )


def _recall(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = by_history(tables).frame.drop_nulls("judged")
    kinds = [kind for kind in KINDS if kind in set(rows["kind"])]
    if not kinds:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(0.8 + 3.3 * len(kinds), 3.0), layout="constrained")
        grid = figure.subplots(1, len(kinds), sharey=True, squeeze=False).flatten()
        for axes, kind in zip(grid, kinds, strict=True):
            for place, system in enumerate(systems):
                mine = rows.filter((pl.col("kind") == kind) & (pl.col("system") == system.name))
                if mine.height:
                    axes.plot(mine["history_s"].to_list(), mine["judged"].to_list(), label=system.title, markersize=4,
                              marker=MARKERS[place % len(MARKERS)], **_ink(place))  # fmt: skip
            axes.set_title(kind.replace("_", " "))
            axes.set_ylim(-0.03, 1.03)
            axes.set_xticks(sorted(rows["history_s"].unique().to_list()))
            axes.set_xlabel("history (s)")
        grid[0].set_ylabel("share recalled")
        _legend(figure)
        return figure

    return Sketch(
        "conversation-recall",
        "Recall by history length",
        f"n = {rows['n_points'].sum()} rollouts. Intervals and the strict matcher's shares are in the table.",
        make,
    )
