"""The page of one scored recording: what came out, how it is counted, and a player at the right second."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.estimates import center
from duplex_bench.reporting.findings import badness
from duplex_bench.reporting.formats import clock, direction_text, interval, number, unit_suffix
from duplex_bench.reporting.inputs import ReportInputError, ReportInputs, Table, TrackTables
from duplex_bench.reporting.places import TABLES_FOLDER
from duplex_bench.reporting.site.build import write_assets, write_items
from duplex_bench.reporting.site.folder import MARKER, replaced_folder
from duplex_bench.reporting.site.pages import Pages
from duplex_bench.reporting.tables import provenance, stand_ins, write_tables

_SUMMARY_SCHEMA = {
    "section": pl.String, "metric": pl.String, "title": pl.String, "unit": pl.String, "direction": pl.String,
    "statistic": pl.String, "estimate": pl.Float64, "q1": pl.Float64, "q3": pl.Float64, "n_scored": pl.Int64,
    "n_windows": pl.Int64, "reason": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Section:
    """Metrics that are shown together. ``condition`` is that of their rows in MEASUREMENTS and STATISTICS."""

    condition: str
    title: str
    explanation: str
    metrics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Moment:
    """A second of the recording to listen to, and what it says there."""

    at_s: float
    clock: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    """One metric as the page shows it. ``moments_are`` names what the moments have in common."""

    card: MetricCard
    text: str
    unit: str
    quartiles: str
    n: str
    reason: str
    moments_are: str
    moments: tuple[Moment, ...]
    more: int


def summary_frame(tables: TrackTables, system: str, sections: Sequence[Section]) -> pl.DataFrame:
    """One row per metric of ``sections``, in order; a metric that had no window says so.

    Where fewer windows were scored than an estimate needs, the row holds what these windows gave, and says so.

    Returns:
        Columns section, metric, title, unit, direction, statistic, estimate, q1, q3, n_scored, n_windows, reason.
    """
    known = {row["metric"]: row for row in tables.statistics.filter(pl.col("system") == system).to_dicts()}
    rows = []
    for section in sections:
        for metric in section.metrics:
            card, row = tables.card(metric), known.get(metric)
            shown = {"section": section.title, "metric": metric, "title": card.title, "unit": card.unit,
                     "direction": card.direction, "statistic": card.statistic}  # fmt: skip
            if row is None:
                none = {"estimate": None, "q1": None, "q3": None, "n_scored": 0, "n_windows": 0}
                rows.append({**shown, **none, "reason": "no such moment in this recording"})
            else:
                numbers = {name: row[name] for name in ("estimate", "q1", "q3", "n_scored")}
                reason = row["reason"] if row["estimate"] is None else None
                if row["estimate"] is None and row["n_scored"]:
                    values = tables.measurements.filter((pl.col("metric") == metric) & (pl.col("system") == system))
                    numbers["estimate"] = center(values["value"].drop_nulls().to_numpy(), card)
                    reason = f"{row['n_scored']} window: a value, no estimate"
                rows.append({**shown, **numbers, "n_windows": row["n_expected"], "reason": reason})
    return pl.DataFrame(rows, schema=_SUMMARY_SCHEMA)


def build_recording_page(
    inputs: ReportInputs, system: str, sections: Sequence[Section], summary: pl.DataFrame, out: Path
) -> Path:
    """Write the page of a recording as a folder that opens from disk, with its tables.

    Args:
        inputs: one track with one item and one run of it.
        system: name of the recorded system.
        sections: metrics that are shown together.
        summary: of ``summary_frame``.
        out: the folder; it may hold an earlier report, or be empty or absent.

    Returns:
        Path of ``index.html``.

    Raises:
        ReportInputError: ``out`` holds something else, or a public page is asked for.
    """
    if inputs.settings.build == "public":
        raise ReportInputError("the page of a recording plays both sides: it has no public build")
    (track,) = inputs.tracks
    tables = [
        Table("summary", "Summary", "Every metric of this recording.", summary),
        Table("measurements", "Measurements", "One row per window and metric.", track.measurements),
        *inputs.extra_tables,
        stand_ins(inputs.stand_ins),
        provenance(inputs.provenance),
    ]
    with replaced_folder(out) as folder:
        write_assets(folder)
        write_items(inputs, folder, None)
        write_tables(tables, folder / TABLES_FOLDER)
        shown = [(section, lines(track, system, section, summary, inputs.settings.examples)) for section in sections]
        item = track.items.row(0, named=True)
        Pages(inputs, folder).write(
            "recording.html", "index.html", sections=shown, tables=tables, duration_s=item["live_s"], system=system
        )
        marker = {"run": inputs.run_id, "profile": inputs.profile, "build": inputs.settings.build}
        (folder / MARKER).write_text(json.dumps(marker, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    return out / "index.html"


def lines(tables: TrackTables, system: str, section: Section, summary: pl.DataFrame, limit: int) -> list[Line]:
    """The metrics of a section as the page shows them, each with moments to listen to."""
    known = {row["metric"]: row for row in summary.to_dicts()}
    found = []
    for metric in section.metrics:
        row, card = known[metric], tables.card(metric)
        named, moments = _moments(tables, system, card)
        spread = row["q1"] is not None and row["n_scored"] > 1
        found.append(
            Line(
                card=card,
                text=number(row["estimate"], card.unit),
                unit=unit_suffix(card.unit) if row["estimate"] is not None else "",
                quartiles=interval(row["q1"], row["q3"], card.unit) if spread else "",
                n=f"{row['n_scored']} of {row['n_windows']}",
                reason=row["reason"] or "",
                moments_are=named,
                moments=tuple(moments[:limit]),
                more=max(0, len(moments) - limit),
            )
        )
    return found


def _moments(tables: TrackTables, system: str, card: MetricCard) -> tuple[str, list[Moment]]:
    """Where it happened (of a rate: the windows that count against the system), or the values, the worst first."""
    rows = tables.measurements.filter(
        (pl.col("metric") == card.id) & (pl.col("system") == system) & pl.col("value").is_not_null()
    ).to_dicts()
    if card.statistic == "rate":
        wanted = 0.0 if card.direction == "higher" else 1.0
        named = "where it did not" if card.direction == "higher" else "where it did"
        kept = sorted((row for row in rows if row["value"] == wanted), key=lambda row: float(row["at_s"]))
        return named, [Moment(row["at_s"], clock(row["at_s"]), "") for row in kept]
    if card.statistic == "mean" and card.direction == "lower":
        rows = [row for row in rows if row["value"] > 0]  # counts: there is nothing to hear where nothing happened
    named = "greatest first" if card.direction == "none" else f"{direction_text(card)}, worst first"
    kept = sorted(rows, key=lambda row: (-badness(card, row["value"]) if card.direction != "none" else -row["value"],
                                         row["at_s"]))  # fmt: skip
    return named, [
        Moment(row["at_s"], clock(row["at_s"]), number(row["value"], card.unit) + unit_suffix(card.unit))
        for row in kept
    ]
