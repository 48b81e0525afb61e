"""Figures of the multiparty track: durations, stopping, request time, sensitivity to short speech."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import polars as pl

from duplex_bench.records.items import Reference
from duplex_bench.reporting.figures.direct import Part, stacked_bars, whole_numbers
from duplex_bench.reporting.figures.intervals import PALETTE
from duplex_bench.reporting.figures.panels import Curve, system_panels
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.multiparty_sensitivity import minimum_speech
from duplex_bench.reporting.tables.multiparty_windows import THIRDS, Rates, request_thirds, stopping, windows
from duplex_bench.storage.serial import from_json

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TURN_TYPES: Final = ("T", "N1", "N2", "N3", "N4Q", "N4R")
# Apart in lightness too: they are told apart in black and white.
OUTCOMES: Final = (
    ("stopped", Part("stopped", "#46586e")),
    ("speaking_through_deadline", Part("spoke through the deadline", "#D55E00")),
    ("resumed", Part("resumed", "#E69F00", dark_text=True)),
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
        for axes in (left, right):
            axes.set_xlabel("length (s)")
            axes.set_xlim(left=0)
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
    if not rows.height or not rows.select(pl.sum_horizontal(*(name for name, _ in OUTCOMES)).sum()).item():
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 0.75 + 0.36 * rows.height), layout="constrained")
        axes = figure.subplots()
        counts = rows.select(name for name, _ in OUTCOMES).to_numpy().astype(np.float64)
        stacked_bars(axes, [part for _, part in OUTCOMES], counts, lambda count: f"{count:.0f}", 4.4)
        labels = [f"{titles[row['system']]}, {row['condition']}" for row in rows.iter_rows(named=True)]
        axes.set_yticks(range(rows.height), labels)
        axes.set_xlabel("eligible events")
        whole_numbers(axes, x=True)
        axes.grid(visible=False, axis="y")
        return figure

    n_events = int(rows["eligible"].sum())
    return Sketch(
        "multiparty-stopping",
        "What eligible systems did when a human resolved the question",
        f"n = {n_events} eligible events; counts, not shares, since eligibility differs between systems. Systems "
        "without an eligible event have no bar.",
        make,
    )


def _curves(
    rows: pl.DataFrame, x: str, metrics: Sequence[tuple[str, str]], systems: Sequence[SystemInfo]
) -> list[tuple[str, list[Curve]]]:
    """Panels of the systems that have values: a line for each metric, dashed for implicit requests."""
    panels = []
    conditions = sorted(rows["condition"].unique())
    for system in systems:
        curves = []
        for place, (column, name) in enumerate(metrics):
            for condition in conditions:
                mine = rows.filter((pl.col("system") == system.name) & (pl.col("condition") == condition))
                mine = mine.drop_nulls(column).sort(x)
                if mine.height:
                    dashed = condition != conditions[0]
                    at = mine[x].cast(pl.Float64).to_list()
                    curves.append(Curve(at, mine[column].to_list(), name, place, dashed))
        if curves:
            panels.append((system.title, curves))
    return panels


def _dashed(rows: pl.DataFrame) -> str:
    """What the two kinds of line are, for a caption."""
    first, *others = sorted(rows["condition"].unique())
    return f" Full lines: {first}; dashed, hollow marks: {', '.join(others)}." if others else ""


def _thirds(tables: TrackTables, frame: pl.DataFrame, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = request_thirds(frame, Rates(tables)).frame
    place = pl.col("third").replace_strict({name: n for n, name in enumerate(THIRDS)}, default=None)
    rows = rows.with_columns(place.cast(pl.Int64, strict=False).alias("place")).drop_nulls("place")
    if not rows.height:
        return None
    metrics = (("response_presence", "any speech"), ("fresh_onset", "fresh onset"), ("accuracy", "correct"))

    def make() -> "Figure":
        panels = _curves(rows, "place", metrics, systems)
        return system_panels(panels, x_label="request time", y_label="share", ticks=(range(len(THIRDS)), THIRDS))

    return Sketch(
        "multiparty-request-thirds",
        "Responses and answers by request time",
        f"n = {tables.items.height} requests in three groups of equal size by input timing; correct: of those with a "
        f"response. n of each point is in the table.{_dashed(rows)}",
        make,
    )


def _short(tables: TrackTables, frame: pl.DataFrame, systems: Sequence[SystemInfo]) -> Sketch | None:
    rows = minimum_speech(frame, tables.analysis.minimum_speech_s).frame
    if not rows.height or len(tables.analysis.minimum_speech_s) < 2:
        return None
    metrics = (
        ("response_presence", "any speech"),
        ("fresh_onset", "fresh onset"),
        ("silence_preservation", "silence kept"),
    )
    n = tables.items.height
    return Sketch(
        "multiparty-minimum-speech",
        "Rates if short speech counts as none",
        f"n = {n} scenes. Speech shorter than the minimum in a window counts as none; recomputed from stored activity; "
        f"n of each point is in the table.{_dashed(rows)}",
        lambda: system_panels(
            _curves(rows, "minimum_speech_s", metrics, systems), x_label="minimum speech (s)", y_label="share"
        ),
    )
