"""``duplex-bench compare``: two systems of a run, or two runs, on the windows they share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.markup import escape
from rich.table import Table

from duplex_bench.cli.console import console
from duplex_bench.reporting.formats import interval, number, p_value
from duplex_bench.stages.compare import Compared, compare
from duplex_bench.stages.compare_runs import ComparedRuns, compare_runs, is_path, quote, side_of
from duplex_bench.stages.workspace import open_workspace


def show_comparison(
    data: Path,
    profile: str | None,
    a: str,
    b: str,
    metrics: Sequence[str],
    systems: Sequence[str],
    examples: int,
    limit: int | None,
    quotes: bool,
) -> None:
    """Print the comparison of two systems of the run in ``data``, or of two runs where both are named by path.

    Raises:
        ValueError: a path beside a name, or what the comparison refuses.
    """
    named = [is_path(told) for told in (a, b)]
    if all(named):
        show_compare_runs(a, b, profile, metrics, systems, examples, quotes)
        return
    if any(named):
        path, name = (a, b) if named[0] else (b, a)
        raise ValueError(
            f"{path} is a path and {name} is none: name two systems of one run, or two runs by path; one system of a "
            f"run is PATH::SYSTEM, as {path.partition('::')[0]}::{name}"
        )
    if systems:
        raise ValueError("--system chooses among the systems of two runs: with two systems by name leave it out")
    show_compare(data, profile or "demo", a, b, metrics, examples, limit)


def show_compare_runs(
    a: str, b: str, profile: str | None, metrics: Sequence[str], systems: Sequence[str], examples: int, quotes: bool
) -> None:
    """Print what differs between two runs, the paired comparison of every system that both have, and lines to quote."""
    found = compare_runs(
        side_of(a), side_of(b), profiles=(profile, profile), metrics=metrics, systems=systems, n_examples=examples
    )
    if quotes:
        for row in found.pairs.iter_rows(named=True):
            console.print(escape(quote(row, found)), highlight=False, soft_wrap=True)
        return
    for side, run in (("A", found.run_a), ("B", found.run_b)):
        console.print(f"[bold]{side}[/] {escape(run.title)}, {run.kind} in {escape(str(run.path))}", soft_wrap=True)
    for names, rows in found.pairs.group_by(["track", "system_a", "system_b"], maintain_order=True):
        track, system_a, system_b = map(str, names)
        systems_told = system_a if system_a == system_b else f"{system_a} (A) and {system_b} (B)"
        console.print(_pair_table(rows, f"{track}, {systems_told}: A minus B", ("A", "B"), found.level))
    _run_examples(found)
    for side, alone in (("A", found.only_a), ("B", found.only_b)):
        if alone:
            console.print(f"[yellow]only in {side}:[/] {escape(', '.join(alone))}", highlight=False, soft_wrap=True)
    console.print(f"[bold]{escape(found.notice)}[/]", highlight=False, soft_wrap=True)
    # The first difference that is real, else the first there is.
    known = found.pairs.drop_nulls("low").sort(pl.col("better").is_null(), maintain_order=True)
    for row in known.head(1).iter_rows(named=True):
        console.print(f"[dim]To quote (--quote prints every line):[/] {escape(quote(row, found))}", soft_wrap=True)


def _run_examples(found: ComparedRuns) -> None:
    if not found.examples.height:
        return
    console.print("[bold]Where they differ most[/]")
    for row in found.examples.iter_rows(named=True):
        told = f"{row['metric']}, {row['condition']}, {row['item_id']} {row['window_id']}: "
        told += f"A {number(row['value_a'])}, B {number(row['value_b'])}"
        traced = f"trace {row['measurement_a']} and {row['measurement_b']}"
        console.print(f"{escape(told)} [dim]{traced}[/]", highlight=False, soft_wrap=True)


def show_compare(
    data: Path, profile: str, system_a: str, system_b: str, metrics: Sequence[str], examples: int, limit: int | None
) -> None:
    """Print the paired comparison, and links to the windows where the two differ most."""
    workspace = open_workspace(profile, data, limit)
    found = compare(workspace, system_a, system_b, metrics, examples)
    level = workspace.profile.statistics.level
    for track in found.pairs["track"].unique(maintain_order=True):
        rows = found.pairs.filter(pl.col("track") == track)
        names = (found.system_a, found.system_b)
        console.print(_pair_table(rows, f"{track}: {names[0]} minus {names[1]}", names, level))
    console.print(
        "[dim]p: clustered sign flips, and exact McNemar for rates; each of one comparison, not corrected for the "
        "number of rows. n: windows that both have a value for, and their clusters. detectable: at 80 % power.[/]",
        highlight=False,
    )
    if not found.examples.height:
        return
    has_report = (workspace.report_folder / "play.html").is_file()
    console.print("[bold]Where they differ most[/]")
    for row in found.examples.iter_rows(named=True):
        _example(row, found, f"{workspace.report_folder.as_uri()}/" if has_report else "")
    if not has_report:
        console.print(f"[dim]No report is stored: duplex-bench report --profile {profile} builds what is linked.[/]")


def _pair_table(rows: pl.DataFrame, title: str, names: tuple[str, str], level: float) -> Table:
    table = Table(title=title, box=None)
    columns = (
        "metric", "condition", *names, "difference", f"{100 * level:g} % interval", "p",
        "McNemar", "n", "detectable", "better",
    )  # fmt: skip
    for name in columns:
        table.add_column(
            name, justify="left" if name in {"metric", "condition", "better"} else "right", overflow="fold"
        )
    for row in rows.iter_rows(named=True):
        table.add_row(
            row["title"], row["condition"], number(row["value_a"]), number(row["value_b"]),
            number(row["difference"], signed=True), escape(interval(row["low"], row["high"], signed=True)),
            p_value(row["p_sign_flip"]), p_value(row["p_mcnemar"]), f"{row['n_pairs']} in {row['n_clusters']}",
            number(row["minimum_detectable"]), escape(row["better"] or row["reason"]),
        )  # fmt: skip
    return table


def _example(row: dict[str, Any], found: Compared, base: str) -> None:
    console.print(
        f"{row['metric']}, {row['condition']}, {row['item_id']} {row['window_id']}", highlight=False, soft_wrap=True
    )
    for name, side in ((found.system_a, "a"), (found.system_b, "b")):
        told = f"  {name} {number(row[f'value_{side}'])}  {base}{row[f'link_{side}']}"
        console.print(f"{escape(told)} [dim]trace {row[f'measurement_{side}']}[/]", highlight=False, soft_wrap=True)
