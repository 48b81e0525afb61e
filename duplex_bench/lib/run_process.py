"""Make one run that a launcher created: ``python -m duplex_bench.lib.run_process RUN_ID``."""

import ctypes
import os
import signal
import sys

import dagster as dg
from dagster._cli.api import _execute_run_command_body
from sqlalchemy.exc import SQLAlchemyError

from duplex_bench.stages import pulse

# Linux's prctl: which signal this process gets when the one that started it ends.
_PR_SET_PDEATHSIG = 1
# A broker may hand a run out twice; only the first to come makes it.
NOT_BEGUN = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED, dg.DagsterRunStatus.STARTING)


def main(run_id: str) -> int:
    """Execute the run against the instance of DAGSTER_HOME, unless it has begun; 0, or 1 where it failed."""
    parent = os.getppid()
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            return 1
    with dg.DagsterInstance.get() as instance:
        run = instance.get_run_by_id(run_id)
        if run is None or run.status not in NOT_BEGUN:
            return 0
        pulse.end_if(run_id, lambda: ended_elsewhere(instance, run_id))
        return int(
            _execute_run_command_body(
                instance=instance, run_id=run_id, write_stream_fn=lambda _: None, set_exit_code_on_failure=True
            )
        )


def ended_elsewhere(instance: dg.DagsterInstance, run_id: str) -> bool:
    """Whether Dagster holds the run for ended: taken for dead, or terminated by force. False if it cannot be asked."""
    from dagster_postgres.utils import DagsterPostgresException

    try:
        run = instance.get_run_by_id(run_id)
    except (SQLAlchemyError, DagsterPostgresException):
        return False
    return run is None or run.is_finished


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
