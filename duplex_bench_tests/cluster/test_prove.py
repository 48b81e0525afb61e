"""A whole cluster on this machine: Postgres, object store, Redis, Celery workers, killed and going on."""

import os
import re
import subprocess
import sys
from importlib.resources import files

import pytest

from duplex_bench.cli.cluster.control import environment
from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.cli.cluster.settings import Runs, own_services

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3_600)]


def test_a_killed_and_resumed_cluster_gives_the_tables_of_the_plain_run(cluster):
    done = cluster.proof
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"killed during rollouts: worker-[12], daemon, postgres", done.stdout)
    assert "different: 0" in done.stdout


def test_nothing_secret_is_in_what_the_run_wrote(cluster):
    folder, done = cluster.folder, cluster.proof
    own = own_services(folder)
    known = {folder / name for name in ("services.json", "redis.conf", "objects.json")}
    for secret in (own.password, own.secret_key):
        assert secret not in done.stdout + done.stderr
        found = subprocess.run(
            ["grep", "-rlF", secret, str(folder)], capture_output=True, text=True, check=False
        ).stdout
        assert {line for line in found.splitlines() if "/postgres/" not in line} <= {str(path) for path in known}
    assert all(path.stat().st_mode & 0o077 == 0 for path in known)


def test_two_backfills_of_the_same_systems_at_once_do_nothing_twice(cluster):
    cluster.run("up", *cluster.limit)
    both = [cluster.start("backfill", "--wait", *cluster.limit, *cluster.systems) for _ in range(2)]
    told = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    status = cluster.run("backfill", "--only", "failed", *cluster.limit, *cluster.systems).stdout
    assert "no system has failed items" in status


def test_a_run_that_needs_a_gpu_waits_for_a_worker_of_that_queue(cluster):
    folder = cluster.folder
    card = folder / "data" / "systems" / "on-gpu.toml"
    card.parent.mkdir(exist_ok=True)
    shipped = (files("duplex_bench.systems") / "cards" / "never-speak.toml").read_text("utf-8")
    card.write_text(shipped.replace('name = "never-speak"', 'name = "on-gpu"\ngpu = true'), "utf-8")
    cluster.run("down")
    cluster.run("up", *cluster.limit, "--queue", "dagster")
    waiting = cluster.start("backfill", "--wait", *cluster.limit, "-s", "on-gpu")

    def tagged():
        return [status for _, status, tags, _ in cluster.runs() if tags.get("dagster-celery/queue") == "gpu"]

    assert wait_until(lambda: "STARTING" in tagged(), 180)
    assert not wait_until(lambda: "STARTED" in tagged() or "SUCCESS" in tagged(), 15)
    names = environment(folder, own_services(folder), Runs("demo", 2))
    app = [sys.executable, "-m", "celery", "-A", "duplex_bench.lib.celery_app", "worker", "-Q", "gpu", "-c", "1"]
    cluster.processes().start("worker-gpu", app, {**os.environ, **names}, folder)
    told = waiting.communicate(timeout=1_200)[0]
    assert waiting.returncode == 0, told
