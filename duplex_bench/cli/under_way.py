"""Runs under way, by their pulse: which stage, how many of its items."""

from rich.table import Table

from duplex_bench.cli.console import console
from duplex_bench.stages.pulse import pulses
from duplex_bench.storage.object_store import ObjectStore


def show_under_way(store: ObjectStore) -> bool:
    """One row a run; nothing, and False, where none is under way."""
    alive = pulses(store)
    if not alive:
        return False
    table = Table("run", "stage", "items", "failed", "process", title="under way")
    for pulse in alive:
        done = f"{pulse.done} of {pulse.total}" if pulse.total else ""
        table.add_row(pulse.run_id[:8], pulse.stage, done, str(pulse.failed or ""), f"{pulse.process} on {pulse.host}")
    console.print(table)
    return True
