"""What an endpointer buys and costs: takeover of pauses against latency at turn ends, along a sweep of its setting."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import polars as pl

from duplex_bench.reporting.figures.intervals import MARKERS, PALETTE
from duplex_bench.reporting.figures.multiparty import Sketch
from duplex_bench.reporting.inputs import SystemInfo, TrackTables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_PLACES = 2


def endpointer_curves(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    """A curve for each sweep of which at least two places were scored at both points; None without one."""
    known = {
        (row["system"], row["metric"]): (row["estimate"], row["n_scored"])
        for row in tables.statistics.filter(pl.col("metric").is_in(["pause_takeover", "turn_end_latency"])).to_dicts()
        if row["estimate"] is not None
    }
    curves: dict[str, list[tuple[float, str, float, float]]] = {}
    n = 0
    for system in systems:
        takeover, latency = known.get((system.name, "pause_takeover")), known.get((system.name, "turn_end_latency"))
        if system.sweep is None or takeover is None or latency is None:
            continue
        n += takeover[1] + latency[1]
        place = system.sweep
        curves.setdefault(place.name, []).append((place.at, place.label, latency[0], takeover[0]))
    shown = {name: sorted(places) for name, places in curves.items() if len(places) >= _LEAST_PLACES}
    if not shown:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(6.4, 4.2), layout="constrained")
        axes = figure.subplots()
        for number, (name, places) in enumerate(sorted(shown.items())):
            colour = PALETTE[number % len(PALETTE)]
            axes.plot([place[2] for place in places], [place[3] for place in places], "-", linewidth=1.3, color=colour,
                      marker=MARKERS[number % len(MARKERS)], markersize=6, label=name)  # fmt: skip
            for place, (_, label, x, y) in enumerate(places):
                # The curve's own name stands with the label of its last place.
                text = f"{label}\n{name}" if place == len(places) - 1 else label
                axes.annotate(text, (x, y), xytext=(5, 4), textcoords="offset points", fontsize=7, color=colour)
        axes.set_ylim(-0.03, 1.03)
        # Room for the label of the last place.
        axes.margins(x=0.14)
        axes.set_xlim(left=0)
        axes.set_xlabel("median latency at turn ends (s)")
        axes.set_ylabel("share of pauses taken over")
        return figure

    return Sketch(
        "conversation-endpointers",
        "Takeover against latency, by endpointer",
        f"n = {n} scores of {sum(map(len, shown.values()))} systems; curves: {len(shown)}. Along a curve only the "
        "endpointer's setting changes: a shorter silence answers sooner and takes more pauses. "
        "Where turn ends are requested by the harness, their latency does not hold the endpointer's silence.",
        make,
    )
