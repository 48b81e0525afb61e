"""The UI's port is checked first; runs of processes that are gone do not stay "started"; a report needs results."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from duplex_bench.cli import backup, local_run
from duplex_bench.cli.run import build_report
from duplex_bench.cli.ui import HOST, serve_ui
from duplex_bench.stages.backup.manifest import Manifest
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.dagster


def test_a_taken_port_is_said_before_anything_starts(tmp_path):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match=f"port {port} is in use: give another with --port"):
            serve_ui(tmp_path, Path("data"), port, "demo", None)
    assert list(tmp_path.iterdir()) == []


def test_the_ui_shows_the_profile_folder_and_limit_of_the_run(tmp_path, monkeypatch):
    class Became(BaseException):
        """In place of the end of this process: what it would have become is not come back from."""

    def become(_program, _words):
        raise Became({name: os.environ[f"DUPLEX_BENCH_{name}"] for name in ("PROFILE", "DATA", "LIMIT")})

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setenv("DAGSTER_HOME", "")
    with pytest.raises(Became) as told:
        serve_ui(tmp_path, Path("mine"), 0, "paper", 3)
    assert told.value.args[0] == {"PROFILE": "paper", "DATA": str(tmp_path / "mine"), "LIMIT": "3"}


def started(instance: dg.DagsterInstance, process: int, host: str) -> str:
    tags = {local_run.HOST_TAG: host, local_run.PROCESS_TAG: str(process)}
    run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags=tags)
    return run.run_id


def test_only_runs_of_dead_processes_of_this_machine_are_ended():
    here = socket.gethostname()
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with dg.DagsterInstance.ephemeral() as instance:
        dead = started(instance, gone.pid, here)
        alive = started(instance, os.getppid(), here)
        elsewhere = started(instance, gone.pid, "another-machine")
        assert local_run.end_runs_of_dead_processes(instance) == 1
        status = {name: instance.get_run_by_id(name).status for name in (dead, alive, elsewhere)}
    assert status[dead] == dg.DagsterRunStatus.FAILURE
    assert status[alive] == status[elsewhere] == dg.DagsterRunStatus.STARTED


def test_a_report_of_nothing_is_refused_and_makes_nothing(tmp_path):
    with pytest.raises(ValueError, match="no results of profile demo in "):
        build_report(tmp_path, tmp_path / "data", "demo", False)
    assert not (tmp_path / "data" / "store").exists()


def test_a_report_of_another_limit_names_what_there_is(tmp_path):
    FolderStore(tmp_path / "data" / "store").put("tables/demo-limit-2/multiparty/items.parquet", b"")
    with pytest.raises(ValueError, match=r"no results of profile demo in .*; there are results of demo-limit-2"):
        build_report(tmp_path, tmp_path / "data", "demo", False)


def test_a_backup_counts_the_logs_of_runs_instead_of_naming_each(tmp_path, capsys):
    logs = {f"dagster/history/runs/{number}.db": "sqlite" for number in range(40)}
    of_all = {f"dagster/history/{name}.db": "sqlite" for name in ("runs", "runs/index")}
    told = Manifest(databases={**of_all, **logs}, version="0.1.0", made_at="now")
    backup._told("backed up", told, tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    databases = "dagster/history/runs.db, dagster/history/runs/index.db, logs of 40 runs"
    assert f"0 files, 0.0 MB, {databases}; of duplex_bench 0.1.0, now" in said
