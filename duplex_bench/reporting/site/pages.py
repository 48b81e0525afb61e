"""Templates to pages: one environment, escaping on, the same helpers in every page."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2

from duplex_bench.records.items import Track
from duplex_bench.reporting.figures import Drawn
from duplex_bench.reporting.formats import clock, direction_text, interval, number, p_value, unit_suffix
from duplex_bench.reporting.inputs import ReportInputs, Table
from duplex_bench.reporting.site.scripts import slug
from duplex_bench.reporting.site.view import columns, is_number, label, pair_view, show, shown_frame


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
            number=number,
            interval_to=interval,
            p_value=p_value,
            unit=unit_suffix,
            direction=direction_text,
            label=label,
            clock=clock,
            first_upper=first_upper,
            under=under,
            in_words=lambda text: in_words(text, metric_titles),
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
            placed = ("system-types", "paper-findings", "conditions", "pairwise", "outcomes")
            on_it += [f"{track.track}-{name}" for name in placed]
            on_it += [figure.id for figure in drawn[track.track]]
            self._pages |= dict.fromkeys(on_it, page)

    def of(self, name: str) -> str:
        """The address of a table or figure, relative to the report; raises KeyError for an unknown id."""
        return f"{self._pages[name]}#{name}"


# Tables that a track page shows in sections of their own, or that other pages are for.
_PLACED = ("leaderboard", "system-types", "paper-findings", "conditions", "pairwise", "outcomes", "failures", "missing")


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


def first_upper(text: str) -> str:
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]


def under(title: str, track: str) -> str:
    """A table's title on the page of its track, whose name it need not repeat."""
    return first_upper(title.removeprefix(f"{track}: "))


def in_words(text: str, metric_titles: Mapping[str, str]) -> str:
    """A text of a metric card with other metrics named by their titles, not their ids."""
    for name in sorted(metric_titles, key=len, reverse=True):
        if "_" in name:
            text = text.replace(name, metric_titles[name])
    return text
