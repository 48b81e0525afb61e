"""Start, end and show the processes of a cluster folder."""

import os
import re
import signal
import subprocess
import sys
from contextlib import chdir
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

from rich.table import Table

from duplex_bench.cli.cluster.processes import Processes, wait_until
from duplex_bench.cli.cluster.services import STARTERS, STOP_SIGNALS
from duplex_bench.cli.cluster.settings import (
    DATA_VARIABLE,
    HOST,
    LIMIT_VARIABLE,
    LOG_BUCKET_VARIABLE,
    PROFILE_VARIABLE,
    WEB_VARIABLE,
    OwnServices,
    Runs,
    listens,
    log_bucket,
    note_runs,
    own_services,
    runs_of,
    started_here,
    wanted_runs,
)
from duplex_bench.cli.console import console
from duplex_bench.cli.under_way import show_under_way
from duplex_bench.lib.broker import BROKER_VARIABLE, POSTGRES_VARIABLE
from duplex_bench.stages.cards import readable_cards
from duplex_bench.storage.places import STORE_VARIABLE, open_store

WEB_WITHIN_S = 120.0
_NEEDED_BY = {"postgres": POSTGRES_VARIABLE, "redis": BROKER_VARIABLE, "objects": STORE_VARIABLE}
# Workers first, so that nothing is begun while its ground is taken away.
_STOP_ORDER = ("worker", "daemon", "web", "redis", "objects", "postgres")


def write_files(root: Path, workers: int) -> bool:
    """dagster.yaml and workspace.yaml of a cluster, if they are missing; as many runs at a time as workers.

    Returns whether processes that read them before would go on with something else.
    """
    root.mkdir(parents=True, exist_ok=True)
    for name, template in (("dagster.yaml", "dagster-cluster.yaml"), ("workspace.yaml", "workspace.yaml")):
        target = root / name
        if not target.exists():
            target.write_text((files("duplex_bench.cli.templates") / template).read_text("utf-8"), "utf-8")
    told = (root / "dagster.yaml").read_text("utf-8")
    at_once = re.sub(r"(?m)^(\s+max_concurrent_runs:) \d+$", rf"\1 {max(workers, 1)}", told)
    if at_once != told:
        (root / "dagster.yaml").write_text(at_once, "utf-8")
    return at_once != told


def environment(root: Path, own: OwnServices, runs: Runs) -> dict[str, str]:
    """The environment of every process of the cluster."""
    return {
        **os.environ,
        **own.environment(),
        WEB_VARIABLE: os.environ.get(WEB_VARIABLE) or f"http://{HOST}:{own.web_port}",
        "DAGSTER_HOME": str(root),
        "DAGSTER_DISABLE_TELEMETRY": "1",
        PROFILE_VARIABLE: runs.profile,
        DATA_VARIABLE: str(root / "data"),
        LIMIT_VARIABLE: str(runs.limit or 0),
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
    }


def environment_of_commands(root: Path, runs: Runs) -> dict[str, str]:
    """The environment of a command that works with the cluster of a folder, or, where none was started in it, with the
    web server and the object store that the environment names.

    Raises:
        ValueError: neither is there.
    """
    if started_here(root):
        return environment(root, own_services(root), runs)
    lacking = [name for name in (WEB_VARIABLE, STORE_VARIABLE) if not os.environ.get(name)]
    if lacking:
        raise ValueError(
            f"no cluster in {root}: `duplex-bench cluster up` starts one, --folder names another; for one of several "
            f"machines set {', '.join(lacking)}"
        )
    data = os.environ.get(DATA_VARIABLE) or str(root / "data")
    return {**os.environ, DATA_VARIABLE: data, PROFILE_VARIABLE: runs.profile, LIMIT_VARIABLE: str(runs.limit or 0)}


def bring_up(root: Path, runs: Runs, workers: int, queues: list[str]) -> None:
    """Start what is not running: services that the environment does not name, daemon, web server, workers.

    What runs and was told otherwise (another profile or limit, another number of workers, a new card) is ended and
    started again.

    Raises:
        ValueError: a service is missing on this machine, or did not start; the message names its log.
    """
    changed = write_files(root, workers)
    own = own_services(root)
    processes = Processes(root / "processes")
    before, systems = runs_of(root), tuple(readable_cards(root / "data" / "systems")[0])
    # Systems are read when the code location is loaded, the number of runs at once when the daemon starts.
    changed = changed or (before is not None and before.systems != systems)
    _stop_what_differs(processes, ["daemon", "web"] if changed else [], before is not None and before != runs)
    note_runs(root, replace(runs, systems=systems))
    for name, variable in _NEEDED_BY.items():
        if not os.environ.get(variable):
            STARTERS[name](processes, root, own)
    names = environment(root, own, runs)
    _prepare(root, names)
    command = [sys.executable, "-m"]
    for number in range(1, workers + 1):
        processes.start(f"worker-{number}", [*command, *_worker(number, queues)], names, root)
    processes.start("daemon", [*command, "dagster._daemon", "run", "-w", "workspace.yaml"], names, root)
    web = ["dagster_webserver", "-h", HOST, "-p", str(own.web_port), "-w", "workspace.yaml"]
    processes.start("web", [*command, *web], names, root)
    if not wait_until(lambda: listens(own.web_port), WEB_WITHIN_S):
        raise ValueError(f"the Dagster web server did not start: see {processes.log('web')}")
    console.print(f"[bold]Dagster UI:[/] http://{HOST}:{own.web_port}", highlight=False)
    console.print(
        f"{runs}: {workers} workers on queues {', '.join(queues)}; logs in {processes.log('web').parent}",
        highlight=False,
    )


def _stop_what_differs(processes: Processes, changed: list[str], other_runs: bool) -> None:
    named = [name for name in processes.names() if name.split("-")[0] in {"worker", "daemon", "web"}]
    for name in sorted(named, reverse=True) if other_runs else changed:
        if processes.running(name) is not None:
            processes.stop(name)
            console.print(f"{name} is started again: it was told otherwise", highlight=False)


def _worker(number: int, queues: list[str]) -> list[str]:
    # A fresh process for each run: cards and code are those of today, and a run's memory ends with it.
    return [
        "celery", "-A", "duplex_bench.lib.celery_app", "worker", "-n", f"worker-{number}@%h", "-Q", ",".join(queues),
        "--concurrency", "1", "--max-tasks-per-child", "1", "--without-mingle", "--without-gossip", "-l", "INFO",
    ]  # fmt: skip


def initialise_cluster(root: Path, workers: int) -> None:
    """Write the files of a cluster whose services the environment names, make the buckets, open the run database.

    Raises:
        ValueError: a variable that names a service is not set.
    """
    lacking = [name for name in (POSTGRES_VARIABLE, BROKER_VARIABLE, STORE_VARIABLE) if not os.environ.get(name)]
    if lacking:
        raise ValueError(f"set {', '.join(lacking)}, or let `duplex-bench cluster up` start them (docs/cluster.md)")
    home = os.environ.get("DAGSTER_HOME")
    if home and Path(home).resolve() != root.resolve():
        raise ValueError(
            f"DAGSTER_HOME names {home}, where no process would find dagster.yaml of {root}: go there first"
        )
    logs = log_bucket()
    unset = {"DAGSTER_HOME": str(root), LOG_BUCKET_VARIABLE: logs}
    unset = {name: value for name, value in unset.items() if not os.environ.get(name)}
    write_files(root, workers)
    _prepare(root, {**os.environ, "DAGSTER_HOME": str(root), LOG_BUCKET_VARIABLE: logs})
    console.print(
        f"{root / 'dagster.yaml'} and workspace.yaml stand, buckets and run database are ready", highlight=False
    )
    for name, value in unset.items():
        console.print(f"set {name}={value} for the daemon, the web server and the workers", highlight=False)


def _prepare(root: Path, names: dict[str, str]) -> None:
    """Make the buckets, and the tables of the run database once, alone, before several processes want to."""
    os.environ.update(names)
    import dagster as dg

    from duplex_bench.storage.s3_store import s3_store

    store = s3_store(names[STORE_VARIABLE])
    store.make_bucket()
    store.check_conditions()
    if names[LOG_BUCKET_VARIABLE] != store.bucket:
        # A real S3 makes no bucket by itself, and steps would lose their logs one by one.
        s3_store(f"s3://{names[LOG_BUCKET_VARIABLE]}").make_bucket()
    with chdir(root), dg.DagsterInstance.get() as instance:
        instance.get_runs_count()


def bring_down(root: Path) -> None:
    """End what ``bring_up`` started here."""
    processes = Processes(root / "processes")
    running = processes.names()
    for kind in _STOP_ORDER:
        for name in running:
            if name.split("-")[0] == kind:
                processes.stop(name, STOP_SIGNALS.get(kind, signal.SIGTERM))
    console.print(f"ended: {', '.join(running) or 'nothing ran'}", highlight=False)


def run_inside(root: Path, command: list[str]) -> int:
    """Run a command as a process of the cluster would be run; its exit code.

    It runs in the cluster's folder, or in the current one where the services are those that the environment names.

    Raises:
        ValueError: no cluster was ever started here and none is named, or there is no such command.
    """
    names = environment_of_commands(root, wanted_runs(root, None, None))
    program = Path(sys.executable).parent / command[0]
    first = str(program) if program.is_file() else command[0]
    try:
        where = root if started_here(root) else Path.cwd()
        return subprocess.run([first, *command[1:]], cwd=where, env=names, check=False).returncode
    except FileNotFoundError:
        raise ValueError(f"no command {command[0]}") from None


def show(root: Path) -> None:
    """Processes, and the runs under way with their items.

    Raises:
        ValueError: there is no cluster.
    """
    names = environment_of_commands(root, wanted_runs(root, None, None))
    processes = Processes(root / "processes")
    table = Table("process", "state", box=None)
    for name in processes.names():
        table.add_row(name, "[green]runs[/]" if processes.running(name) else "[red]ended[/]")
    if table.row_count:
        console.print(table)
    else:
        console.print("no process was started from here: `duplex-bench health` asks daemon, web server and queue")
    os.environ.update(names)
    if not show_under_way(open_store(names[DATA_VARIABLE])):
        console.print("no run is under way")
