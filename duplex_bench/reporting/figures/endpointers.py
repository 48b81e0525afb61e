"""What an endpointer buys and costs: takeover of pauses against latency at turn ends, along a sweep of its setting."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl

from duplex_bench.reporting.figures.intervals import PALETTE
from duplex_bench.reporting.figures.multiparty import Sketch
from duplex_bench.reporting.formats import number
from duplex_bench.reporting.inputs import SystemInfo, TrackTables

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_LEAST_PLACES = 2
_PANEL_IN = 2.3


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

        # A panel a curve: places lie close, and those of two curves would cover one another's names.
        figure = Figure(figsize=(6.4, 0.3 + _PANEL_IN * len(shown)), layout="constrained")
        panels = figure.subplots(len(shown), 1, squeeze=False)[:, 0]
        for axes, (name, places) in zip(panels, sorted(shown.items()), strict=True):
            colour = PALETTE[0]
            axes.plot([place[2] for place in places], [place[3] for place in places], "-o", linewidth=1.3, color=colour,
                      markersize=5)  # fmt: skip
            axes.set_ylim(-0.22, 1.22)
            axes.set_xlim(0, 1.15 * max(place[2] for place in places))
            axes.set_title(name, loc="left", fontsize=9)
            axes.set_ylabel("pauses taken over")
            for number_of, (_, label, x, y) in enumerate(places):
                # Straight above and below in turn: beside its point a name would stand nearer to the next.
                axes.annotate(label, (x, y), xytext=(0, -13 if number_of % 2 else 7), textcoords="offset points",
                              ha="center", fontsize=7.5, color=colour)  # fmt: skip
        panels[-1].set_xlabel("median latency at turn ends (s)")
        return figure

    return Sketch(
        "conversation-endpointers",
        "Takeover against latency, by endpointer",
        f"n = {n} scores of {sum(map(len, shown.values()))} systems; curves: {len(shown)}. Along a curve only the "
        f"endpointer's setting changes. {' '.join(_told(name, places) for name, places in sorted(shown.items()))} "
        "Where turn ends are requested by the harness, their latency does not hold the endpointer's silence.",
        make,
    )


def _told(name: str, places: Sequence[tuple[float, str, float, float]]) -> str:
    """What a curve shows from its soonest place to its latest, from its numbers alone."""
    ordered = sorted(places, key=lambda place: place[2])
    (_, first, soon, often), (_, last, late, seldom) = ordered[0], ordered[-1]
    steps = list(pairwise(ordered))
    rises = sum(later[3] > sooner[3] for sooner, later in steps)
    way = f"at {rises} of {len(steps)} steps takeovers rise" if rises else "at no step do takeovers rise"
    return (
        f"{name}: from {number(soon)} s ({first}) to {number(late)} s ({last}) takeovers go from {number(often)} to "
        f"{number(seldom)}, and {way}."
    )
