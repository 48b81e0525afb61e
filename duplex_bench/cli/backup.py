"""``duplex-bench backup``, ``restore`` and ``upgrade``."""

import os
from contextlib import chdir
from pathlib import Path

from duplex_bench import __version__
from duplex_bench.cli.console import console
from duplex_bench.cli.dagster_home import dagster_home
from duplex_bench.stages.backup.make import make_backup
from duplex_bench.stages.backup.manifest import Manifest
from duplex_bench.stages.backup.restore import checked_backup, restore_backup
from duplex_bench.stages.stored_tables import unreadable_tables
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.storage.places import open_store

_RUN_LOGS = "dagster/history/runs/"


def back_up(data: Path, folder: Path) -> int:
    """Make or renew a backup; returns the exit code."""
    _told("backed up", make_backup(open_store(data), data, folder), folder)
    return 0


def put_back(data: Path, folder: Path, check_only: bool) -> int:
    """Check a backup, and unless ``check_only`` put it into an empty data folder and store; returns the exit code."""
    if check_only:
        _told("whole", checked_backup(folder), folder)
        return 0
    store = open_store(data)
    manifest = restore_backup(folder, store, data)
    _told("restored", manifest, folder)
    return _say_tables(store)


def upgrade(root: Path, data: Path, check_only: bool) -> int:
    """Say which stored tables this version cannot read, and bring the run database up to this Dagster's schema.

    Returns:
        1 if there are tables to make again, else 0.
    """
    import dagster as dg

    home = os.environ.get("DAGSTER_HOME") or str(dagster_home(root, data))
    with chdir(home):
        code = _say_tables(open_store(data))
        if check_only:
            return code
        with dg.DagsterInstance.from_config(home) as instance:
            instance.upgrade(console.print)
            console.print(f"run database: {instance.get_runs_count()} runs, schema of dagster {dg.__version__}")
    return code


def _say_tables(store: ObjectStore) -> int:
    wrong = unreadable_tables(store)
    for key, why in wrong.items():
        console.print(f"[yellow]{key}:[/] {why}", highlight=False, soft_wrap=True)
    if wrong:
        console.print(f"{len(wrong)} tables are to be made again: duplex-bench run (finished rollouts are kept)")
    else:
        console.print(f"every stored table can be read by duplex_bench {__version__}", highlight=False)
    return 1 if wrong else 0


def _told(done: str, manifest: Manifest, folder: Path) -> None:
    size = sum(file.size for file in manifest.files.values())
    # A run that was logged in SQLite has a file of its own: a hundred names say less than their number.
    of_runs = {name for name in manifest.databases if name.startswith(_RUN_LOGS) and not name.endswith("/index.db")}
    kept = sorted(set(manifest.databases) - of_runs)
    databases = ", ".join([*kept, *([f"logs of {len(of_runs)} runs"] if of_runs else [])]) or "no database"
    console.print(
        f"{done}: {len(manifest.files)} files, {size / 1e6:.1f} MB, {databases}; of duplex_bench {manifest.version}, "
        f"{manifest.made_at}, in {folder}",
        highlight=False,
        soft_wrap=True,
    )
