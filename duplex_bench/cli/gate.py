"""``duplex-bench gate``: a run against a baseline, for build servers."""

from collections.abc import Sequence
from pathlib import Path

from rich.markup import escape
from rich.table import Table

from duplex_bench.cli.console import console, error_console
from duplex_bench.reporting.formats import interval, number
from duplex_bench.reporting.run_tables import load_run
from duplex_bench.stages.gate import NO_MARGIN, Gated, gate
from duplex_bench.stages.gate_output import junit, summary
from duplex_bench.stages.gate_rules import read_rules

_STYLES = {"passed": "green", "failed": "bold red", "reported": "yellow"}


def run_gate(
    run: Path,
    profile: str | None,
    baseline: Path,
    baseline_profile: str | None,
    rules: Path | None,
    margins: Sequence[str],
    test: str | None,
    systems: Sequence[str],
    junit_file: Path | None,
    summary_file: Path | None,
) -> int:
    """Check, print, write; returns 0 where the gate is passed and 1 where it is not.

    Raises:
        ValueError: run, baseline or rules cannot be used.
    """
    chosen = read_rules(rules, margins, test)
    found = gate(load_run(run, profile), load_run(baseline, baseline_profile), chosen, systems)
    if junit_file is not None:
        junit_file.parent.mkdir(parents=True, exist_ok=True)
        junit_file.write_bytes(junit(found))
    if summary_file is not None:
        summary_file.parent.mkdir(parents=True, exist_ok=True)
        # Other steps of the same job write there too.
        with summary_file.open("a", encoding="utf-8") as stream:
            stream.write(summary(found))
    _show(found)
    return 0 if found.passed else 1


def _show(found: Gated) -> None:
    table = Table(title=f"{found.run.title} against {found.baseline.title}: run minus baseline", box=None)
    for name in ("", "track", "system", "check", "change", "interval"):
        table.add_column(name, overflow="fold", justify="right" if name in {"change", "interval"} else "left")
    for one in found.verdicts:
        change = "" if one.difference is None else number(one.difference, signed=True)
        bounds = "" if one.low is None else escape(interval(one.low, one.high, signed=True))
        style = _STYLES[one.status]
        table.add_row(f"[{style}]{one.status}[/]", one.track, one.system, escape(one.check), change, bounds)
    console.print(table)
    without = dict.fromkeys(one.check for one in found.verdicts if one.reason.startswith(NO_MARGIN))
    if without:
        console.print(f"[yellow]not gated, no margin is set:[/] {', '.join(without)}", highlight=False, soft_wrap=True)
    for one in found.verdicts:
        if one.status == "reported" and one.check not in without:
            told = f"{one.track} {one.system}, {one.check}: {one.reason}"
            console.print(f"[yellow]reported[/] {escape(told)}", highlight=False, soft_wrap=True)
    for one in found.verdicts:
        if one.status == "failed":
            told = f"{one.track} {one.system}, {one.check}: {one.reason}"
            error_console.print(f"[bold red]failed[/] {escape(told)}", highlight=False, soft_wrap=True)
    answer = "[green]gate passed[/]" if found.passed else "[bold red]gate failed[/]"
    counts = ", ".join(f"{found.count(status)} {status}" for status in ("failed", "passed", "reported"))
    console.print(f"{answer}: {counts}", highlight=False)
