import os
import signal
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import SystemStartError, contract_archive, open_system

ADAPTER = """
import os
from duplex_bench.contract.types import SessionStats, Spec
class System:
    spec = Spec(8000, 8000, 160)
    def new_session(self):
        return None
def create(settings):
    leaked = [name for name in os.environ if name.endswith("_KEY")]
    if leaked:
        raise ValueError(f"saw {leaked}")
    return System()
"""


def _card(tmp_path, **changes):
    (tmp_path / "an_adapter.py").write_text(ADAPTER)
    environment = {"kind": "python", "interpreter": sys.executable, "python_path": [str(tmp_path)]}
    return SystemCard(**{
        "name": "x", "title": "X", "family": "policy", "licence": "MIT", "adapter": "an_adapter:create",
        "environment": environment, **changes,
    })  # fmt: skip


@pytest.mark.unit
def test_the_archive_holds_the_contract_alone_and_is_the_same_each_time(tmp_path):
    path = contract_archive(tmp_path / "a")
    assert path == contract_archive(tmp_path / "a")
    assert path.read_bytes() == contract_archive(tmp_path / "b").read_bytes()
    names = zipfile.ZipFile(path).namelist()
    assert "duplex_bench/__init__.py" in names
    assert "duplex_bench/contract/worker.py" in names
    assert all(name == "duplex_bench/__init__.py" or name.startswith("duplex_bench/contract/") for name in names)


@pytest.mark.unit
@pytest.mark.parametrize(
    ("changes", "message"),
    [({"adapter": "no_such_module:create"}, "no_such_module"), ({"adapter": "json:nothing"}, "no callable"),
     ({"adapter": "duplex_bench.systems.adapters.never_speak:create", "settings": {"a": 1}}, "no settings")],
)  # fmt: skip
def test_a_system_that_cannot_be_made_names_its_card(tmp_path, changes, message):
    card = _card(tmp_path, environment={"kind": "none"}, **changes)
    with pytest.raises(SystemStartError, match=f"system x: .*{message}"), open_system(card):
        pass


@pytest.mark.process
def test_an_interpreter_that_is_not_there_says_so(tmp_path):
    card = _card(tmp_path, environment={"kind": "python", "interpreter": str(tmp_path / "no-python")})
    with (
        pytest.raises(SystemStartError, match=r"environment.interpreter.*no-python"),
        open_system(card, cache_folder=tmp_path),
    ):
        pass


@pytest.mark.process
def test_keys_do_not_reach_a_local_system_and_it_ends_with_the_block(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with open_system(_card(tmp_path), cache_folder=tmp_path) as system:
        pid = system.worker_pid
        assert system.spec.in_rate_hz == 8000
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.process
def test_a_worker_does_not_outlive_a_parent_that_is_killed(tmp_path):
    (tmp_path / "an_adapter.py").write_text(ADAPTER)
    parent = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(f"""
            import sys, threading
            from pathlib import Path
            from duplex_bench.systems.workers import WorkerCommand, WorkerSystem
            paths = ({str(tmp_path)!r}, {str(Path.cwd())!r})
            command = WorkerCommand((sys.executable,), paths, "an_adapter:create", "{{}}")
            system = WorkerSystem(command)
            print(system.worker_pid, flush=True)
            threading.Event().wait()
        """)],
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    worker = int(parent.stdout.readline())
    os.kill(worker, 0)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: _ended(worker), 120), "the worker is still there long after its parent was killed"


def _ended(pid):
    """Gone, or a zombie that nobody waits for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True
