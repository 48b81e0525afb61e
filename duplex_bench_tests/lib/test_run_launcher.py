"""The launcher's health check: a run is as alive as its pulse, whatever the broker thinks."""

import json
import subprocess
import sys
from dataclasses import asdict
from types import SimpleNamespace

import pytest
from dagster._core.launcher import WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG
from sqlalchemy.exc import OperationalError

from duplex_bench.lib import run_launcher
from duplex_bench.lib.run_launcher import DEAD_AFTER_LOOKS, WatchedCeleryRunLauncher
from duplex_bench.lib.run_process import ended_elsewhere
from duplex_bench.stages import progress, pulse
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.dagster

RUN = SimpleNamespace(run_id="run-1", tags={})


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_DATA", str(tmp_path))
    monkeypatch.delenv("DUPLEX_BENCH_STORE", raising=False)
    return FolderStore(tmp_path / "store")


@pytest.fixture
def launcher():
    return WatchedCeleryRunLauncher("dagster", broker="memory://", backend="cache+memory://")


def beat(store, number):
    store.put(f"runs/{RUN.run_id}.json", pulse_json(number))


def pulse_json(number):
    return json.dumps(asdict(pulse.Pulse(RUN.run_id, number, "rollouts", 3, 9, 0, "host", 7))).encode()


def test_a_pulse_that_stands_still_is_dead_after_some_looks_and_forgotten(store, launcher):
    beat(store, 1)
    looks = [launcher.check_run_worker_health(RUN).status for _ in range(DEAD_AFTER_LOOKS)]
    assert looks == [WorkerStatus.RUNNING] * DEAD_AFTER_LOOKS
    dead = launcher.check_run_worker_health(RUN)
    assert dead.status == WorkerStatus.FAILED
    assert "process 7 on host" in dead.msg
    assert list(store.keys("runs")) == []


def test_a_pulse_that_counts_up_is_alive_for_as_long_as_it_does(store, launcher):
    for number in range(5 * DEAD_AFTER_LOOKS):
        beat(store, number)
        assert launcher.check_run_worker_health(RUN).status == WorkerStatus.RUNNING
        assert launcher.check_run_worker_health(RUN).status == WorkerStatus.RUNNING


def test_a_run_that_never_had_a_pulse_is_dead_too(store, launcher):
    looks = [launcher.check_run_worker_health(RUN).status for _ in range(DEAD_AFTER_LOOKS + 1)]
    assert looks[-1] == WorkerStatus.FAILED


@pytest.mark.parametrize(("said", "expected"), [("FAILED", "FAILED"), ("UNKNOWN", "RUNNING"), ("SUCCESS", "RUNNING")])
def test_the_broker_is_believed_about_failure_alone(store, launcher, monkeypatch, said, expected):
    # Redis that was emptied calls every task unknown: Dagster's own launcher would fail the run.
    monkeypatch.setattr(
        CeleryRunLauncher,
        "check_run_worker_health",
        lambda *_: run_launcher.CheckRunHealthResult(WorkerStatus[said], "said so"),
    )
    run = SimpleNamespace(run_id="run-1", tags={DAGSTER_CELERY_TASK_ID_TAG: "task"})
    beat(store, 1)
    assert launcher.check_run_worker_health(run).status == WorkerStatus[expected]


def test_a_store_that_is_away_kills_no_run(launcher, monkeypatch):
    class Away:
        def get(self, _):
            raise OSError("away")

    monkeypatch.setattr(run_launcher, "_store", Away)
    looks = [launcher.check_run_worker_health(RUN).status for _ in range(3 * DEAD_AFTER_LOOKS)]
    assert set(looks) == {WorkerStatus.RUNNING}


def test_a_run_beats_tells_its_stage_and_is_forgotten_at_its_end(tmp_path, monkeypatch):
    monkeypatch.setattr(pulse, "PULSE_EVERY_S", 0.01)
    monkeypatch.setattr(pulse, "LOG_EVERY_S", 0.0)
    store, logged = FolderStore(tmp_path), []
    with pulse.beating(store, "run-2", logged.append), pulse.beating(store, "run-2", logged.append):
        progress.tell(progress.Progress("conversation rollouts x", 4, 36, 1, 2))
        seen = None
        while seen is None or seen.beat < 3 or not seen.total:
            seen = pulse.read_pulse(store, "run-2")
        assert (seen.stage, seen.done, seen.total, seen.failed) == ("conversation rollouts x", 4, 36, 2)
        assert [one.run_id for one in pulse.pulses(store)] == ["run-2"]
    assert pulse.pulses(store) == []
    assert logged == ["conversation rollouts x: 4 of 36 items, 1 from before, 2 failed"]


RUN_THAT_IS_STOPPED = """
import sys, threading
from pathlib import Path
import dagster as dg
from dagster._core.test_utils import create_run_for_test
from duplex_bench.lib.run_process import ended_elsewhere
from duplex_bench.stages import pulse
from duplex_bench.storage.object_store import FolderStore

pulse.PULSE_EVERY_S = pulse.LOOK_EVERY_S = pulse.LAST_WORD_S = 0.05
store, how = FolderStore(Path(sys.argv[1])), sys.argv[2]
with dg.DagsterInstance.ephemeral() as instance:
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
    pulse.end_if(run.run_id, lambda: ended_elsewhere(instance, run.run_id))
    if how == "before its first beat":
        pulse.LOOK_EVERY_S = 300.0
        instance.report_run_failed(run)
        print("lives", flush=True)
    with pulse.beating(store, run.run_id, print):
        while (seen := pulse.read_pulse(store, run.run_id)) is None or seen.beat < 5:
            pass
        print("lives", flush=True)
        if how == "here":
            # However busy the machine is, the rest of this block is quicker than that.
            pulse.LAST_WORD_S = 300.0
        instance.report_run_failed(run)
        if how == "elsewhere":
            # For ever, were it not ended.
            threading.Event().wait()
print("its own last word", flush=True)
"""


@pytest.mark.parametrize(
    ("how", "code", "last"),
    [("elsewhere", 1, "lives"), ("before its first beat", 1, "lives"), ("here", 0, "its own last word")],
)
def test_a_process_whose_run_was_ended_elsewhere_leaves_it_and_no_pulse(tmp_path, how, code, last):
    command = [sys.executable, "-c", RUN_THAT_IS_STOPPED, str(tmp_path), how]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout.split("\n")[-2]) == (code, last), ended.stderr
    assert ("was ended elsewhere" in ended.stderr) is (how != "here")
    assert pulse.pulses(FolderStore(tmp_path)) == []


def test_a_run_database_that_does_not_answer_ends_nothing():
    class Away:
        def get_run_by_id(self, run_id):
            raise OperationalError("select", {}, ConnectionError("away"))

    assert not ended_elsewhere(Away(), "run-1")
