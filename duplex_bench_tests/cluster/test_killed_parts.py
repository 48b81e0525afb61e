"""Parts of the cluster are killed or stopped while a run is under way; then every item is there as it should be."""

import os
import signal
from importlib.resources import files
from pathlib import Path

import pytest

from duplex_bench.cli.cluster.control import environment
from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.cli.cluster.settings import Runs, own_services
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.storage.frames import read_frame

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3_600)]

PARTS = ("objects", "redis", "postgres", "daemon", "worker-1")
OF = "always-speak"


@pytest.fixture
def tables(cluster):
    """Reads a table of the cluster's store, with its addresses in the environment only while it does."""

    def read(*path, system):
        with pytest.MonkeyPatch.context() as patched:
            for name, value in environment(cluster.folder, own_services(cluster.folder), Runs("demo", 2)).items():
                patched.setenv(name, value)
            workspace = open_workspace("demo", cluster.folder / "data", 2)
            return read_frame(workspace.store, workspace.table_key(path, system))

    return read


def heard(tables, system):
    """What each item of a system came out as, without the keys, which the system's name is in."""
    found = {}
    for track in ("multiparty", "conversation"):
        columns = ["item_id", "repeat", "outcome", "listener_audio"]
        found[track] = sorted(tables(track, "rollouts", system=system).select(columns).rows())
    return found


def begun(cluster, name):
    """A backfill of a card of this name, one of whose runs is under way."""
    shipped = (files("duplex_bench.systems") / "cards" / f"{OF}.toml").read_text("utf-8")
    folder = cluster.folder / "data" / "systems"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(shipped.replace(f'"{OF}"', f'"{name}"', 1), "utf-8")
    cluster.run("up", *cluster.limit)
    first = cluster.start("backfill", "--wait", *cluster.limit, "-s", name)
    assert wait_until(lambda: any(status == "STARTED" for _, status in runs_of(cluster, name)), 600)
    return first


def runs_of(cluster, name):
    """Id and status of the runs of a system's stages, newest first."""
    return [
        (run_id, status)
        for run_id, status, tags, assets in cluster.runs()
        if tags.get("dagster/partition") == name and "conversation/rollouts" in assets
    ]


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_costs_no_finished_item(cluster, tables, part):
    name = f"killed-{part}"
    first = begun(cluster, name)
    os.kill(cluster.processes().running(part).pid, signal.SIGKILL)
    assert wait_until(lambda: cluster.processes().running(part) is None, 30)
    cluster.run("up", *cluster.limit)
    code, told = first.wait(1_800), first.stdout.read()
    if part == "objects":
        # A run may end with the store as its reason: then it is for a person to say that it is back.
        again = cluster.run("backfill", "--wait", *cluster.limit, "-s", name)
        code, told = again.returncode, told + again.stdout
    assert code == 0, told
    assert "no system has failed items" in cluster.run("backfill", "--only", "failed", "-s", name).stdout
    assert heard(tables, name) == heard(tables, OF)


def below(pid):
    """A process and all that it started, parents first."""
    try:
        lists = [(task / "children").read_text() for task in Path(f"/proc/{pid}/task").iterdir()]
    except OSError:
        return [pid]
    return [pid, *(other for children in lists for child in children.split() for other in below(int(child)))]


def words_of(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


def test_a_stopped_worker_is_given_up_and_its_run_leaves_when_it_goes_on(cluster, tables):
    first = begun(cluster, "stopped")
    workers = [below(cluster.processes().running(name).pid) for name in ("worker-1", "worker-2")]
    ((lost, _),) = runs_of(cluster, "stopped")
    (stopped,) = [worker for worker in workers if any(lost in words_of(pid) for pid in worker)]
    (making,) = [pid for pid in stopped if lost in words_of(pid)]
    for pid in stopped:
        os.kill(pid, signal.SIGSTOP)
    try:
        assert wait_until(lambda: [one for _, one in runs_of(cluster, "stopped")] == ["SUCCESS", "FAILURE"], 900)
    finally:
        for pid in reversed(stopped):
            os.kill(pid, signal.SIGCONT)
    assert wait_until(lambda: lost not in words_of(making), 60)
    code, told = first.wait(1_800), first.stdout.read()
    assert code == 0, told
    # The one that was given up had no last word, and its worker takes runs.
    assert [one for _, one in runs_of(cluster, "stopped")] == ["SUCCESS", "FAILURE"]
    assert cluster.run("backfill", "--wait", *cluster.limit, "-s", "stopped").returncode == 0
    assert heard(tables, "stopped") == heard(tables, OF)
