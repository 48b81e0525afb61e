"""Figures of the conversation track: when words land at pauses, the plane of both decisions, turn-end distributions."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from duplex_bench.reporting.figures.direct import beside_points
from duplex_bench.reporting.figures.endpointers import endpointer_curves
from duplex_bench.reporting.figures.intervals import MARKERS, PALETTE
from duplex_bench.reporting.figures.multiparty import Sketch
from duplex_bench.reporting.figures.panels import Curve, system_panels
from duplex_bench.reporting.figures.pause_point import pause_point, turn_end_quartiles
from duplex_bench.reporting.figures.ridges import Ridge, ridges
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.conversation_recall import KINDS, by_history

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KIND_NAMES: Final = {KINDS[0]: "conversation", KINDS[1]: "general fact"}
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


def _scored(tables: TrackTables, metric: str, system: str) -> int:
    mine = tables.measurements.filter((pl.col("metric") == metric) & (pl.col("system") == system))
    return mine.height - mine["value"].null_count()


def _first_words(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    shown = [one for one in systems if len(_values(tables, "first_word_from_pause_end", one.name))]
    if not shown:
        return None

    def make() -> "Figure":
        values = [_values(tables, "first_word_from_pause_end", one.name) for one in shown]
        scored = [_scored(tables, "pause_takeover", one.name) for one in shown]
        return ridges(
            [one.title for one in shown], [Ridge("first words after the pause end (s)", values, scored, at=0.0)]
        )

    n = sum(len(_values(tables, "first_word_from_pause_end", one.name)) for one in shown)
    return Sketch(
        "conversation-first-words",
        "When first words land at pauses",
        f"n = {n} rollouts with words, as cumulative shares of all scored pauses of a system; dots: medians. Left of "
        "the dashed line the person had not resumed yet. A curve that ends below 1 leaves the pauses at which a system "
        "said nothing.",
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

        size = (6.2, 4.4)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        axes.set_xlim(-0.03, 1.03)
        axes.set_ylim(-0.03, 1.06)
        for place, (system, x, y) in enumerate(points):
            # After six the marks go on with other colours.
            mark = MARKERS[(place + place // len(MARKERS)) % len(MARKERS)]
            axes.plot([x], [y], linestyle="none", marker=mark, markersize=7, color=PALETTE[place % len(PALETTE)],
                      label=system.title, clip_on=False)  # fmt: skip
        named = [(x, y, one.title, PALETTE[place % len(PALETTE)]) for place, (one, x, y) in enumerate(points)]
        beside_points(axes, named, (size[0] - 0.7, size[1] - 0.6), 8.0)
        axes.plot([0, 1], [0, 1], color="#6b7683", linewidth=0.8, linestyle=(0, (2, 3)))
        axes.set_xlabel("takeover rate at pauses")
        axes.set_ylabel("response rate at turn ends")
        return figure

    return Sketch(
        "conversation-takeover-and-response",
        "Two decisions in one plane",
        f"n = {len(points)} systems with both. The person stands at the top left: silent at every pause, a reply at "
        "every turn end. A system on the dotted diagonal answers pauses and turn ends alike.",
        make,
    )


def _turn_ends(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    shown = [one for one in systems if len(_values(tables, "turn_end_latency", one.name))]
    if not shown:
        return None

    def make() -> "Figure":
        latency = [_values(tables, "turn_end_latency", one.name) for one in shown]
        ratio = [_values(tables, "duration_ratio", one.name) for one in shown]
        return ridges(
            [one.title for one in shown],
            [
                Ridge("latency to the first word (s)", latency, list(map(len, latency)), 0.0, True, _LEFT_EDGE_S),
                Ridge("duration to the person's (ratio)", ratio, list(map(len, ratio)), 1.0, log=True),
            ],
        )

    n = sum(len(_values(tables, "turn_end_latency", one.name)) for one in shown)
    return Sketch(
        "conversation-turn-end-distributions",
        "Turn ends: latency and length",
        f"n = {n} rollouts with words, cumulative shares, log axes; dots: medians. Words under way at the turn end are "
        "drawn at the left edge; dashed: the person's own length. Rollouts without words are in no curve: their share "
        "is in the table of exceptional outcomes.",
        make,
    )


def _recall(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = by_history(tables).frame.drop_nulls("judged")
    if not rows.height:
        return None

    def make() -> "Figure":
        panels = []
        for system in systems:
            curves = []
            for place, kind in enumerate(KINDS):
                mine = rows.filter((pl.col("kind") == kind) & (pl.col("system") == system.name)).sort("history_s")
                if mine.height:
                    curves.append(
                        Curve(mine["history_s"].to_list(), mine["judged"].to_list(), _KIND_NAMES[kind], place)
                    )
            if curves:
                panels.append((system.title, curves))
        lengths = sorted(rows["history_s"].unique().to_list())
        return system_panels(panels, x_label="history (s)", y_label="share recalled",
                             ticks=(lengths, [f"{length:g}" for length in lengths]))  # fmt: skip

    return Sketch(
        "conversation-recall",
        "Recall by history length",
        f"n = {rows['n_points'].sum()} rollouts, as the judge scored them. A general question does not depend on the "
        "history: a system that fails it did not answer at all. Intervals and the strict matcher's shares are in "
        "the table.",
        make,
    )
