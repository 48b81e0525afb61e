"""``duplex-bench compare``: two systems of a run on the windows they share."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
from rich.markup import escape
from rich.table import Table

from duplex_bench.cli.console import console
from duplex_bench.reporting.formats import interval, number, p_value
from duplex_bench.stages.compare import Compared, compare
from duplex_bench.stages.workspace import open_workspace


def show_compare(
    data: Path, profile: str, system_a: str, system_b: str, metrics: Sequence[str], examples: int, limit: int | None
) -> None:
    """Print the paired comparison, and links to the windows where the two differ most."""
    workspace = open_workspace(profile, data, limit)
    found = compare(workspace, system_a, system_b, metrics, examples)
    level = workspace.profile.statistics.level
    for track in found.pairs["track"].unique(maintain_order=True):
        console.print(_pairs(found, track, level))
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


def _pairs(found: Compared, track: str, level: float) -> Table:
    table = Table(title=f"{track}: {found.system_a} minus {found.system_b}", box=None)
    columns = (
        "metric", "condition", found.system_a, found.system_b, "difference", f"{100 * level:g} % interval", "p",
        "McNemar", "n", "detectable", "better",
    )  # fmt: skip
    for name in columns:
        table.add_column(
            name, justify="left" if name in {"metric", "condition", "better"} else "right", overflow="fold"
        )
    for row in found.pairs.filter(pl.col("track") == track).iter_rows(named=True):
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
