"""What the command line prints: progress bars, errors with their remedy, tables."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from duplex_bench.stages import progress

WIDTH_OFF_TERMINAL = 140

# Off a terminal there is no width to fit: tables keep their numbers whole.
console = Console(width=None if sys.stdout.isatty() else WIDTH_OFF_TERMINAL)
error_console = Console(stderr=True)


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
