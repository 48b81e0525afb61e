"""Runs on Celery workers, watched by their pulse."""

import os
from typing import Any

import dagster as dg
from dagster._core.launcher import CheckRunHealthResult, WorkerStatus
from dagster_celery.launcher import CeleryRunLauncher
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from duplex_bench.lib.broker import BROKER_VARIABLE, celery_settings, results_address
from duplex_bench.stages import pulse
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.storage.places import open_store

DEAD_AFTER_LOOKS = 4
"""Looks (one every ``poll_interval_seconds``) at an unchanged pulse after which a run counts as dead (ours)."""


class WatchedCeleryRunLauncher(CeleryRunLauncher):
    """``CeleryRunLauncher``, whose health check asks the run instead of the broker.

    Celery knows nothing of a worker that was killed: its task stays "started" for good. And a broker that lost its
    memory calls a living task unknown, for which Dagster would fail the run. A pulse that counts up is a run that
    lives; one that stands still for DEAD_AFTER_LOOKS looks is dead.
    """

    def __init__(
        self, default_queue: str, broker: str | None = None, backend: str | None = None, **kwargs: Any
    ) -> None:
        broker = broker or os.environ.get(BROKER_VARIABLE, "")
        # Dagster's default reaches only the process that handed the run over; older files name the broker for both.
        named = backend if backend not in {None, "rpc://", broker} else None
        super().__init__(default_queue, broker=broker, backend=named or results_address(broker), **kwargs)
        self.celery.conf.update(celery_settings(broker))
        self._seen: dict[str, tuple[int, int]] = {}

    def check_run_worker_health(self, run: dg.DagsterRun) -> CheckRunHealthResult:
        """Whether the run's worker lives."""
        if DAGSTER_CELERY_TASK_ID_TAG in run.tags:
            said = super().check_run_worker_health(run)
            if said.status == WorkerStatus.FAILED:
                return said
        store = _store()
        try:
            seen = pulse.read_pulse(store, run.run_id)
        except OSError as error:
            return CheckRunHealthResult(WorkerStatus.RUNNING, f"no look at the pulse: {error}")
        beat = seen.beat if seen else 0
        last, looks = self._seen.get(run.run_id, (-1, 0))
        if beat != last:
            self._seen[run.run_id] = (beat, 0)
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        looks += 1
        self._seen[run.run_id] = (beat, looks)
        if looks < DEAD_AFTER_LOOKS:
            return CheckRunHealthResult(WorkerStatus.RUNNING)
        del self._seen[run.run_id]
        pulse.forget(store, run.run_id)
        where = f"process {seen.process} on {seen.host}" if seen else "a worker"
        return CheckRunHealthResult(
            WorkerStatus.FAILED, f"{where} gave no sign of life in {DEAD_AFTER_LOOKS} looks; what it finished is kept"
        )

    def terminate(self, run_id: str) -> bool:
        """Ask the worker to end the run; False if no worker ever took it."""
        run = self._instance.get_run_by_id(run_id)
        if run is None or DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return False
        self._instance.report_run_canceling(run)
        return super().terminate(run_id)

    def get_run_worker_debug_info(self, run: dg.DagsterRun, include_container_logs: bool | None = True) -> str | None:
        """What Celery says of the run's task; None for a run that no worker was given."""
        if DAGSTER_CELERY_TASK_ID_TAG not in run.tags:
            return None
        return super().get_run_worker_debug_info(run, include_container_logs)


def _store() -> ObjectStore:
    return open_store(os.environ.get("DUPLEX_BENCH_DATA", "data"))
