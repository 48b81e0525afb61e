"""Figures of the multiparty track: durations, stopping, request time, sensitivity to short speech."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import polars as pl

from duplex_bench.records.items import Reference
from duplex_bench.reporting.figures.intervals import MARKERS, PALETTE
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.multiparty_sensitivity import minimum_speech
from duplex_bench.reporting.tables.multiparty_windows import THIRDS, Rates, request_thirds, stopping, windows
from duplex_bench.storage.serial import from_json

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TURN_TYPES: Final = ("T", "N1", "N2", "N3", "N4Q", "N4R")
OUTCOMES: Final = (
    ("stopped", "stopped", "#009E73"),
    ("speaking_through_deadline", "spoke through the deadline", "#D55E00"),
    ("resumed", "resumed", "#E69F00"),
)


@dataclass(frozen=True, slots=True)
class Sketch:
    """A figure to draw: its name, what it shows, and how."""

    id: str
    title: str
    caption: str
    make: Callable[[], "Figure"]


def sketches(tables: TrackTables, systems: Sequence[SystemInfo]) -> list[Sketch]:
    """The figures that this run's data allow; none for another track."""
    if tables.track != "multiparty" or not tables.items.height:
        return []
    found = [_durations(tables)]
    if tables.measurements.height:
        frame = windows(tables)
        found += [_stopping(tables, frame, systems), _thirds(tables, frame, systems), _short(tables, frame, systems)]
    return [sketch for sketch in found if sketch is not None]


def turn_seconds(tables: TrackTables) -> pl.DataFrame:
    """Columns ``condition``, ``turn_type``, ``seconds``: one row a turn of every item that says its turn types."""
    rows: list[tuple[str, str, float]] = []
    for item in tables.items.select("condition", "reference").iter_rows(named=True):
        reference = from_json(Reference, item["reference"])
        kinds = str(reference.attributes.get("turn_types", "")).split()
        if len(kinds) == len(reference.transcript):
            rows += [
                (item["condition"], kind, turn.end_s - turn.start_s)
                for kind, turn in zip(kinds, reference.transcript, strict=True)
            ]
    schema = {"condition": pl.String, "turn_type": pl.String, "seconds": pl.Float64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _durations(tables: TrackTables) -> Sketch | None:
    turns = turn_seconds(tables)
    if not turns.height:
        return None
    kinds = [kind for kind in TURN_TYPES if kind in set(turns["turn_type"])]
    conditions = sorted(tables.items["condition"].unique())

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.4, 0.9 + 0.3 * max(len(kinds), len(conditions))), layout="constrained")
        left, right = figure.subplots(1, 2)
        _boxes(left, [turns.filter(pl.col("turn_type") == kind)["seconds"].to_list() for kind in kinds], kinds)
        lengths = [tables.items.filter(pl.col("condition") == name)["live_s"].to_list() for name in conditions]
        _boxes(right, lengths, conditions)
        left.set_title("turns by type")
        right.set_title("scenes by condition")
        return figure

    return Sketch(
        "multiparty-durations",
        "How long turns and scenes are",
        f"n = {turns.height} turns in {tables.items.height} scenes. Boxes: quartiles and median; whiskers: least and "
        "greatest. Scenes hold preamble, gaps and tail.",
        make,
    )


def _boxes(axes: "Axes", values: Sequence[Sequence[float]], names: Sequence[str]) -> None:
    for place, mine in enumerate(values):
        series = pl.Series(mine)
        low, high = float(min(mine)), float(max(mine))
        q1, middle, q3 = (series.quantile(q, "linear") or 0.0 for q in (0.25, 0.5, 0.75))
        axes.plot([low, high], [place, place], color=PALETTE[0], linewidth=1.0)
        axes.barh([place], [q3 - q1], left=q1, height=0.5, color="#9fb2c9", edgecolor=PALETTE[0], linewidth=0.9)
        axes.plot([middle, middle], [place - 0.25, place + 0.25], color="#10161e", linewidth=1.4)
    axes.set_yticks(range(len(names)), list(names))
    axes.set_ylim(len(names) - 0.45, -0.55)
    axes.set_xlim(left=0)
    axes.set_xlabel("s")
    axes.grid(visible=False, axis="y")


def _stopping(tables: TrackTables, frame: pl.DataFrame, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = stopping(frame, Rates(tables)).frame.filter(pl.col("eligible") > 0)
    titles = {system.name: system.title for system in systems}
    rows = rows.filter(pl.col("system").is_in(list(titles)))
    if not rows.height or not rows.select(pl.sum_horizontal(*(name for name, _, _ in OUTCOMES)).sum()).item():
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 0.75 + 0.34 * rows.height), layout="constrained")
        axes = figure.subplots()
        left = [0.0] * rows.height
        for column, name, colour in OUTCOMES:
            widths = rows[column].to_list()
            axes.barh(range(rows.height), widths, left=left, height=0.66, color=colour, label=name)
            left = [start + width for start, width in zip(left, widths, strict=True)]
        labels = [f"{titles[row['system']]}, {row['condition']}" for row in rows.iter_rows(named=True)]
        axes.set_yticks(range(rows.height), labels)
        axes.set_ylim(rows.height - 0.5, -0.5)
        axes.set_xlabel("eligible events")
        axes.grid(visible=False, axis="y")
        figure.legend(loc="outside upper right", ncols=len(OUTCOMES), fontsize=8.5, handlelength=1.1)
        return figure

    n_events = int(rows["eligible"].sum())
    return Sketch(
        "multiparty-stopping",
        "What eligible systems did when a human resolved the question",
        f"n = {n_events} eligible events; counts, not shares, since eligibility differs between systems. Systems "
        "without an eligible event have no bar.",
        make,
    )


def _lines(axes: "Axes", rows: pl.DataFrame, x: str, y: str, systems: Sequence[SystemInfo], condition: str) -> None:
    known = rows[x].cast(pl.Float64).to_list()
    step = 0.02 * (max(known) - min(known)) if known else 0.0
    for place, system in enumerate(systems):
        mine = rows.filter((pl.col("system") == system.name) & (pl.col("condition") == condition)).drop_nulls(y)
        if not mine.height:
            continue
        # Beside one another, or equal systems would hide each other.
        aside = (place - (len(systems) - 1) / 2) * step
        axes.plot(
            [float(value) + aside for value in mine[x].to_list()],
            mine[y].to_list(),
            color=PALETTE[place % 6],
            marker=MARKERS[place % 6],
            markersize=4,
            linewidth=1.3,
            linestyle=("-", (0, (4, 2)))[place // 6 % 2],
            label=system.title,
        )


def _panels(
    rows: pl.DataFrame, x: str, metrics: Sequence[tuple[str, str]], systems: Sequence[SystemInfo], x_label: str
) -> "Figure":
    from matplotlib.figure import Figure

    conditions = sorted(rows["condition"].unique())
    size = (1.0 + 2.4 * len(metrics), 0.9 + 1.7 * len(conditions))
    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(len(conditions), len(metrics), sharex=True, sharey=True, squeeze=False)
    for line, condition in zip(grid, conditions, strict=True):
        for axes, (column, title) in zip(line, metrics, strict=True):
            _lines(axes, rows, x, column, systems, condition)
            axes.set_ylim(-0.04, 1.04)
            axes.set_title(f"{title}, {condition}", fontsize=8.5)
    figure.supxlabel(x_label, fontsize=9)
    drawn: dict[str, Artist] = {}
    for axes in grid.flat:
        lines, names = axes.get_legend_handles_labels()
        drawn.update(zip(names, lines, strict=True))
    figure.legend(list(drawn.values()), list(drawn), loc="outside upper center", ncols=3, fontsize=8)
    return figure


def _thirds(tables: TrackTables, frame: pl.DataFrame, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = request_thirds(frame, Rates(tables)).frame
    place = pl.col("third").replace_strict({name: n for n, name in enumerate(THIRDS)}, default=None)
    rows = rows.with_columns(place.cast(pl.Int64, strict=False).alias("place")).drop_nulls("place")
    if not rows.height:
        return None
    metrics = (("response_presence", "presence"), ("fresh_onset", "fresh onset"), ("accuracy", "accuracy"))

    def make() -> "Figure":
        figure = _panels(rows, "place", metrics, systems, "request time")
        for axes in figure.axes:
            axes.set_xticks(range(len(THIRDS)), THIRDS)
            axes.set_xlim(-0.3, len(THIRDS) - 0.7)
        return figure

    return Sketch(
        "multiparty-request-thirds",
        "Responses and answers by request time",
        f"{tables.items.height} requests in three groups of equal size by input timing; accuracy is conditional on a "
        "response. n of each point in the table.",
        make,
    )


def _short(tables: TrackTables, frame: pl.DataFrame, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = minimum_speech(frame, tables.analysis.minimum_speech_s).frame
    if not rows.height or len(tables.analysis.minimum_speech_s) < 2:
        return None
    metrics = (
        ("response_presence", "presence"),
        ("fresh_onset", "fresh onset"),
        ("silence_preservation", "silence kept"),
    )
    return Sketch(
        "multiparty-minimum-speech",
        "Rates if short speech counts as none",
        "Speech shorter than the minimum in a window counts as none; recomputed from stored activity. n in the table.",
        lambda: _panels(rows, "minimum_speech_s", metrics, systems, "minimum detected speech in a window (s)"),
    )
