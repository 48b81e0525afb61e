"""Execute parts of the graph in this process, against the Dagster instance of a data folder.

Runs made here must look like runs made from the UI (job link, re-execution), which needs the origin of the code
location on the run. Dagster has no public call for that: the private imports are all in this module.
"""

import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.execution.job_execution_result import JobExecutionResult
from dagster._core.instance.ref import InstanceRef
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin
from sqlalchemy.exc import OperationalError

from duplex_bench.cli.dagster_home import dagster_home
from duplex_bench.records.outcome import RETRIED_OUTCOMES

CODE_LOCATION = "duplex_bench"
MODULE = "duplex_bench.definitions"
REPOSITORY = "__repository__"
GLOBAL_JOB = "__ASSET_JOB"
PART_TAG, HOST_TAG, PROCESS_TAG = "duplex_bench/part", "duplex_bench/host", "duplex_bench/process"
PROFILE_TAG, DATA_TAG = "duplex_bench/profile", "duplex_bench/data"
_INTERRUPTED = {"DagsterExecutionInterruptedError", "KeyboardInterrupt"}
_NO_STEP_LOGS = {"module": "dagster._core.storage.noop_compute_log_manager", "class": "NoOpComputeLogManager"}


def _origin(root: Path) -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=MODULE, working_directory=str(root))
    return RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, CODE_LOCATION), REPOSITORY)


class RunDatabaseError(ValueError):
    """The run database cannot be read or written; the message says where it is and what it said."""


@contextmanager
def instance_of(root: Path, data: Path = Path("data")) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance of a data folder; relative folders in its settings are below ``root``.

    Raises:
        RunDatabaseError: what was done with it ended at its database, for want of space above all.
    """
    with chdir(root):
        home = dagster_home(root, data)
        # Output stays in this terminal: a helper process for each step's log would cost more than the step, and print
        # a traceback of its own at Ctrl-C.
        ref = InstanceRef.from_dir(str(home), overrides={"compute_logs": _NO_STEP_LOGS})
        try:
            with dg.DagsterInstance.from_ref(ref) as instance:
                yield instance
        except OperationalError as error:
            raise RunDatabaseError(
                f"the run database of {home} cannot be used: {error.orig}. Finished work is kept: free space or "
                "correct the cause, then run the same again"
            ) from error


def end_runs_of_dead_processes(instance: dg.DagsterInstance) -> int:
    """Record as failed what a killed process of this machine left as started; returns how many runs that were.

    Dagster's own monitoring watches runs that its launcher started, and this process starts its runs by itself.
    """
    ended = 0
    running = dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED], tags={HOST_TAG: socket.gethostname()})
    for run in instance.get_runs(running):
        process = int(run.tags.get(PROCESS_TAG, 0))
        if process != os.getpid() and not Path(f"/proc/{process}").exists():
            instance.report_run_failed(run, f"process {process} ended without a word; what it finished is kept")
            ended += 1
    return ended


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one run ended: its id in the Dagster UI, and of the first step that failed, what it said.

    ``unfinished`` counts items that failed or were lost: the run stands, and the next one tries them again. ``damaged``
    are files of ledgers whose work was done again for that.
    """

    success: bool
    run_id: str
    error: str = ""
    unfinished: int = 0
    damaged: tuple[str, ...] = ()


def execute(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    root: Path,
    selection: Sequence[dg.AssetKey],
    *,
    partition: str | None = None,
    label: str,
) -> Outcome:
    """Materialise ``selection`` with its checks as one run.

    Raises:
        KeyboardInterrupt: it was interrupted; the run is recorded as failed, what was finished is kept.
    """
    job = definitions.resolve_implicit_global_asset_job_def()
    wanted = set(selection)
    checks = {key for key in job.asset_layer.asset_graph.asset_check_keys if key.asset_key in wanted}
    subset = job.get_subset(asset_selection=wanted, asset_check_selection=checks)
    tags = {PART_TAG: label, HOST_TAG: socket.gethostname(), PROCESS_TAG: str(os.getpid())}
    # Read from where the code location reads them.
    for tag, variable in ((PROFILE_TAG, "DUPLEX_BENCH_PROFILE"), (DATA_TAG, "DUPLEX_BENCH_DATA")):
        if told := os.environ.get(variable):
            tags[tag] = told
    if partition is not None:
        tags["dagster/partition"] = partition
    run = instance.create_run_for_job(
        job_def=subset,
        run_config={"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}},
        asset_selection=wanted,
        tags=tags,
        remote_job_origin=_origin(root).get_job_origin(GLOBAL_JOB),
    )
    result = execute_run(InMemoryJob(subset), run, instance)
    if _was_interrupted(result):
        raise KeyboardInterrupt
    error = "" if result.success else _first_error(result)
    return Outcome(result.success, run.run_id, error, sum(_unfinished(result)), tuple(_damaged(result)))


def _was_interrupted(result: JobExecutionResult) -> bool:
    failures = [event.step_failure_data.error for event in result.all_events if event.is_step_failure]
    return any(error is not None and error.cls_name in _INTERRUPTED for error in failures)


def _unfinished(result: JobExecutionResult) -> Iterator[int]:
    lost = {f"outcome_{outcome}" for outcome in RETRIED_OUTCOMES}
    for event in result.get_asset_materialization_events():
        told = event.materialization.metadata.items()
        counts = {name: number.value for name, number in told if isinstance(number.value, int)}
        # A task that failed stands among the lost rollouts too.
        yield max(counts.get("failed", 0), sum(count for name, count in counts.items() if name in lost))


def _damaged(result: JobExecutionResult) -> Iterator[str]:
    for event in result.get_asset_materialization_events():
        told = event.materialization.metadata.get("damaged_ledger_files")
        if told is not None:
            yield str(told.value)


def _first_error(result: JobExecutionResult) -> str:
    for event in result.all_events:
        if event.is_step_failure and event.step_failure_data.error is not None:
            error = event.step_failure_data.error
            # The cause is ours, what is around it is Dagster's.
            while error.cause is not None:
                error = error.cause
            return f"{event.step_key}: {error.message.strip()}"
    return "the run ended before a step could say why; see its log in the Dagster UI"
