"""What the command line prints: progress bars, errors with their remedy, tables."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from duplex_bench.stages import progress
from duplex_bench.systems.registry import CardError

WIDTH_OFF_TERMINAL = 140

# Off a terminal there is no width to fit: tables keep their numbers whole.
console = Console(width=None if sys.stdout.isatty() else WIDTH_OFF_TERMINAL)
error_console = Console(stderr=True)


def tell_error(told: str) -> None:
    """One line on standard error: what is wrong, as it is written, brackets and all."""
    error_console.print(f"[bold red]error:[/] {escape(told)}", highlight=False, soft_wrap=True)


def tell_skipped(errors: Iterable[CardError]) -> None:
    """Cards that are passed over, each with what is wrong and what to do."""
    for error in errors:
        error_console.print(f"[yellow]card skipped:[/] {escape(error.told)}", highlight=False, soft_wrap=True)


@contextmanager
def progress_bars() -> Iterator[None]:
    """One bar per stage while the block runs; stages whose items are all cached show at once as full."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[note]}"))
    with Bars(*columns, TimeElapsedColumn(), console=console, transient=not console.is_terminal) as bars:
        known: dict[str, TaskID] = {}

        def show(now: progress.Progress) -> None:
            if now.stage not in known:
                known[now.stage] = bars.add_task(now.stage, total=now.total, note="")
            note = f"{now.reused} cached" if now.reused else ""
            note += f" {now.failed} failed" if now.failed else ""
            bars.update(known[now.stage], completed=now.done, total=now.total, note=note)

        with progress.listening(show):
            yield
