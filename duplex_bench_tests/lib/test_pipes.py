"""Workers launched by Dagster Pipes: what they say and count reaches the run; one that is killed does not stop it."""

import logging
import os
import signal
import sys
from pathlib import Path

import dagster as dg
import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest, TransportError
from duplex_bench.lib.pipes import PipesLaunch
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import open_system

pytestmark = [pytest.mark.dagster]

SYSTEM = """
import sys
from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit
import dagster_pipes

class Session:
    units = 0
    def open(self, request):
        if request.stimulus_id == "bad":
            raise RuntimeError("weights are gone")
    def step(self, unit):
        checked_unit(unit, System.spec)
        self.units += 1
        return []
    def close(self):
        where = dagster_pipes.__file__
        return SessionStats(units=self.units, empty_steps=self.units, warnings=(f"pipes from {where}",))

class System:
    spec = Spec(8000, 8000, 160)
    def new_session(self):
        return Session()

def create(settings):
    return System()
"""
UNIT = np.zeros(160, dtype=np.float32)


@pytest.fixture
def card(tmp_path):
    (tmp_path / "told.py").write_text(SYSTEM)
    environment = {"kind": "python", "interpreter": sys.executable, "python_path": [str(tmp_path)]}
    return SystemCard(name="told", title="T", family="policy", licence="MIT", adapter="told:create",
                      environment=environment)  # fmt: skip


def materialised(work):
    """Run ``work(context)`` as an asset; the counts it returns, and the run's log."""
    counted = {}

    @dg.asset
    def worked(context: dg.AssetExecutionContext) -> dg.Output[int]:
        counted.update(work(context))
        return dg.Output(1)

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([worked], instance=instance)
        assert result.success
        log = [(entry.level, entry.user_message) for entry in instance.all_logs(result.run_id)]
    return counted, log


def fed(system, units, stimulus="good"):
    session = system.new_session()
    session.open(OpenRequest(seed=1, stimulus_id=stimulus))
    for _ in range(units):
        session.step(UNIT)
    session.close()


def test_what_a_worker_says_and_counts_reaches_the_run(card, tmp_path):
    def work(context):
        launch = PipesLaunch(context, tmp_path)
        assert launch.counts() == {}
        with open_system(card, cache_folder=tmp_path, launch=launch) as system:
            fed(system, 3)
            fed(system, 4)
            with pytest.raises(RuntimeError, match="weights are gone"):
                fed(system, 1, "bad")
        return launch.counts()

    counted, log = materialised(work)
    assert counted == {"workers_started": 1, "worker_sessions": 2, "worker_units": 7, "worker_empty_steps": 7,
                       "worker_failures": 1}  # fmt: skip
    told = {message: level for level, message in log}
    assert any("serves told:create" in message for message in told)
    assert told["RuntimeError: weights are gone"] == logging.ERROR
    # Said once, however often; and the package came with our sources, not from the environment.
    warnings = [message for _, message in log if message.startswith("pipes from")]
    assert len(warnings) == 1
    assert ".zip" in warnings[0]


def test_a_killed_worker_leaves_its_counts_behind_and_another_takes_over(card, tmp_path):
    def work(context):
        launch = PipesLaunch(context, tmp_path)
        with open_system(card, cache_folder=tmp_path, launch=launch) as system:
            session = system.new_session()
            session.open(OpenRequest(seed=1, stimulus_id="good"))
            os.kill(system.worker_pid, signal.SIGKILL)
            with pytest.raises(TransportError, match=r"killed \(signal 9\).*memory"):
                session.step(UNIT)
            fed(system, 2)
        return launch.counts()

    counted, log = materialised(work)
    assert (counted["workers_started"], counted["worker_units"]) == (2, 2)
    assert sum("serves told:create" in message for _, message in log) == 2
    assert any("did not receive closed message" in message for _, message in log)


def test_no_worker_outlives_its_system(card, tmp_path):
    def work(context):
        with open_system(card, cache_folder=tmp_path, launch=PipesLaunch(context, tmp_path)) as system:
            pid = system.worker_pid
        return {"pid": pid}

    assert not Path(f"/proc/{materialised(work)[0]['pid']}").exists()
