"""What a cluster folder holds, and which services are used: those that the environment names, or its own."""

import os
import signal
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
import yaml
from dagster._core.instance.ref import InstanceRef
from typer.testing import CliRunner

from duplex_bench.cli.cluster import backfills, control, settings
from duplex_bench.cli.cluster.control import initialise_cluster, write_files
from duplex_bench.cli.cluster.processes import Processes, wait_until
from duplex_bench.cli.main import app
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.process

NAMED = {
    "DUPLEX_BENCH_POSTGRES": "postgresql+psycopg2://me@db/bench",
    "DUPLEX_BENCH_BROKER": "redis://broker/0",
    "DUPLEX_BENCH_STORE": "s3://bucket/prefix",
}


@pytest.fixture(autouse=True)
def nothing_named(monkeypatch):
    for name in (*NAMED, "DUPLEX_BENCH_LOG_BUCKET"):
        monkeypatch.delenv(name, raising=False)


def test_the_files_make_an_instance_with_postgres_celery_and_logs_in_the_bucket(tmp_path):
    assert not write_files(tmp_path, 2)
    (tmp_path / "workspace.yaml").write_text("mine")
    assert write_files(tmp_path, 5)
    assert (tmp_path / "workspace.yaml").read_text() == "mine"
    told = yaml.safe_load((tmp_path / "dagster.yaml").read_text())
    ref = InstanceRef.from_dir(str(tmp_path))
    assert ref.run_launcher_data.class_name == "WatchedCeleryRunLauncher"
    assert ref.compute_logs_data.class_name == "S3ComputeLogManager"
    assert told["concurrency"]["runs"]["max_concurrent_runs"] == 5
    assert told["run_retries"]["retry_on_asset_or_op_failure"] is False
    # No address and no credential is written down: each comes from the environment.
    assert told["storage"]["postgres"]["postgres_url"] == {"env": "DUPLEX_BENCH_POSTGRES"}
    assert told["run_launcher"]["config"]["broker"] == {"env": "DUPLEX_BENCH_BROKER"}


def test_what_the_environment_names_is_used(tmp_path, monkeypatch):
    own = settings.own_services(tmp_path)
    assert own == settings.own_services(tmp_path)
    assert (tmp_path / "services.json").stat().st_mode & 0o077 == 0
    made = own.environment()
    assert made["DUPLEX_BENCH_STORE"] == "s3://duplex-bench"
    assert made["DUPLEX_BENCH_LOG_BUCKET"] == "duplex-bench"
    assert all("127.0.0.1" in made[name] for name in ("DUPLEX_BENCH_POSTGRES", "DUPLEX_BENCH_BROKER"))
    for name, value in NAMED.items():
        monkeypatch.setenv(name, value)
    assert own.environment() == {"DUPLEX_BENCH_LOG_BUCKET": "bucket"}


def test_ports_of_services_are_none_that_the_system_hands_out(monkeypatch):
    found = settings.free_ports(50)
    assert len(set(found)) == 50
    first_handed_out = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert (max(found) < first_handed_out) is bool(settings._lasting_ports())
    # Where nearly all are handed out, any that is free must do.
    monkeypatch.setattr(settings, "_lasting_ports", lambda: range(0))
    assert len(set(settings.free_ports(5))) == 5


def test_init_says_which_service_is_not_named(tmp_path, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_STORE", "s3://bucket")
    with pytest.raises(ValueError, match="set DUPLEX_BENCH_POSTGRES, DUPLEX_BENCH_BROKER"):
        initialise_cluster(tmp_path, 2)


def prepared_by_init(folder, monkeypatch):
    """Buckets that `init --cluster` makes, with the services at hand."""
    made = []

    class Store:
        def __init__(self, address):
            self.bucket = address.removeprefix("s3://").split("/")[0]

        def make_bucket(self):
            made.append(self.bucket)

        def check_conditions(self):
            pass

    monkeypatch.setattr("duplex_bench.storage.s3_store.s3_store", Store)
    monkeypatch.setattr("dagster.DagsterInstance.get", MagicMock())
    # What it sets for itself goes when the test ends.
    monkeypatch.setattr(os, "environ", {**os.environ, **NAMED})
    monkeypatch.chdir(folder)
    initialise_cluster(folder, 2)
    return made


def test_init_makes_the_bucket_of_the_logs_too(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DUPLEX_BENCH_LOG_BUCKET", "logs")
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path))
    assert prepared_by_init(tmp_path, monkeypatch) == ["bucket", "logs"]
    assert "set " not in capsys.readouterr().out


def test_init_says_what_the_other_processes_need_besides(tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("DAGSTER_HOME", raising=False)
    assert prepared_by_init(tmp_path, monkeypatch) == ["bucket"]
    said = capsys.readouterr().out.replace("\n", "")
    assert f"set DAGSTER_HOME={tmp_path}" in said
    assert "set DUPLEX_BENCH_LOG_BUCKET=bucket" in said


def test_init_elsewhere_than_dagster_home_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_HOME", str(tmp_path / "other"))
    with pytest.raises(ValueError, match="DAGSTER_HOME names"):
        prepared_by_init(tmp_path, monkeypatch)
    assert not (tmp_path / "dagster.yaml").exists()


def test_a_command_runs_here_where_the_services_are_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_STORE", "s3://bucket")
    monkeypatch.setenv("DUPLEX_BENCH_WEB", "http://web:3000")
    monkeypatch.chdir(tmp_path)
    # No folder "cluster" is there, nor need it be.
    assert control.run_inside(tmp_path / "cluster", ["python", "-c", "open('seen', 'w').close()"]) == 0
    assert (tmp_path / "seen").exists()
    with pytest.raises(ValueError, match="no command such-a-one"):
        control.run_inside(tmp_path / "cluster", ["such-a-one"])


def test_the_status_of_a_cluster_elsewhere_says_that_nothing_was_started_here(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "environ", {**os.environ, **NAMED, "DUPLEX_BENCH_WEB": "http://web:3000"})
    store = FolderStore(tmp_path)
    monkeypatch.setattr(control, "open_store", lambda _: store)
    control.show(tmp_path / "cluster")
    said = " ".join(capsys.readouterr().out.split())
    assert "no process was started from here" in said
    assert "no run is under way" in said
    beat = '{"run_id": "abcdefgh-1", "beat": 1, "stage": "rollouts x", "done": 1, "total": 2, "failed": 0, "host": "m"'
    store.put("runs/abcdefgh-1.json", (beat + ', "process": 7}').encode())
    control.show(tmp_path / "cluster")
    said = " ".join(capsys.readouterr().out.split())
    assert "abcdefgh" in said
    assert "no run is under way" not in said


def test_a_backfill_says_where_the_report_is_only_if_it_is_here(tmp_path, monkeypatch, capsys):
    done = {"partitionBackfillOrError": {"status": "COMPLETED_SUCCESS", "runs": [{"status": "SUCCESS"}]}}
    monkeypatch.setattr(backfills, "_ask", lambda *_: done)
    page = tmp_path / "index.html"
    for made in (None, 1.0):
        if made is not None:
            page.write_text("of another day")
            os.utime(page, (made, made))
        assert backfills._ended("http://web", "abc", tmp_path) == 0
        said = capsys.readouterr().out
        assert "lies with the worker" in said
        assert "index.html" not in said
    os.utime(page, (2e10, 2e10))
    assert backfills._ended("http://web", "abc", tmp_path) == 0
    assert "index.html" in capsys.readouterr().out


def test_a_process_is_started_once_and_ended_even_if_it_does_not_hear(tmp_path):
    processes = Processes(tmp_path)
    deaf = "import signal, threading; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True)\n"
    deaf += "threading.Event().wait()"
    first = processes.start("deaf", [sys.executable, "-c", deaf], {}, tmp_path)
    assert processes.start("deaf", [sys.executable, "-c", deaf], {}, tmp_path) == first
    assert wait_until(lambda: processes.log("deaf").read_text() == "up\n", 120)
    processes.stop("deaf", signal.SIGTERM, patience_s=0.3)
    assert not first.alive()
    assert processes.running("deaf") is None
    assert processes.names() == []
    # A note about a process that ended long ago, whose number somebody else has by now, ends nobody.
    (tmp_path / "other.pid").write_text('{"pid": 1, "began": 12345}')
    assert processes.running("other") is None
    processes.stop("other")


def test_what_a_cluster_runs_is_kept_until_it_is_told_otherwise(tmp_path, monkeypatch):
    for name in (settings.PROFILE_VARIABLE, settings.LIMIT_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    assert settings.wanted_runs(tmp_path, None, None) == settings.Runs("demo")
    monkeypatch.setenv(settings.PROFILE_VARIABLE, "lab")
    monkeypatch.setenv(settings.LIMIT_VARIABLE, "7")
    assert settings.wanted_runs(tmp_path, None, None) == settings.Runs("lab", 7)
    settings.note_runs(tmp_path, settings.Runs("paper", 3))
    assert settings.wanted_runs(tmp_path, None, None) == settings.Runs("paper", 3)
    assert settings.wanted_runs(tmp_path, None, 4) == settings.Runs("paper", 4)
    monkeypatch.delenv(settings.LIMIT_VARIABLE)
    assert settings.wanted_runs(tmp_path, "demo", None) == settings.Runs("demo")


def test_a_backfill_of_another_profile_than_the_workers_run_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings.note_runs(tmp_path, settings.Runs("paper", 3))
    words = ["cluster", "backfill", "--folder", ".", "-p", "demo"]
    with pytest.raises(ValueError, match="runs profile paper --limit 3, not profile demo"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_a_command_inside_has_the_clusters_addresses_folder_and_exit_code(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"no cluster in .*cluster up"):
        CliRunner().invoke(app, ["cluster", "exec", "true"], catch_exceptions=False)
    root = tmp_path / "cluster"
    own = settings.own_services(root)
    settings.note_runs(root, settings.Runs("demo", 2))
    code = "import os, pathlib, sys; pathlib.Path('told').write_text('\\n'.join(os.environ[n] for n in sys.argv[1:]))"
    names = ["DUPLEX_BENCH_POSTGRES", "DUPLEX_BENCH_WEB", "DUPLEX_BENCH_LIMIT", "DAGSTER_HOME"]
    done = CliRunner().invoke(app, ["cluster", "exec", "python", "-c", f"{code}; sys.exit(7)", *names])
    assert done.exit_code == 7
    expected = [own.postgres, f"http://127.0.0.1:{own.web_port}", "2", str(root)]
    assert (root / "told").read_text().splitlines() == expected
    with pytest.raises(ValueError, match="no command no-such-program"):
        CliRunner().invoke(app, ["cluster", "exec", "no-such-program"], catch_exceptions=False)


def test_commands_work_with_a_cluster_of_several_machines_by_the_environment_alone(tmp_path, monkeypatch):
    for name in (settings.WEB_VARIABLE, settings.DATA_VARIABLE, settings.PROFILE_VARIABLE, settings.LIMIT_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="set DUPLEX_BENCH_WEB, DUPLEX_BENCH_STORE"):
        control.environment_of_commands(tmp_path, settings.Runs("lab", 2))
    given = {settings.WEB_VARIABLE: "http://web:3000", "DUPLEX_BENCH_STORE": "s3://b", settings.DATA_VARIABLE: "/bench"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    made = control.environment_of_commands(tmp_path, settings.Runs("lab", 2))
    assert {name: made[name] for name in given} == given
    assert (made[settings.PROFILE_VARIABLE], made[settings.LIMIT_VARIABLE]) == ("lab", "2")
    # Nothing was made up beside what is named.
    assert list(tmp_path.iterdir()) == []


def test_a_card_that_is_new_since_the_start_is_named_with_the_remedy(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings.own_services(tmp_path)
    settings.note_runs(tmp_path, settings.Runs("demo", 2, ("never-speak",)))
    assert settings.runs_of(tmp_path).systems == ("never-speak",)
    words = ["cluster", "backfill", "--folder", ".", "-s", "always-speak"]
    with pytest.raises(ValueError, match=r"before there was a card always-speak.*cluster up"):
        CliRunner().invoke(app, words, catch_exceptions=False)


def test_what_runs_and_is_told_otherwise_is_ended_and_no_service_is(tmp_path):
    processes = Processes(tmp_path)
    names = ("worker-1", "worker-2", "daemon", "web", "postgres")
    for name in names:
        processes.start(name, [sys.executable, "-c", "import threading; threading.Event().wait()"], {}, tmp_path)
    try:
        control._stop_what_differs(processes, [], other_runs=False)
        assert all(processes.running(name) for name in names)
        control._stop_what_differs(processes, ["daemon"], other_runs=False)
        assert [name for name in names if not processes.running(name)] == ["daemon"]
        control._stop_what_differs(processes, [], other_runs=True)
        assert [name for name in names if processes.running(name)] == ["postgres"]
    finally:
        for name in names:
            processes.stop(name)


def test_a_process_is_traced_to_the_one_that_was_started(tmp_path):
    processes = Processes(tmp_path)
    below = "import os, threading; print(os.getpid(), flush=True); threading.Event().wait()"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {below!r}])"
    first = processes.start("worker-2", [sys.executable, "-c", code], {}, tmp_path)
    try:
        assert wait_until(lambda: processes.log("worker-2").read_text().endswith("\n"), 120)
        below = int(processes.log("worker-2").read_text())
        assert below != first.pid
        assert processes.owner(below) == processes.owner(first.pid) == "worker-2"
        assert processes.owner(os.getpid()) is None
    finally:
        processes.stop("worker-2")
    assert wait_until(lambda: processes.owner(below) is None, 120)


@pytest.mark.parametrize("words", [["run", "--only", "broken"], ["cluster", "backfill", "--only", "broken"]])
def test_another_word_than_failed_or_stale_is_named(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in NAMED.items():
        monkeypatch.setenv(name, value)
    # Bad input ends before a service is asked for anything.
    with pytest.raises(ValueError, match="--only broken: choose one of all, failed, stale"):
        CliRunner().invoke(app, words, catch_exceptions=False)
