"""Templates to pages: one environment, escaping on, the same helpers in every page."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.reporting.comparisons import SIGN_FLIP
from duplex_bench.reporting.figures import Drawn
from duplex_bench.reporting.formats import MISSING, direction_text, interval, number, p_value, unit_suffix
from duplex_bench.reporting.inputs import ReportInputs, Table
from duplex_bench.reporting.site.scripts import slug

_P_COLUMNS = frozenset({"p", "p_corrected", "p_mcnemar", "p_equivalence"})


class Pages:
    """Writes pages of one report into a folder. Templates get the inputs and the helpers below."""

    def __init__(self, inputs: ReportInputs, folder: Path, items: Sequence[Mapping[str, Any]] = ()) -> None:
        self.folder = folder
        metric_titles = {card.id: card.title for track in inputs.tracks for card in track.cards}
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("duplex_bench.reporting.site"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._environment.globals.update(
            inputs=inputs,
            system_page=self.system_page,
            metric_page=self.metric_page,
            play_link=play_link,
            titles={system.name: system.title for system in inputs.systems},
            item_titles={item["id"]: item["title"] for item in items},
            columns=columns,
            show=show,
            pair_view=pair_view,
            track_tables=further_tables,
            shown_frame=lambda table: shown_frame(table, metric_titles),
            is_number=is_number,
        )
        self._environment.filters.update(
            number=number, interval=interval, p_value=p_value, unit=unit_suffix, direction=direction_text, label=label
        )

    def write(self, template: str, name: str, **context: Any) -> None:
        """Render ``template`` to the page ``name``; an undefined name in a template raises."""
        text = self._environment.get_template(template).render(page=name, **context)
        (self.folder / name).write_text(text, encoding="utf-8")

    @staticmethod
    def system_page(name: str) -> str:
        """File name of a system's page."""
        return f"system-{slug(name)}.html"

    @staticmethod
    def metric_page(track: Track, metric: str) -> str:
        """File name of a metric's page."""
        return f"metric-{track}-{slug(metric)}.html"


class Anchors:
    """Where a table or figure stands in the report: on the page of its track, or on that of all tables."""

    def __init__(self, inputs: ReportInputs, tables: Sequence[Table], drawn: Mapping[Track, Sequence[Drawn]]) -> None:
        self._pages: dict[str, str] = {table.id: "tables.html" for table in tables}
        by_id = {table.id: table for table in tables}
        for track in inputs.tracks:
            page = f"track-{track.track}.html"
            on_it = [table.id for table in further_tables(track.track, by_id)]
            on_it += [f"{track.track}-{name}" for name in ("conditions", "pairwise", "outcomes")]
            on_it += [figure.id for figure in drawn[track.track]]
            self._pages |= dict.fromkeys(on_it, page)

    def of(self, name: str) -> str:
        """The address of a table or figure, relative to the report; raises KeyError for an unknown id."""
        return f"{self._pages[name]}#{name}"


# Tables that a track page shows in sections of their own, or that other pages are for.
_PLACED = ("leaderboard", "conditions", "pairwise", "outcomes", "failures", "missing")


def further_tables(track: Track, by_id: Mapping[str, Table]) -> list[Table]:
    """The tables of a track beside those that its page has a place for, in page order."""
    placed = {f"{track}-{name}" for name in _PLACED}
    return [table for name, table in by_id.items() if name.startswith(f"{track}-") and name not in placed]


def play_link(item_id: str, system: str | None = None, at_s: float | None = None) -> str:
    """Address of an item in the player, of one system's run, at one second."""
    parts = [f"item={quote(item_id, safe='')}"]
    if system is not None:
        parts.append(f"system={quote(system, safe='')}")
    if at_s is not None:
        parts.append(f"t={at_s:.3f}")
    return f"play.html#{'&'.join(parts)}"


def label(name: str) -> str:
    """A column or outcome name for people: ``turn_end`` as "turn end", units kept in brackets."""
    text = re.sub(r"_(s|ms|hz|db)$", r" (\1)", name)
    return text.replace("_", " ")


def columns(frame: pl.DataFrame) -> list[tuple[str, bool]]:
    """Name of each column and whether it holds numbers. Columns that are empty throughout are left out."""
    return [
        (name, kind.is_numeric())
        for name, kind in frame.schema.items()
        if frame.height == 0 or frame[name].null_count() < frame.height
    ]


def shown_frame(table: Table, metric_titles: Mapping[str, str]) -> pl.DataFrame:
    """A table's frame as a page shows it: metrics by title, intervals in one column, only headline tests of pairs."""
    frame = table.frame
    if table.id.endswith("-pairwise"):
        return pair_view(frame.filter(pl.col("test") == SIGN_FLIP))
    if "metric" in frame.columns:
        named = pl.col("metric").replace_strict(metric_titles, default=pl.col("metric"), return_dtype=pl.String)
        frame = frame.with_columns(named).drop("title", strict=False)
    return frame


def pair_view(frame: pl.DataFrame) -> pl.DataFrame:
    """Comparisons as a page shows them: test with its correction, interval as one text."""
    intervals = [interval(row["low"], row["high"], signed=True) for row in frame.iter_rows(named=True)]
    return frame.with_columns(
        pl.Series("interval", intervals, dtype=pl.String),
        pl.concat_str("test", "correction", separator=", ").alias("test"),
    ).select(
        pl.col("title").alias("metric"), "condition", "system_a", "system_b", "difference", "interval", "p",
        "p_corrected", "test", "n_pairs", "n_clusters", "minimum_detectable",
    )  # fmt: skip


def is_number(value: object) -> bool:
    """Whether a value is shown as a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def show(value: object, column: str = "") -> str:
    """One table value as text; missing is a dash."""
    if value is None:
        return MISSING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return p_value(value) if column in _P_COLUMNS else number(value, signed=column == "difference")
    return str(value)
