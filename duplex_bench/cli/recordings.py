"""``duplex-bench score-audio``: a recording in, a table on the terminal and a page to listen to out."""

from pathlib import Path

from rich.markup import escape
from rich.table import Table

from duplex_bench.cli.console import console, error_console, progress_bars
from duplex_bench.reporting.formats import interval, number, unit_suffix
from duplex_bench.stages.recording_report import Summary
from duplex_bench.stages.score_audio import score_audio


def score_recording(user: Path, system: Path | None, labels: Path | None, out: Path, data: Path) -> int:
    """Score a recording and print what came out; 0, or 2 if the input cannot be used (with what to do about it)."""
    try:
        with progress_bars():
            found = score_audio(user, system, labels, out, data)
    except (ValueError, OSError) as error:
        error_console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 2
    console.print(table_of(found))
    if found.empty is not None:
        console.print(f"[bold yellow]{escape(found.empty)}[/]", highlight=False, soft_wrap=True)
    for note in found.notes[found.empty is not None :]:
        console.print(f"[dim]note: {escape(note)}[/]", highlight=False, soft_wrap=True)
    console.print(f"[bold]Page:[/] {found.index.resolve()}", highlight=False, soft_wrap=True)
    return 0


def table_of(found: Summary) -> Table:
    """Every section as one table: value (shares as they are, else median or mean), quartiles, windows scored."""
    table = Table(title=f"{found.title}, {found.duration_s:.1f} s", title_justify="left", title_style="bold")
    table.add_column("measure")
    table.add_column("value", justify="right")
    table.add_column("quartiles")
    table.add_column("n", justify="right")
    for section in found.sections:
        rows = found.summary.filter(found.summary["section"] == section.title).to_dicts()
        table.add_section()
        if not any(row["n_windows"] for row in rows):
            table.add_row(f"[bold]{section.title}[/]", "", "[dim]no such moment in this recording[/]", "0")
            continue
        table.add_row(f"[bold]{section.title}[/]")
        for row in rows:
            value, unit = row["estimate"], row["unit"]
            kind = "" if row["statistic"] == "rate" else f", {row['statistic']}"
            spread = interval(row["q1"], row["q3"], unit) if row["q1"] is not None and row["n_scored"] > 1 else ""
            table.add_row(
                f"{row['title']}{kind}",
                number(value, unit) + (unit_suffix(unit) if value is not None else ""),
                spread or f"[dim]{escape(row['reason'] or '')}[/]",
                f"{row['n_scored']} of {row['n_windows']}",
            )
    return table
