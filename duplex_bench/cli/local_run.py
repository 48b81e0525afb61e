"""Execute parts of the graph in this process, against the checkout's own Dagster instance.

Runs made here must look like runs made from the UI (job link, re-execution), which needs the origin of the code
location on the run. Dagster has no public call for that: the private imports are all in this module.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dagster as dg
from dagster._core.definitions.job_base import InMemoryJob
from dagster._core.execution.api import execute_run
from dagster._core.remote_origin import ManagedGrpcPythonEnvCodeLocationOrigin, RemoteRepositoryOrigin
from dagster._core.types.loadable_target_origin import LoadableTargetOrigin

CODE_LOCATION = "duplex_bench"
MODULE = "duplex_bench.definitions"
REPOSITORY = "__repository__"
GLOBAL_JOB = "__ASSET_JOB"


def _origin(root: Path) -> RemoteRepositoryOrigin:
    target = LoadableTargetOrigin(executable_path=sys.executable, module_name=MODULE, working_directory=str(root))
    return RemoteRepositoryOrigin(ManagedGrpcPythonEnvCodeLocationOrigin(target, CODE_LOCATION), REPOSITORY)


@contextmanager
def instance_of(root: Path) -> Iterator[dg.DagsterInstance]:
    """The Dagster instance that ``root/dagster.yaml`` describes; relative folders in it are below ``root``."""
    os.chdir(root)
    with dg.DagsterInstance.from_config(str(root)) as instance:
        yield instance


def execute(
    definitions: dg.Definitions,
    instance: dg.DagsterInstance,
    root: Path,
    selection: Sequence[dg.AssetKey],
    *,
    partition: str | None = None,
    label: str,
) -> tuple[bool, str]:
    """Materialise ``selection`` as one run; returns whether it succeeded and the run's id."""
    job = definitions.resolve_implicit_global_asset_job_def()
    wanted = set(selection)
    checks = {key for key in job.asset_layer.asset_graph.asset_check_keys if key.asset_key in wanted}
    subset = job.get_subset(asset_selection=wanted, asset_check_selection=checks or None)
    tags = {"duplex_bench/part": label}
    if partition is not None:
        tags["dagster/partition"] = partition
    run = instance.create_run_for_job(
        job_def=subset,
        asset_selection=wanted,
        tags=tags,
        remote_job_origin=_origin(root).get_job_origin(GLOBAL_JOB),
    )
    result = execute_run(InMemoryJob(subset), run, instance)
    return result.success, run.run_id
