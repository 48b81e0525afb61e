"""``duplex-bench release``: the public bundle of a run; made, checked, scored again."""

from pathlib import Path

import polars as pl
from rich.markup import escape
from rich.table import Table

from duplex_bench.cli import graph
from duplex_bench.cli.console import console, error_console, progress_bars
from duplex_bench.cli.run import environment
from duplex_bench.stages.release.build import release_folder
from duplex_bench.stages.release.check import check_release
from duplex_bench.stages.release.rescoring import as_text, rescore_release
from duplex_bench.stages.stored_run import tracks_run
from duplex_bench.stages.workspace import open_workspace


def make_release(root: Path, data: Path, profile: str, limit: int | None) -> int:
    """Materialise the bundle and print where it is; returns the exit code.

    Raises:
        ValueError: nothing was run under the profile.
    """
    workspace = open_workspace(profile, root / data, limit)
    tracks_run(workspace)
    with environment(root, data, profile, limit):
        from duplex_bench.cli import local_run
        from duplex_bench.definitions import defs

        part = graph.release_part()
        with local_run.instance_of(root, data) as instance, progress_bars():
            outcome = local_run.execute(defs, instance, root, part.keys, label=part.label)
    if not outcome.success:
        error_console.print(f"[red]nothing was released:[/] {escape(str(outcome.error))}", highlight=False)
        return 1
    folder = release_folder(workspace)
    console.print(f"[bold]Bundle:[/] {folder}", highlight=False, soft_wrap=True)
    console.print(f"[bold]As one file:[/] {folder}.tar.gz", highlight=False, soft_wrap=True)
    console.print(
        f"[dim]Look at {folder / 'README.md'}; check it: duplex-bench release --check {folder}[/]", soft_wrap=True
    )
    return 0


def show_check(place: Path) -> int:
    """Print every problem of a bundle; returns 0 where there is none, else 1.

    Raises:
        ValueError: ``place`` is not there or no archive.
    """
    found = check_release(place)
    for problem in found:
        told = f"{problem.file}: {problem.message}. {problem.remedy}"
        error_console.print(f"[red]{escape(told)}[/]", highlight=False, soft_wrap=True)
    answer = "whole: every file, table and recording is as released" if not found else f"{len(found)} problems"
    console.print(f"{place}: {answer}", highlight=False, soft_wrap=True)
    return 1 if found else 0


def show_rescore(place: Path, as_json: bool) -> int:
    """Score a bundle anew and print what came out equal; returns 0 where nothing came out otherwise, else 1.

    Raises:
        ValueError: no whole bundle, or one of other metric versions.
    """
    found = rescore_release(place)
    if as_json:
        console.file.write(as_text(found) + "\n")
        return 0 if found.equal else 1
    table = Table(title=f"{place}: made anew from the bundle alone", box=None)
    for name in ("track", "what", "equal", "other", "not made", "why not"):
        table.add_column(name, justify="right" if name in {"equal", "other", "not made"} else "left")
    counted = found.table.group_by("track", "what", maintain_order=True).agg(
        pl.col("equal", "other", "not_made").sum(), pl.col("reason").drop_nulls().unique().sort().str.join("; ")
    )
    for row in counted.iter_rows():
        table.add_row(*(escape(str(value)) for value in row))
    console.print(table)
    for identity, metric, given, made in found.differing:
        told = f"{metric} {identity}: given {given}, made {made}"
        error_console.print(f"[red]{escape(told)}[/]", highlight=False, soft_wrap=True)
    answer = "everything that can be made anew is as given" if found.equal else "scores came out otherwise than given"
    console.print(answer, highlight=False)
    return 0 if found.equal else 1
