"""``duplex-bench cluster prove``: the profile on a cluster, under fire, against the same profile in one process."""

import os
import signal
import subprocess
import sys
import time
from importlib.resources import files
from pathlib import Path

from duplex_bench.cli.cluster.control import bring_down, environment
from duplex_bench.cli.cluster.processes import Processes, wait_until
from duplex_bench.cli.cluster.settings import Runs, listens, own_services
from duplex_bench.cli.console import console
from duplex_bench.stages.pulse import pulses
from duplex_bench.stages.same_tables import Side, TablesCompared, compare_tables
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.places import open_store

KILLED = ("daemon", "postgres")
"""What is killed, by SIGKILL, beside a worker whose rollouts are under way (ours)."""
ROLLOUTS_WITHIN_S = 3_600.0
MOST_BACKFILLS = 3
GONE_WITHIN_S = 30.0


def prove(root: Path, profile: str, systems: list[str], limit: int | None) -> int:
    """Run it plainly, run it on a cluster whose parts are killed, compare; 0 if every table is the same."""
    plain = root / "plain"
    began = time.monotonic()
    plain.mkdir(parents=True, exist_ok=True)
    for name in ("dagster.yaml", "workspace.yaml"):
        (plain / name).write_text((files("duplex_bench.cli.templates") / name).read_text("utf-8"), "utf-8")
    wanted = [part for name in systems for part in ("-s", name)] + (["--limit", str(limit)] if limit else [])
    command = [sys.executable, "-m", "duplex_bench.cli.main"]
    code = subprocess.run(
        [*command, "run", "-p", profile, "--data", "data", *wanted], cwd=plain, check=False
    ).returncode
    if code:
        console.print("the plain run failed: nothing to compare with", highlight=False)
        return code
    console.print(f"plain run: {time.monotonic() - began:.0f} s", highlight=False)

    began = time.monotonic()
    # In a process of its own, which sees the environment of the caller: this one goes on to name the services in its
    # own, and what is named there is not started.
    up = [*command, "cluster", "up", "--folder", ".", "-p", profile, *(["--limit", str(limit)] if limit else [])]
    subprocess.run(up, cwd=root, check=True)
    given = dict(os.environ)
    backfill = [*command, "cluster", "backfill", "--folder", ".", "-p", profile, "--wait", *wanted]
    first = subprocess.Popen(backfill, cwd=root, env=given)
    try:
        code = _killed_and_resumed(root, profile, limit, first, up, given)
    finally:
        first.kill()
    for _ in range(MOST_BACKFILLS - 1):
        if code == 0:
            break
        console.print("run again: finished items are kept", highlight=False)
        code = subprocess.run(backfill, cwd=root, env=given, check=False).returncode
    if code:
        return code
    console.print(f"cluster run, killed and resumed: {time.monotonic() - began:.0f} s", highlight=False)
    name = open_workspace(profile, root / "data", limit).profile.name
    before = Side(FolderStore(plain / "data" / "store"), plain / "data")
    found = compare_tables(name, before, Side(open_store(root / "data"), root / "data"))
    tell(found)
    bring_down(root)
    return 1 if found.different or not found.same_bytes else 0


def _killed_and_resumed(
    root: Path, profile: str, limit: int | None, first: "subprocess.Popen[bytes]", up: list[str], given: dict[str, str]
) -> int:
    """Kill parts while rollouts are under way, start them again, wait for the backfill; its exit code.

    Raises:
        ValueError: the backfill ended before a rollout was seen under way, so that nothing was put to the test.
    """
    os.environ.update(environment(root, own_services(root), Runs(profile, limit)))
    store = open_store(root / "data")

    processes = Processes(root / "processes")
    workers: list[str] = []

    def in_rollouts() -> bool:
        under_way = [pulse.process for pulse in pulses(store) if "rollouts" in pulse.stage and pulse.done]
        workers[:] = [name for process in under_way if (name := processes.owner(process)) is not None]
        return first.poll() is not None or bool(workers)

    if not wait_until(in_rollouts, ROLLOUTS_WITHIN_S) or first.poll() is not None:
        raise ValueError("no rollout was seen under way, so nothing was killed: take a new --folder, or more items")
    killed, names = time.monotonic(), (workers[0], *KILLED)
    for name in names:
        running = processes.running(name)
        if running is not None:
            os.kill(running.pid, signal.SIGKILL)
    # A server whose ports are still held by what it leaves behind would look as if it ran.
    own = own_services(root)
    if not wait_until(lambda: not (processes.running("postgres") or listens(own.postgres_port)), GONE_WITHIN_S):
        raise ValueError("Postgres was killed and its port is still held: see processes/postgres.log")
    subprocess.run(up, cwd=root, env=given, check=True)
    console.print(
        f"killed during rollouts: {', '.join(names)}; started again within {time.monotonic() - killed:.0f} s",
        highlight=False,
    )
    return first.wait()


def tell(found: TablesCompared) -> None:
    """Say how many tables are the same."""
    console.print(
        f"tables the same byte for byte: {len(found.same_bytes)}; the same but for the time a run took: "
        f"{len(found.same_but_times)}; different: {len(found.different)}",
        highlight=False,
    )
    for key in found.different:
        console.print(f"[red]different:[/] {key}", highlight=False)
