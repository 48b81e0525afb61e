"""``duplex-bench rescore``: stored rollouts scored under changed settings, and what that moved."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.markup import escape
from rich.table import Table

from duplex_bench.cli.console import console, progress_bars
from duplex_bench.cli.run import TRACKS
from duplex_bench.reporting.formats import interval, number
from duplex_bench.stages.rescore import Rescored, rescore
from duplex_bench.stages.rescore_moves import only_moved
from duplex_bench.stages.rescore_scope import overlay_of
from duplex_bench.stages.workspace import open_workspace

_SHOWN = 25


def show_rescore(
    data: Path,
    profile: str,
    track: str,
    settings: Sequence[str],
    other: str | None,
    label: str,
    limit: int | None,
    every: bool,
) -> None:
    """Rescore, print what moved and write it.

    Raises:
        ValueError: the change needs new runs, the run is not there, or a setting is wrong.
    """
    tracks = None if track == "all" else [name for name in TRACKS if name == track]
    if tracks == []:
        raise ValueError(f"no track {track!r}: choose {', '.join(TRACKS)} or all")
    overlay = overlay_of(settings, other)
    workspace = open_workspace(profile, data, limit)
    with progress_bars():
        found = rescore(workspace, overlay, label, tracks)
    _show(found, every)


def _show(found: Rescored, every: bool) -> None:
    for note in found.held:
        console.print(f"[dim]left as in the run: {escape(note)}[/]", highlight=False, soft_wrap=True)
    for stage, counts in found.counts.items():
        told = ", ".join(f"{number} {name}" for name, number in counts.items())
        console.print(f"[dim]{stage}: {told}[/]", highlight=False)
    moved = only_moved(found.moves)
    if moved.height:
        console.print(_moves(moved, every))
    if found.rankings.height:
        console.print(_rankings(found.rankings))
    console.print(f"[bold]{escape(found.notice)}[/]", highlight=False, soft_wrap=True)
    console.print(f"Tables of what moved: {found.folder}", highlight=False, soft_wrap=True)
    console.print(f"[dim]A score of it: duplex-bench trace ID --rescored {found.name}[/]", soft_wrap=True)


def _moves(moved: pl.DataFrame, every: bool) -> Table:
    shown = moved if every else moved.head(_SHOWN)
    left = moved.height - shown.height
    table = Table(title="What moved", box=None, caption=f"and {left} more (--all prints them)" if left else None)
    for name in ("system", "condition", "metric", "before", "after", "moved", "n", "windows", "tie group"):
        table.add_column(name, justify="right" if name in {"moved", "n", "windows"} else "left")
    for row in shown.iter_rows(named=True):
        sides = [
            f"{number(row[f'estimate_{side}'])} {escape(interval(row[f'low_{side}'], row[f'high_{side}']))}"
            for side in ("before", "after")
        ]
        table.add_row(
            row["system"], row["condition"], row["metric"], *sides, number(row["moved"], signed=True),
            _both(row["n_scored_before"], row["n_scored_after"]), number_or_dash(row["windows_changed"]),
            _both(row["tie_group_before"], row["tie_group_after"]),
        )  # fmt: skip
    return table


def number_or_dash(count: int | None) -> str:
    """A count, or a dash where it is not known."""
    return "-" if count is None else str(count)


def _both(before: int | None, after: int | None) -> str:
    old, new = number_or_dash(before), number_or_dash(after)
    return old if old == new else f"{old} -> {new}"


def _rankings(frame: pl.DataFrame) -> Table:
    table = Table(title="Who stands otherwise", box=None)
    for name in ("track", "condition", "metric", "system", "against", "before", "after"):
        table.add_column(name)
    for row in frame.iter_rows():
        table.add_row(*map(str, row))
    return table
