"""Figures of a corpus of conversations: selection by liveliness, and what its labels look like (P2 figures 5, 6)."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from duplex_bench.reporting.figures.direct import whole_numbers
from duplex_bench.reporting.figures.intervals import PALETTE
from duplex_bench.reporting.figures.log_axis import plain_log_x
from duplex_bench.reporting.figures.multiparty import Sketch

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = npt.NDArray[np.float64]

_KEPT: Final = PALETTE[0]
_LEFT_OUT: Final = "#9fb2c9"
_BINS: Final = 20
_LEAST: Final = 2


def liveliness(scores: Floats, durations_s: Floats, kept: npt.NDArray[np.bool_], cutoff: float | None) -> Sketch | None:
    """Score against duration, and the distribution of the score; kept conversations stand out (P2 figure 5).

    Args:
        scores: mean percentile ranks (n,), 0 to 1.
        durations_s: length of each conversation (n,), seconds.
        kept: which conversations form the corpus (n,).
        cutoff: the score that decides, or None where a share is kept.

    Returns:
        None below two conversations.
    """
    if len(scores) < _LEAST:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure
        from matplotlib.ticker import MaxNLocator

        figure = Figure(figsize=(7.4, 2.7), layout="constrained")
        left, right = figure.subplots(1, 2)
        for chosen, colour, name, edge in ((~kept, _LEFT_OUT, "left out", np.argmin), (kept, _KEPT, "kept", np.argmax)):
            if chosen.any():
                x, y = durations_s[chosen] / 60, scores[chosen]
                left.scatter(x, y, s=14, color=colour, label=name, linewidths=0)
                # Named at the point that is furthest from the other kind.
                at = int(edge(y))
                ink = _KEPT if name == "kept" else "#6b7683"
                left.annotate(name, (float(x[at]), float(y[at])), xytext=(0, 8), textcoords="offset points",
                              ha="center", va="center", fontsize=8, color=ink)  # fmt: skip
        left.set_xlabel("duration (min)")
        left.set_ylabel("liveliness")
        left.set_ylim(0, 1)
        left.margins(x=0.12)
        left.xaxis.set_major_locator(MaxNLocator(nbins=5))
        edges = np.linspace(0.0, 1.0, _BINS + 1)
        right.hist([scores[kept], scores[~kept]], bins=list(edges), stacked=True, color=[_KEPT, _LEFT_OUT])
        right.set_xlabel("liveliness")
        right.set_ylabel("conversations")
        whole_numbers(right, y=True)
        if cutoff is not None:
            left.axhline(cutoff, color="#D55E00", linewidth=1.0, linestyle=(0, (4, 2)))
            right.axvline(cutoff, color="#D55E00", linewidth=1.0, linestyle=(0, (4, 2)))
        return figure

    rule = "the share kept is set in the profile" if cutoff is None else f"dashed: the cut at {cutoff:g}"
    return Sketch(
        "conversation-liveliness",
        "Corpus selection by liveliness",
        f"n = {len(scores)} conversations, {int(kept.sum())} kept; {rule}. The score is the mean percentile rank of "
        "six traits within this corpus.",
        make,
    )


def label_distributions(lengths_s: Mapping[str, Floats], transfers_s: Floats) -> Sketch | None:
    """Lengths of turns, pauses and backchannels on a log axis, and floor-transfer offsets (P2 figure 6).

    Args:
        lengths_s: by kind of label, seconds (k,).
        transfers_s: next speaker's start minus the previous one's end, seconds (m,).

    Returns:
        None without any label.
    """
    shown: Sequence[tuple[str, Floats]] = [
        (name, lengths_s[kind])
        for kind, name in (("turn", "turns"), ("pause", "pauses within turns"), ("backchannel", "backchannels"))
        if len(lengths_s.get(kind, ())) >= _LEAST
    ]
    if not shown:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        panels = len(shown) + (len(transfers_s) >= _LEAST)
        across = 2 if panels > 1 else 1
        down = -(-panels // across)
        figure = Figure(figsize=(3.4 * across, 1.8 * down), layout="constrained")
        grid = figure.subplots(down, across, squeeze=False).flatten()
        for axes in grid[panels:]:
            axes.set_visible(False)
        for axes, (name, values) in zip(grid, shown, strict=False):
            _lengths(axes, name, values)
        if len(transfers_s) >= _LEAST:
            axes = grid[panels - 1]
            axes.hist(transfers_s, bins=_BINS, color=_LEFT_OUT)
            axes.axvline(float(np.median(transfers_s)), color=_KEPT, linewidth=1.2)
            axes.set_title(f"floor transfer, n = {len(transfers_s)}", fontsize=8.5)
            axes.set_xlabel("offset (s)")
            _counted(axes)
        return figure

    return Sketch(
        "conversation-label-distributions",
        "What the labels look like",
        "Over the kept conversations; line: median. Lengths on a log axis. Floor transfer: next speaker's start minus "
        "the previous speaker's end at each change of speaker; negative where they overlap.",
        make,
    )


def _lengths(axes: "Axes", name: str, values: Floats) -> None:
    above = values[values > 0]
    edges = np.geomspace(above.min() * 0.95, above.max() * 1.05, _BINS + 1)
    axes.hist(above, bins=list(edges), color=_LEFT_OUT)
    axes.axvline(float(np.median(above)), color=_KEPT, linewidth=1.2)
    plain_log_x(axes)
    axes.set_title(f"{name}, n = {len(values)}", fontsize=8.5)
    axes.set_xlabel("length (s)")
    _counted(axes)


def _counted(axes: "Axes") -> None:
    axes.set_ylabel("labels", fontsize=8)
    whole_numbers(axes, y=True)
