"""The Celery application of a worker: ``celery -A duplex_bench.lib.celery_app worker``.

A run gets a process of its own below the worker's, since it starts a pool of engines and a Celery process may start
none. Who ends the worker, by whatever signal, ends the run: it is made again elsewhere and must not go on unseen.
"""

import os
import signal
import subprocess
import sys
from types import FrameType
from typing import Any

from celery import Celery
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import unpack_value
from dagster_celery.config import TASK_EXECUTE_JOB_NAME
from dagster_celery.make_app import make_app

from duplex_bench.lib.broker import BROKER_VARIABLE, celery_settings, results_address

_LOOK_AT_WORKER_S = 0.5


class RunProcessError(RuntimeError):
    """The process of a run ended by a signal, or before the run could say how it went."""


def worker_app(broker: str) -> Celery:
    """The application at a broker, whose one task makes a run."""
    made: Celery = make_app({"broker": broker, "backend": results_address(broker)})  # type: ignore[no-untyped-call]
    made.conf.update(celery_settings(broker))

    @made.task(name=TASK_EXECUTE_JOB_NAME, track_started=True)  # type: ignore[untyped-decorator]
    def execute_job(execute_job_args_packed: Any) -> int:
        args = unpack_value(execute_job_args_packed, as_type=ExecuteRunArgs)
        return run_in_process(args.run_id)

    return made


def run_in_process(run_id: str) -> int:
    """Make a run in a process of its own and wait for it; 0, or 1 where the run failed.

    Raises:
        RunProcessError: the process was killed.
    """
    worker = os.getppid()
    process = subprocess.Popen([sys.executable, "-m", "duplex_bench.lib.run_process", run_id])

    def passed_on(number: int, _: FrameType | None) -> None:
        process.send_signal(number)

    before = signal.signal(signal.SIGTERM, passed_on)
    try:
        while True:
            try:
                code = process.wait(_LOOK_AT_WORKER_S)
                break
            except subprocess.TimeoutExpired:
                if os.getppid() != worker:
                    process.kill()
                    os._exit(1)
    finally:
        signal.signal(signal.SIGTERM, before)
    if code < 0:
        raise RunProcessError(f"the process of run {run_id} was ended by signal {-code}")
    return code


app = worker_app(os.environ.get(BROKER_VARIABLE, ""))
