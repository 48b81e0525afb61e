"""From stored tables to the report folder."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.outcome import SCORED_OUTCOMES
from duplex_bench.reporting.figures import Drawn, draw_figures
from duplex_bench.reporting.findings import Finding, examples, findings
from duplex_bench.reporting.inputs import SCHEMAS, ReportInputs, SystemInfo, Table, TrackTables
from duplex_bench.reporting.papers import PAPERS, exhibits, exhibits_table
from duplex_bench.reporting.places import TABLES_FOLDER
from duplex_bench.reporting.public_filter import public_stored, public_table
from duplex_bench.reporting.site.cells import Board, board, boards
from duplex_bench.reporting.site.chunks import ItemChunk, TrackIndex, item_chunks
from duplex_bench.reporting.site.folder import MARKER, replaced_folder
from duplex_bench.reporting.site.pages import Anchors, Pages
from duplex_bench.reporting.site.run_list import RunList, chosen_runs
from duplex_bench.reporting.site.scripts import script_call, slug
from duplex_bench.reporting.system_types import TypesSection, types_section
from duplex_bench.reporting.tables import (
    condition_comparison,
    conversation_tables,
    failures,
    leaderboard,
    missing_scores,
    multiparty_tables,
    outcomes,
    pairwise,
    provenance,
    stand_ins,
    write_tables,
)
from duplex_bench.reporting.tables.row_order import in_row_order
from duplex_bench.reporting.withholding import placeless

_ASSETS = ("site.css", "player.css", "site.js", "items.js", "player.js", "recording.js", "figures.js")
_PLOTLY = "plotly.min.js"


def build_site(inputs: ReportInputs, out: Path, drawn: Mapping[str, Sequence[Drawn]] | None = None) -> Path:
    """Build the report of a run as one folder that opens from disk.

    Pages, media, figures (SVG and PNG), tables (CSV and Parquet) and data are written to a temporary sibling that
    takes the place of ``out`` when complete, so that an interrupted build leaves the old report.

    Args:
        inputs: stored tables, cards, systems, and the blob store.
        out: the report folder; it may hold an earlier report, or be empty or absent.
        drawn: figures by track where they are drawn already; others are drawn here.

    Returns:
        Path of ``index.html``.

    Raises:
        ReportInputError: tables do not fit together, or ``out`` holds something else.
        KeyError: a blob that a table names is not stored.
    """
    with replaced_folder(out) as folder:
        _fill(inputs, folder, out if out.exists() else None, drawn or {})
    return out / "index.html"


def _fill(inputs: ReportInputs, folder: Path, earlier: Path | None, ready: Mapping[str, Sequence[Drawn]]) -> None:
    write_assets(folder)
    types = {track.track: types_section(track, inputs.systems) for track in inputs.tracks}
    tables = report_tables(inputs, types)
    if inputs.settings.build == "public":
        inputs = _withheld(inputs)
    item_rows = write_items(inputs, folder, earlier)
    write_tables(tables, folder / TABLES_FOLDER)
    write_tables(_stored_tables(inputs), folder / TABLES_FOLDER)
    drawn = {
        track.track: list(ready.get(track.track) or draw_figures(track, inputs.systems)) for track in inputs.tracks
    }
    for figures in drawn.values():
        _write_figures(figures, folder)

    figure_titles = {figure.id: figure.title for figures in drawn.values() for figure in figures}
    filled = {table.id for table in tables if table.frame.height} | set(figure_titles)
    shown = exhibits({table.id: table.title for table in tables} | figure_titles, filled)
    papers = exhibits_table(shown)
    write_tables([papers], folder / TABLES_FOLDER)
    tables.append(papers)
    pages = Pages(inputs, folder, item_rows)
    headline = {track.track: boards(track, track.headline_cards, inputs.systems) for track in inputs.tracks}
    found = {track.track: findings(inputs, track) for track in inputs.tracks}
    pages.write("index.html", "index.html", boards=headline, findings=found, counts=_counts(inputs), types=types)
    for track in inputs.tracks:
        name = track.track
        _write_track(pages, inputs, track, headline[name], found[name], drawn[name], tables, types[name])
    for system in inputs.systems:
        _write_system(pages, inputs, system, tables)
    pages.write("failures.html", "failures.html", tables=tables, by_id=_by_id(tables))
    pages.write("items.html", "items.html", n_items=len(item_rows))
    pages.write("play.html", "play.html")
    pages.write("tables.html", "tables.html", tables=tables)
    anchors = Anchors(inputs, tables, drawn)
    pages.write("papers.html", "papers.html", shown=shown, papers=PAPERS, anchor=anchors.of, by_id=_by_id(tables))
    pages.write("costs.html", "costs.html", costs=[table for table in tables if table.id.startswith("costs-")])
    recognition = [table for table in tables if table.id.startswith("recognition-")]
    pages.write("recognition.html", "recognition.html", recognition=recognition)
    pages.write("provenance.html", "provenance.html", by_id=_by_id(tables))
    marker = {"run": inputs.run_id, "profile": inputs.profile, "build": inputs.settings.build}
    (folder / MARKER).write_text(json.dumps(marker, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def report_tables(inputs: ReportInputs, types: Mapping[Track, TypesSection | None]) -> list[Table]:
    """Every table that the report prints, in page order. ``types`` are the sections on types of system, by track."""
    tables: list[Table] = []
    for track in inputs.tracks:
        section = types[track.track]
        tables += [leaderboard(track), *(section.tables() if section else []), condition_comparison(track)]
        tables.append(pairwise(track))
        tables += [outcomes(track), failures(track), missing_scores(track)]
        tables += multiparty_tables(track, inputs.systems) + conversation_tables(track, inputs.systems)
    tables += inputs.extra_tables
    tables += [stand_ins(inputs.stand_ins), provenance(inputs.provenance)]
    order = [system.name for system in inputs.systems]
    tables = [replace(table, frame=in_row_order(table.frame, order)) for table in tables]
    return [public_table(table) for table in tables] if inputs.settings.build == "public" else tables


def _stored_tables(inputs: ReportInputs) -> list[Table]:
    found = []
    for track in inputs.tracks:
        for name in SCHEMAS:
            frame: pl.DataFrame = getattr(track, name)
            if inputs.settings.build == "public":
                frame = public_stored(name, frame)
            found.append(Table(f"{track.track}-{name}", name, "", frame))
    return found


def _withheld(inputs: ReportInputs) -> ReportInputs:
    """Inputs whose scores and verdicts hold no words of people, and cards no places of this machine; items stay whole,
    and their pages leave words out.
    """
    tracks = tuple(
        replace(
            track,
            judgements=public_stored("judgements", track.judgements, drop=False),
            measurements=public_stored("measurements", track.measurements, drop=False),
            statistics=public_stored("statistics", track.statistics, drop=False),
        )
        for track in inputs.tracks
    )
    systems = tuple(replace(system, card=placeless(system.card)) for system in inputs.systems)
    return replace(inputs, tracks=tracks, systems=systems)


def _by_id(tables: Sequence[Table]) -> dict[str, Table]:
    return {table.id: table for table in tables}


def _counts(inputs: ReportInputs) -> dict[str, dict[str, int]]:
    return {
        track.track: {
            "items": track.items.height,
            "clusters": track.items["cluster"].n_unique(),
            "systems": track.rollouts["system"].n_unique(),
            "rollouts": track.rollouts.height,
            "scored_rollouts": track.rollouts.filter(
                pl.col("outcome").is_in([str(one) for one in SCORED_OUTCOMES])
            ).height,
            "scores": track.measurements.height,
            "values": track.measurements.height - track.measurements["value"].null_count(),
        }
        for track in inputs.tracks
    }


def write_assets(folder: Path) -> None:
    """Copy styles and scripts into the report that is being built in ``folder``."""
    assets = folder / "assets"
    assets.mkdir()
    source = resources.files("duplex_bench.reporting.site") / "assets"
    for name in _ASSETS:
        (assets / name).write_bytes((source / name).read_bytes())


def write_items(inputs: ReportInputs, folder: Path, earlier: Path | None) -> list[dict[str, Any]]:
    """Write what the player needs of every item, and the lists of items and runs; return the rows of the former."""
    data = folder / "data"
    data.mkdir()
    rows: list[dict[str, Any]] = []
    runs = RunList()
    metrics: dict[str, dict[str, Any]] = {}
    both_sides = chosen_runs(inputs)
    order = [system.name for system in inputs.systems]
    for track in inputs.tracks:
        metrics.update(
            {card.id: {"title": card.title, "statistic": card.statistic, "unit": card.unit, "track": card.track,
                       "direction": card.direction, "headline": card.headline} for card in track.cards}
        )  # fmt: skip
        for chunk in item_chunks(inputs, TrackIndex(track, order), folder, earlier, both_sides):
            name = f"item-{slug(chunk.item_id)}"
            (data / f"{name}.js").write_text(script_call(f"item:{chunk.item_id}", chunk.data), encoding="utf-8")
            runs.add(len(rows), chunk.data["runs"])
            rows.append(_item_row(chunk, name))
    systems = {system.name: system.title for system in inputs.systems}
    listing = {"items": rows, "metrics": metrics, "systems": systems}
    (data / "items.js").write_text(script_call("items", listing), encoding="utf-8")
    (data / "runs.js").write_text(script_call("runs", runs.packed()), encoding="utf-8")
    return rows


def _item_row(chunk: ItemChunk, name: str) -> dict[str, Any]:
    item = chunk.data
    return {
        "id": item["id"],
        "title": item["title"],
        "file": name,
        "track": item["track"],
        "condition": item["condition"],
        "cluster": item["cluster"],
        "s": round(item["live_s"], 2),
    }


def _write_figures(drawn: Sequence[Drawn], folder: Path) -> None:
    target = folder / "figures"
    target.mkdir(exist_ok=True)
    for figure in drawn:
        (target / f"{figure.id}.svg").write_bytes(figure.svg)
        (target / f"{figure.id}-dark.svg").write_bytes(figure.svg_dark)
        (target / f"{figure.id}.png").write_bytes(figure.png)
        if figure.plot is not None:
            call = script_call(f"figure:{figure.id}", json.loads(figure.plot))
            (target / f"{figure.id}.js").write_text(call, encoding="utf-8")
    library = folder / "assets" / _PLOTLY
    if any(figure.plot for figure in drawn) and not library.exists():
        library.write_bytes((resources.files("plotly") / "package_data" / _PLOTLY).read_bytes())


def _write_track(
    pages: Pages,
    inputs: ReportInputs,
    track: TrackTables,
    headline: list[tuple[str, Board]],
    found: list[Finding],
    drawn: list[Drawn],
    tables: Sequence[Table],
    types: TypesSection | None,
) -> None:
    others = tuple(card for card in track.cards if not card.headline)
    pages.write(
        "track.html",
        f"track-{track.track}.html",
        track=track,
        boards=headline,
        others=boards(track, others, inputs.systems),
        findings=found,
        types=types,
        figures=drawn,
        by_id=_by_id(tables),
    )
    present = [system for system in inputs.systems if system.name in set(track.rollouts["system"])]
    for card in track.cards:
        listened = {
            system.name: (
                examples(track, card, system.name, worst=True, limit=inputs.settings.examples),
                examples(track, card, system.name, worst=False, limit=inputs.settings.examples),
            )
            for system in present
        }
        pages.write(
            "metric.html",
            pages.metric_page(track.track, card.id),
            track=track,
            card=card,
            board=board(track, [card], inputs.systems),
            pairs=pairwise(track).frame.filter(pl.col("metric") == card.id),
            missing=missing_scores(track).frame.filter(pl.col("metric") == card.id),
            listened=listened,
            present=present,
        )


def _write_system(pages: Pages, inputs: ReportInputs, system: SystemInfo, tables: Sequence[Table]) -> None:
    by_id = _by_id(tables)
    by_track = {track.track: board(track, track.cards, [system], inputs.systems) for track in inputs.tracks}
    tracks = [track for track in inputs.tracks if by_track[track.track].groups]
    reasons = {
        track.track: Counter(
            row["outcome"] for row in track.rollouts.filter(pl.col("system") == system.name).iter_rows(named=True)
        )
        for track in tracks
    }
    pages.write(
        "system.html",
        pages.system_page(system.name),
        system=system,
        tracks=tracks,
        boards=by_track,
        outcomes=reasons,
        failures={
            track.track: by_id[f"{track.track}-failures"].frame.filter(pl.col("system") == system.name)
            for track in tracks
        },
    )
