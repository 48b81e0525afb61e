"""What systems do at pauses: stacked shares, and takeover against pause length."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.items import Reference
from duplex_bench.reporting.figures.direct import Part, stacked_bars, wrapped
from duplex_bench.reporting.figures.intervals import MARKERS, PALETTE
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.tables.conversation_pauses import LEAST_PER_BIN
from duplex_bench.statistics import wilson_interval
from duplex_bench.storage.serial import from_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

# Metric ids of the five pause shares, in the order in which they are stacked. Neighbours differ in lightness too, and
# what the person did is darkest: more dark is better, in black and white as well.
SHARES = (
    ("pause_silent", Part("silent", "#46586e")),
    ("pause_wordless", Part("wordless", "#E69F00", dark_text=True)),
    ("pause_takeover", Part("takeover", "#D55E00")),
    ("pause_after", Part("after the pause", "#8CC8EE", dark_text=True)),
    ("pause_no_audio", Part("no audio", "#CBD3DC", dark_text=True)),
)
_BINS = 5
# Where a bin holds fewer than LEAST_PER_BIN its mark is hollow: a small run shows its direction and no more (ours).
_LEAST_PAUSES_PER_BIN = 4


@dataclass(frozen=True, slots=True)
class Shares:
    """A figure to draw and the number of rollouts in it.

    ``has_few`` says that some bin holds fewer rollouts than the paper gives a rate for.
    """

    n: int
    make: Callable[[], "Figure"]
    has_few: bool = False


def pause_shares(tables: TrackTables, systems: Sequence[SystemInfo]) -> Shares | None:
    """Stacked bars of the pause outcomes, one row per system; None where the track has no takeover share."""
    estimates = {
        (row["system"], row["metric"]): row["estimate"]
        for row in tables.statistics.filter(pl.col("metric").is_in([name for name, _ in SHARES])).to_dicts()
    }
    shown = [system for system in systems if estimates.get((system.name, "pause_takeover")) is not None]
    if not shown:
        return None
    n = tables.measurements.filter((pl.col("metric") == "pause_takeover") & pl.col("value").is_not_null()).height

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.2, 0.75 + 0.36 * len(shown)), layout="constrained")
        axes = figure.subplots()
        widths = np.array([[estimates.get((one.name, metric)) or 0.0 for metric, _ in SHARES] for one in shown])
        stacked_bars(axes, [part for _, part in SHARES], widths, lambda share: f"{share:.2f}", 4.6)
        axes.set_yticks(range(len(shown)), [system.title for system in shown])
        axes.set_xlim(0, 1)
        axes.set_xlabel("share of pauses")
        axes.grid(visible=False)
        return figure

    return Shares(n, make)


def takeover_by_length(tables: TrackTables, systems: Sequence[SystemInfo]) -> Shares | None:
    """Takeover share in bins of pause length, one panel per system; None with too few pauses for two bins."""
    lengths = pause_lengths(tables)
    scored = tables.measurements.filter((pl.col("metric") == "pause_takeover") & pl.col("value").is_not_null())
    rows = scored.join(lengths, on=["item_id", "window_id"], how="inner")
    pauses = rows.select("item_id", "window_id", "pause_s").unique()
    bins = min(_BINS, pauses.height // _LEAST_PAUSES_PER_BIN)
    if bins < 2:
        return None
    edges = np.unique(np.quantile(pauses["pause_s"].to_numpy(), np.linspace(0, 1, bins + 1)))
    if len(edges) < 3:
        return None
    shown = [system for system in systems if system.name in set(rows["system"])]

    lines = {system.name: _line(rows.filter(pl.col("system") == system.name), edges) for system in shown}

    def make() -> "Figure":
        from matplotlib.figure import Figure

        across = min(len(shown), 4)
        down = -(-len(shown) // across)
        figure = Figure(figsize=(1.95 * across + 0.6, 1.75 * down + 0.35), layout="constrained")
        for place, axes in enumerate(figure.subplots(down, across, sharex=True, sharey=True, squeeze=False).flat):
            if place >= len(shown):
                axes.set_visible(False)
                continue
            for other in shown:
                x, y, _, _, _ = lines[other.name]
                axes.plot(x, y, color="#7a8694", linewidth=0.7, alpha=0.5)
            x, y, low, high, n = lines[shown[place].name]
            axes.vlines(x, low, high, color=PALETTE[0], linewidth=1.2)
            axes.plot(x, y, color=PALETTE[0])
            for chosen, inside in ((n >= LEAST_PER_BIN, PALETTE[0]), (n < LEAST_PER_BIN, "none")):
                if chosen.any():
                    axes.plot(x[chosen], y[chosen], color=PALETTE[0], marker=MARKERS[0], markersize=3.5,
                              markerfacecolor=inside, linestyle="none")  # fmt: skip
            axes.set_title(wrapped(shown[place].title, 20), fontsize=8)
            axes.set_ylim(-0.05, 1.05)
            axes.set_yticks([0, 0.5, 1])
            # The last panel of each column carries the axis: below it there may be none.
            last = place + across >= len(shown)
            axes.tick_params(labelbottom=last)
            if last:
                axes.set_xlabel("pause length (s)", fontsize=8)
            if place % across == 0:
                axes.set_ylabel("share taken over", fontsize=8)
        return figure

    return Shares(rows.height, make, any((line[4] < LEAST_PER_BIN).any() for line in lines.values()))


def _line(rows: pl.DataFrame, edges: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Median length, share, Wilson bounds and count of each bin that holds a pause: five arrays (k,)."""
    ordered = rows.sort("item_id", "window_id")
    length, value = ordered["pause_s"].to_numpy(), ordered["value"].to_numpy()
    slot = np.clip(np.searchsorted(edges, length, side="right") - 1, 0, len(edges) - 2)
    points = []
    for index in range(len(edges) - 1):
        inside = value[slot == index]
        if len(inside):
            low, high = wilson_interval(round(float(inside.sum())), len(inside))
            points.append((float(np.median(length[slot == index])), float(inside.mean()), low, high, len(inside)))
    columns = np.array(points, dtype=np.float64).T
    return columns[0], columns[1], columns[2], columns[3], columns[4]


def pause_lengths(tables: TrackTables) -> pl.DataFrame:
    """Length of each pause window: columns item_id, window_id, pause_s."""
    rows = []
    for item in tables.items.filter(pl.col("protocol") == "pause").select("item_id", "reference").iter_rows(named=True):
        reference = from_json(Reference, item["reference"])
        rows += [
            {"item_id": item["item_id"], "window_id": window.window_id, "pause_s": window.end_s - window.start_s}
            for window in reference.windows
            if window.kind == "pause"
        ]
    return pl.DataFrame(rows, schema={"item_id": pl.String, "window_id": pl.String, "pause_s": pl.Float64})
