"""The same cluster with a real RabbitMQ as its broker: workers and the broker itself are killed, and it goes on."""

import os
import signal
import subprocess
from importlib.resources import files

import pytest

from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.lib.broker import BROKER_VARIABLE, queue_lengths

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(3_600)]

NAMES = ("rabbit-one", "rabbit-two", "rabbit-three")


@pytest.fixture(scope="module")
def over_rabbitmq(cluster, rabbitmq):
    """The cluster, whose next ``up`` uses RabbitMQ, with systems that never ran."""
    shipped = (files("duplex_bench.systems") / "cards" / "always-speak.toml").read_text("utf-8")
    folder = cluster.folder / "data" / "systems"
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        (folder / f"{name}.toml").write_text(shipped.replace('"always-speak"', f'"{name}"', 1), "utf-8")
    cluster.run("down")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(BROKER_VARIABLE, rabbitmq.address)
        yield cluster
        cluster.run("down")


def of_rollouts(cluster, names):
    """Id and status of each run that makes rollouts of the systems, the newest first."""
    return [
        (run, status)
        for run, status, tags, assets in cluster.runs()
        if tags.get("dagster/partition") in names and any(asset.endswith("/rollouts") for asset in assets)
    ]


def test_a_run_waits_in_rabbitmq_until_a_worker_comes(over_rabbitmq, rabbitmq):
    over_rabbitmq.run("up", *over_rabbitmq.limit, "--workers", "0")
    assert "redis" not in over_rabbitmq.processes().names()
    waiting = over_rabbitmq.start("backfill", "--wait", *over_rabbitmq.limit, "-s", NAMES[0])
    assert wait_until(lambda: queue_lengths(rabbitmq.address)["dagster"] == 1, 300)
    over_rabbitmq.run("up", *over_rabbitmq.limit, "--workers", "2")
    told = waiting.communicate(timeout=1_800)[0]
    assert waiting.returncode == 0, told
    assert queue_lengths(rabbitmq.address) == {"dagster": 0, "gpu": 0}


def test_a_killed_workers_run_is_made_again_and_no_run_waits_behind_a_busy_worker(over_rabbitmq, rabbitmq):
    names = NAMES[1:]
    waiting = over_rabbitmq.start("backfill", "--wait", *over_rabbitmq.limit, "-s", names[0], "-s", names[1])

    def started():
        return [run for run, status in of_rollouts(over_rabbitmq, names) if status == "STARTED"]

    # Both at once: neither was handed to a worker that was busy.
    assert wait_until(lambda: len(started()) == 2, 900)
    os.kill(over_rabbitmq.processes().running("worker-1").pid, signal.SIGKILL)
    at_work = set(started())
    over_rabbitmq.run("up", *over_rabbitmq.limit)
    told = waiting.communicate(timeout=1_800)[0]
    assert waiting.returncode == 0, told
    # What RabbitMQ handed out again had begun: it was passed over, and the launcher's own retry made it.
    ended = dict(of_rollouts(over_rabbitmq, names))
    assert [ended[run] for run in at_work].count("FAILURE") == 1
    assert queue_lengths(rabbitmq.address) == {"dagster": 0, "gpu": 0}


def test_a_killed_broker_costs_no_run_that_is_under_way(over_rabbitmq, rabbitmq):
    waiting = over_rabbitmq.start("backfill", "--wait", *over_rabbitmq.limit, "-s", NAMES[0], "-s", NAMES[1])
    before = {run for run, *_ in over_rabbitmq.runs()}

    def new():
        return [status for run, status, *_ in over_rabbitmq.runs() if run not in before]

    assert wait_until(lambda: "STARTED" in new(), 300)
    rabbitmq.kill()
    rabbitmq.start()
    told = waiting.communicate(timeout=1_800)[0]
    assert waiting.returncode == 0, told
    assert set(new()) == {"SUCCESS"}


def test_the_brokers_password_is_in_no_file_of_the_cluster(over_rabbitmq, rabbitmq):
    command = ["grep", "-rlF", rabbitmq.password, str(over_rabbitmq.folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == ""
