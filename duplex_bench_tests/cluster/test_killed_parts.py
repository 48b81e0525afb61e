"""Each part of the cluster is ended by SIGKILL while a run is under way; then every item is there as it should be."""

import os
import signal
from importlib.resources import files

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


@pytest.mark.parametrize("part", PARTS)
def test_a_killed_part_costs_no_finished_item(cluster, tables, part):
    name = f"killed-{part}"
    shipped = (files("duplex_bench.systems") / "cards" / f"{OF}.toml").read_text("utf-8")
    folder = cluster.folder / "data" / "systems"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.toml").write_text(shipped.replace(f'"{OF}"', f'"{name}"', 1), "utf-8")
    cluster.run("up", *cluster.limit)
    first = cluster.start("backfill", "--wait", *cluster.limit, "-s", name)

    def under_way():
        return any(
            status == "STARTED" and tags.get("dagster/partition") == name and "conversation/rollouts" in assets
            for _, status, tags, assets in cluster.runs()
        )

    assert wait_until(under_way, 600)
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
