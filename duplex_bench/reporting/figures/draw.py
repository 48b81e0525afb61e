"""Which figures a track has, and a figure as SVG (light and dark) and PNG bytes."""

import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import TYPE_CHECKING, Any

from duplex_bench.reporting.figures.conversation import conversation_sketches
from duplex_bench.reporting.figures.interactive import interactive
from duplex_bench.reporting.figures.intervals import dot_intervals
from duplex_bench.reporting.figures.multiparty import Sketch, sketches
from duplex_bench.reporting.figures.outcomes import pause_shares, takeover_by_length
from duplex_bench.reporting.inputs import POOLED, SystemInfo, TrackTables
from duplex_bench.reporting.tables.conversation_pauses import LEAST_PER_BIN
from duplex_bench.storage.digests import canonical_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_INK = "#18202b"
_DARK_INK = "#e6eaf0"
_SIZE = re.compile(rb'<svg [^>]*?width="([0-9.]+)pt" height="([0-9.]+)pt"')
_PX_PER_PT = 96 / 72
_ARROW = " An arrow: the estimate lies past the axis."
# What changes with the ground: ink, of which nothing on a coloured ground is drawn, and colours in which small text is
# written that a dark ground would swallow. The script of the interactive form has the same.
ON_DARK = {_INK: _DARK_INK, "#0072b2": "#4aa3df", "#009e73": "#2bb78a", "#46586e": "#66798f"}
_INKED = ("text.color", "axes.labelcolor", "xtick.color", "ytick.color", "axes.edgecolor", "grid.color")


@dataclass(frozen=True, slots=True)
class Drawn:
    """A finished figure. ``svg_dark`` is the same drawing for a dark ground; grounds are transparent, PNG is white.

    ``plot`` is its interactive form, JSON of ``interactive.interactive``; None where it was stored without.
    """

    id: str
    title: str
    caption: str
    svg: bytes
    svg_dark: bytes
    png: bytes
    plot: str | None

    @property
    def size_px(self) -> tuple[int, int]:
        """Width and height at which the page shows the drawing, so that it keeps the place before it is loaded."""
        found = _SIZE.search(self.svg[:2000])
        if found is None:
            return 0, 0
        width, height = (round(float(size) * _PX_PER_PT) for size in found.groups())
        return width, height


@dataclass(frozen=True, slots=True)
class Plan:
    """A figure to draw: ``make`` builds it anew on each call, for each ground."""

    id: str
    title: str
    caption: str
    make: Callable[[], "Figure"]


def draw_figures(tables: TrackTables, systems: Sequence[SystemInfo]) -> list[Drawn]:
    """Every figure that the track's data allow. The same tables give the same SVG bytes."""
    return [_drawn(plan) for plan in plans(tables, systems)]


def draw_sketches(sketched: Sequence[Sketch]) -> list[Drawn]:
    """Figures that stand beside the systems, drawn."""
    return [_drawn(_plan(sketch)) for sketch in sketched]


def _plan(sketch: Sketch) -> Plan:
    return Plan(sketch.id, sketch.title, sketch.caption, sketch.make)


def plans(tables: TrackTables, systems: Sequence[SystemInfo]) -> list[Plan]:
    """The figures that the track's data allow, not yet drawn."""
    present = set(tables.statistics["system"])
    shown = [system for system in systems if system.name in present]
    found = []
    cards = [card for card in tables.headline_cards if card.id in set(tables.statistics["metric"])]
    rates = [card for card in cards if card.statistic == "rate"]
    others = [card for card in cards if card.statistic != "rate"]
    clusters = tables.items["cluster"].n_unique()
    counted = f"{tables.items.height} items, {clusters} clusters; n of each estimate in the leaderboard."
    method = f"Lines are {tables.level_text} intervals from resampling whole clusters; hollow points have no interval."
    for name, title, part in (
        ("rates", "Headline rates by system", rates),
        ("timing", "Headline latencies and ratios by system", others),
    ):
        if part and shown:
            found.append(
                Plan(
                    f"{tables.track}-{name}",
                    f"{tables.title}: {title.lower()}",
                    f"{counted} {method}{_ARROW}",
                    _maker(dot_intervals, tables.statistics.filter(_single(tables)), part, shown),
                )
            )
    of_track = [*sketches(tables, shown), *conversation_sketches(tables, shown)]
    found += [_plan(sketch) for sketch in of_track]
    if tables.track == "conversation":
        shares = pause_shares(tables, shown)
        if shares is not None:
            found.append(
                Plan(
                    "conversation-pause-outcomes",
                    "What systems do at pauses",
                    f"Shares of all scored pauses, n = {shares.n} rollouts; the parts of a row add up to 1.",
                    shares.make,
                )
            )
        by_length = takeover_by_length(tables, shown)
        if by_length is not None:
            found.append(
                Plan(
                    "conversation-takeover-by-length",
                    "Takeover against pause length",
                    f"Share of pauses taken over, by pause length, n = {by_length.n} rollouts; bins of equal counts, "
                    "Wilson 95 % intervals over the pauses of a bin. Grey: the other systems."
                    + (
                        f" Hollow: fewer than {LEAST_PER_BIN} rollouts, where P2 has no bin."
                        if by_length.has_few
                        else ""
                    ),
                    by_length.make,
                )
            )
    return found


def _single(tables: TrackTables) -> Any:
    import polars as pl

    pooled_only = tables.statistics.group_by("metric").agg((pl.col("condition") != POOLED).any().alias("single"))
    with_single = pooled_only.filter(pl.col("single"))["metric"].to_list()
    return (pl.col("condition") != POOLED) | ~pl.col("metric").is_in(with_single)


def _maker(function: Callable[..., "Figure"], *arguments: Any) -> Callable[[], "Figure"]:
    return lambda: function(*arguments)


def _drawn(plan: Plan) -> Drawn:
    import matplotlib as mpl

    style = resources.files("duplex_bench.reporting.figures") / "style.mplstyle"
    with resources.as_file(style) as path:
        rc: Any = mpl.rc_params_from_file(path, use_default_template=False)
    with mpl.rc_context(rc | dict.fromkeys(_INKED, _INK)):
        figure = plan.make()
        svg, png = _saved(figure, plan, "svg"), _saved(figure, plan, "png")
        plot = canonical_json(interactive(figure))
    dark = svg
    for light_ground, dark_ground in ON_DARK.items():
        dark = dark.replace(light_ground.encode(), dark_ground.encode())
    return Drawn(plan.id, plan.title, plan.caption, svg, dark, png, plot)


def _saved(figure: "Figure", plan: Plan, kind: str) -> bytes:
    buffer = io.BytesIO()
    # Without a date the same tables give the same bytes.
    metadata = {"Date": None, "Title": plan.title} if kind == "svg" else {"Software": None, "Title": plan.title}
    figure.savefig(buffer, format=kind, metadata=metadata, transparent=kind == "svg")
    return buffer.getvalue()
