"""One pause and what every system did at it (P2 figure 1, drawn from a scored point), and turn ends (P2 figure 3)."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from duplex_bench.records.items import Reference
from duplex_bench.reporting.figures.intervals import PALETTE, off_scale
from duplex_bench.reporting.figures.multiparty import Sketch
from duplex_bench.reporting.inputs import SystemInfo, TrackTables
from duplex_bench.reporting.scales import Scale
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.serial import from_json

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PERSON: Final = "#6b7683"
_RESUMES: Final = PALETTE[0]
_TAKES: Final = PALETTE[1]
_OTHER: Final = "#9fb2c9"
_AFTER_S: Final = 6.0
_TURN_ENDS: Final = (
    ("turn_end_latency", "latency to the first word (s)", 0.0),
    ("duration_ratio", "duration to the person's", 1.0),
    ("word_ratio", "words to the person's", 1.0),
)


def pause_point(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    """A pause point on the listener timeline: the person above, every system below (P2 figure 1).

    The point is the first by a hash of its id among those at which systems that are no references differ in outcome,
    else among all: nobody picks. None without a scored pause.
    """
    rows = _outcomes(tables)
    if not rows.height:
        return None
    references = [one.name for one in systems if one.reference]
    per_item = rows.filter(~pl.col("system").is_in(references)).group_by("item_id").agg(pl.col("outcome").n_unique())
    telling = per_item.filter(pl.col("outcome") > 1)["item_id"].to_list()
    chosen = min(telling or rows["item_id"].unique().to_list(), key=lambda item: digest_value("pause figure", item))
    item = tables.items.filter(pl.col("item_id") == chosen).row(0, named=True)
    reference = from_json(Reference, item["reference"])
    window = next((one for one in reference.windows if one.kind == "pause"), None)
    if window is None:
        return None
    told = {row["system"]: row for row in rows.filter(pl.col("item_id") == chosen).iter_rows(named=True)}
    keys = {row["rollout_key"] for row in told.values()}
    spoken: dict[str, list[list[float]]] = {
        row["rollout_key"]: row["gate_s"] or []
        for row in tables.activity.filter(pl.col("rollout_key").is_in(keys)).iter_rows(named=True)
    }
    shown = [one for one in systems if one.name in told]
    heard = [(turn.start_s, turn.end_s) for turn in reference.transcript if turn.role == "user" and turn.end_s > 0]

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.4, 0.8 + 0.27 * (len(shown) + 1)), layout="constrained")
        axes = figure.subplots()
        left = max(0.0, window.start_s - 8.0)
        right = window.end_s + _AFTER_S
        axes.axvspan(window.start_s, window.end_s, color=_OTHER, alpha=0.3, linewidth=0)
        _spans(axes, 0, _clear(heard, window.start_s, window.end_s), window.end_s, (_PERSON, _RESUMES))
        for place, system in enumerate(shown, start=1):
            row = told[system.name]
            took = row["outcome"] == "takeover"
            ink = _TAKES if took else _OTHER
            _spans(axes, place, spoken.get(row["rollout_key"], []), window.end_s, (ink, ink if took else _OTHER))
            if row["first_word_s"] is not None and left <= row["first_word_s"] <= right:
                axes.plot([row["first_word_s"]], [place], "v", color=ink if took else _PERSON, markersize=5)
        axes.axvline(window.start_s, color=_PERSON, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.axvline(window.end_s, color=_RESUMES, linewidth=1.0)
        axes.set_yticks(range(len(shown) + 1), ["the person", *(system.title for system in shown)])
        axes.set_ylim(len(shown) + 0.5, -0.5)
        axes.set_xlim(left, right)
        axes.set_xlabel("time on the listener timeline (s)")
        axes.grid(visible=False, axis="y")
        return figure

    return Sketch(
        "conversation-pause-point",
        "One pause, and what every system did at it",
        f"n = 1 point ({_name(item, reference)}), the first by a hash among those at which systems differ. Bars: sound "
        "above the energy gate. Dashed: the person stops; full line: the person goes on; shaded: the pause. Triangle: "
        "a system's first word; orange: a system that took the floor in the pause.",
        make,
    )


def _name(item: Mapping[str, Any], reference: Reference) -> str:
    from duplex_bench.reporting.site.titles import item_title

    return item_title(item["item_id"], item["condition"], item["cluster"], reference.attributes)


def _outcomes(tables: TrackTables) -> pl.DataFrame:
    """Columns item_id, system, rollout_key, outcome, first_word_s of the first repeat of every scored pause."""
    scored = tables.measurements.filter((pl.col("metric") == "pause_takeover") & pl.col("value").is_not_null())
    first = tables.rollouts.filter(pl.col("repeat") == 0)["rollout_key"]
    rows: list[dict[str, Any]] = []
    for row in scored.filter(pl.col("rollout_key").is_in(first.implode())).iter_rows(named=True):
        details = json.loads(row["details"]) if row["details"] else {}
        outcome = details.get("pause_outcome") or ("takeover" if row["value"] else "no takeover")
        rows.append({"item_id": row["item_id"], "system": row["system"], "rollout_key": row["rollout_key"],
                     "outcome": outcome, "first_word_s": details.get("first_word_s")})  # fmt: skip
    schema = {"item_id": pl.String, "system": pl.String, "rollout_key": pl.String, "outcome": pl.String,
              "first_word_s": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema).sort("item_id", "system")


def _clear(spans: Sequence[tuple[float, float]], start_s: float, end_s: float) -> list[list[float]]:
    """The person's turn without its pause: a turn of the transcript runs across it."""
    found: list[list[float]] = []
    for low, high in spans:
        found += [[max(low, 0.0), min(high, start_s)], [max(low, end_s), high]]
    return [[low, high] for low, high in found if high > low]


def _spans(axes: Any, place: int, spans: Sequence[Sequence[float]], resume_s: float, inks: tuple[str, str]) -> None:
    for ink, mine in (
        (inks[0], [span for span in spans if span[0] < resume_s]),
        (inks[1], [span for span in spans if span[0] >= resume_s]),
    ):
        if mine:
            axes.barh([place] * len(mine), [high - low for low, high in mine], left=[low for low, _ in mine],
                      height=0.5, color=ink)  # fmt: skip


def turn_end_quartiles(tables: TrackTables, systems: Sequence[SystemInfo]) -> Sketch | None:
    """Latency, duration and words at turn ends: median and quartiles over rollouts with words (P2 figure 3)."""
    rows = {
        (row["system"], row["metric"]): row
        for row in tables.statistics.filter(pl.col("metric").is_in([name for name, _, _ in _TURN_ENDS])).to_dicts()
        if row["estimate"] is not None and row["q1"] is not None
    }
    shown = [one for one in systems if any((one.name, name) in rows for name, _, _ in _TURN_ENDS)]
    if not shown:
        return None

    def make() -> "Figure":
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7.4, 0.7 + 0.27 * len(shown)), layout="constrained")
        for axes, (metric, name, human) in zip(figure.subplots(1, 3, sharey=True), _TURN_ENDS, strict=True):
            scale = _quartile_scale({key: row for key, row in rows.items() if key[1] == metric}, shown, human)
            axes.set_xlim(scale.low, scale.high)
            for place, system in enumerate(shown):
                row = rows.get((system.name, metric))
                side = scale.side(row["estimate"]) if row is not None else ""
                if row is not None and side:
                    off_scale(axes, row["estimate"], place, side, PALETTE[0])
                elif row is not None:
                    axes.plot([row["q1"], row["q3"]], [place, place], color=PALETTE[0], linewidth=2.2,
                              solid_capstyle="butt")  # fmt: skip
                    axes.plot([row["estimate"]], [place], "o", color=PALETTE[0], markersize=4.5)
            axes.axvline(human, color=_PERSON, linewidth=1.0, linestyle=(0, (4, 2)))
            axes.set_yticks(range(len(shown)), [system.title for system in shown])
            axes.set_ylim(len(shown) - 0.5, -0.5)
            axes.set_xlabel(name)
            axes.grid(visible=False, axis="y")
        return figure

    n = sum(row["n_scored"] for (_, metric), row in rows.items() if metric == _TURN_ENDS[0][0])
    return Sketch(
        "conversation-turn-end-quartiles",
        "Turn ends: how soon and how long",
        f"n = {n} rollouts with words. Points: medians; bars: quartiles; dashed: the turn end, or the person's own "
        "length. At or left of 0 a word was under way at the turn end. An arrow: the median lies past the axis.",
        make,
    )


def _quartile_scale(
    rows: Mapping[tuple[str, str], Mapping[str, Any]], systems: Sequence[SystemInfo], human: float
) -> Scale:
    """From the least to the greatest quartile of what is no reference policy, with a margin."""
    policies = {one.name for one in systems if one.reference and one.family == "policy"}
    mine = [row for (name, _), row in rows.items() if name not in policies] or list(rows.values())
    ends = [human, *(row[name] for row in mine for name in ("q1", "q3", "estimate"))]
    margin = 0.08 * (max(ends) - min(ends)) or 0.5
    return Scale(min(ends) - margin, max(ends) + margin)
