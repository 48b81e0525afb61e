"""A whole cluster on this machine: Postgres, object store, Redis, Celery workers, killed and going on."""

import os
import shutil
import subprocess
import sys
import tempfile
from importlib.resources import files
from pathlib import Path

import httpx
import pytest

from duplex_bench.cli.cluster.control import environment
from duplex_bench.cli.cluster.processes import Processes, wait_until
from duplex_bench.cli.cluster.settings import own_services

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3_600)]

COMMAND = [sys.executable, "-m", "duplex_bench.cli.main", "cluster"]
KEPT_FOLDER = "DUPLEX_BENCH_TEST_CLUSTER"
SYSTEMS = ["-s", "never-speak", "-s", "always-speak"]


def cluster(folder, *words, check=True):
    return subprocess.run([*COMMAND, *words, "--folder", "."], cwd=folder, capture_output=True, text=True, check=check)


@pytest.fixture(scope="module")
def proved():
    """The folder of a cluster on which a plain and a killed run came out the same, and what was said.

    KEPT_FOLDER names one to go on in, whose plain run may be finished. It is none of pytest's own folders, which only
    root may enter: Postgres runs as another user.
    """
    kept = os.environ.get(KEPT_FOLDER)
    folder = Path(kept or tempfile.mkdtemp(prefix="duplex-cluster-"))
    folder.chmod(0o711)
    try:
        done = cluster(folder, "prove", "--limit", "2", *SYSTEMS, check=False)
        yield folder, done
    finally:
        cluster(folder, "down", check=False)
        if not kept:
            shutil.rmtree(folder)


def test_a_killed_and_resumed_cluster_gives_the_tables_of_the_plain_run(proved):
    _, done = proved
    assert done.returncode == 0, done.stdout + done.stderr
    assert "killed during rollouts: worker-1, daemon, postgres" in done.stdout
    assert "different: 0" in done.stdout


def test_nothing_secret_is_in_what_the_run_wrote(proved):
    folder, done = proved
    own = own_services(folder)
    known = {folder / name for name in ("services.json", "redis.conf", "objects.json")}
    for secret in (own.password, own.secret_key):
        assert secret not in done.stdout + done.stderr
        found = subprocess.run(
            ["grep", "-rlF", secret, str(folder)], capture_output=True, text=True, check=False
        ).stdout
        assert {line for line in found.splitlines() if "/postgres/" not in line} <= {str(path) for path in known}
    assert all(path.stat().st_mode & 0o077 == 0 for path in known)


def test_two_backfills_of_the_same_systems_at_once_do_nothing_twice(proved):
    folder, _ = proved
    cluster(folder, "up", "--limit", "2")
    names = environment(folder, own_services(folder), "demo", 2)
    words = [*COMMAND, "backfill", "--folder", ".", "--limit", "2", "--wait", *SYSTEMS]
    both = [subprocess.Popen(words, cwd=folder, env=names, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    told = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], told
    status = cluster(folder, "backfill", "--only", "failed", "--limit", "2", *SYSTEMS).stdout
    assert "no system has failed items" in status


def test_a_run_that_needs_a_gpu_waits_for_a_worker_of_that_queue(proved):
    folder, _ = proved
    card = folder / "data" / "systems" / "on-gpu.toml"
    card.parent.mkdir(exist_ok=True)
    shipped = (files("duplex_bench.systems") / "cards" / "never-speak.toml").read_text("utf-8")
    card.write_text(shipped.replace('name = "never-speak"', 'name = "on-gpu"\ngpu = true'), "utf-8")
    cluster(folder, "down")
    cluster(folder, "up", "--limit", "2", "--queue", "dagster")
    words = [*COMMAND, "backfill", "--folder", ".", "--limit", "2", "--wait", "-s", "on-gpu"]
    waiting = subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True)
    own = own_services(folder)
    query = "{ runsOrError { ... on Runs { results { status tags { key value } } } } }"

    def tagged():
        runs = httpx.post(f"http://127.0.0.1:{own.web_port}/graphql", json={"query": query}, timeout=60).json()
        found = [
            (run["status"], {tag["key"]: tag["value"] for tag in run["tags"]})
            for run in runs["data"]["runsOrError"]["results"]
        ]
        return [status for status, tags in found if tags.get("dagster-celery/queue") == "gpu"]

    assert wait_until(lambda: "STARTING" in tagged(), 180)
    assert not wait_until(lambda: "STARTED" in tagged() or "SUCCESS" in tagged(), 15)
    names = environment(folder, own, "demo", 2)
    app = [sys.executable, "-m", "celery", "-A", "duplex_bench.lib.celery_app", "worker", "-Q", "gpu", "-c", "1"]
    Processes(folder / "processes").start("worker-gpu", app, {**os.environ, **names}, folder)
    told = waiting.communicate(timeout=1_200)[0]
    assert waiting.returncode == 0, told
