import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.speech.foreign import ForeignEngine, ForeignEngineError, Timeouts

pytestmark = pytest.mark.process

FOLDER = str(Path(__file__).parent / "tiny_models")


@pytest.fixture
def worker(tmp_path, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_CACHE", str(tmp_path))
    made = []

    def make(interpreter=sys.executable, timeouts=None, **settings):
        made.append(ForeignEngine(interpreter, "echo_worker", settings, timeouts, (FOLDER,)))
        return made[-1]

    yield make
    for engine in made:
        engine.close()


def test_arrays_and_settings_come_back_whole(worker):
    engine = worker(model="tiny")
    arrays = [np.linspace(-1, 1, 7, dtype=np.float32), np.zeros(0, dtype=np.float32)]
    reply, back = engine.request({"kind": "echo"}, arrays)
    assert reply["model"] == "tiny"
    assert reply["pid"] == engine.worker_pid != os.getpid()
    assert [found.tolist() for found in back] == [sent.tolist() for sent in arrays]


def test_keys_of_providers_do_not_reach_the_worker(worker, monkeypatch):
    monkeypatch.setenv("SOME_API_KEY", "canary")
    reply, _ = worker().request({"kind": "echo"})
    assert "SOME_API_KEY" not in reply["environment"]
    assert "PYTHONPATH" in reply["environment"]


def test_an_error_of_the_engine_is_told_and_the_worker_stays(worker):
    engine = worker()
    first, _ = engine.request({"kind": "echo"})
    with pytest.raises(ForeignEngineError, match="RuntimeError: out of memory on the device"):
        engine.request({"kind": "fail"})
    assert engine.request({"kind": "echo"})[0]["pid"] == first["pid"]


def test_a_worker_that_dies_says_its_last_words_and_is_replaced(worker):
    engine = worker()
    first, _ = engine.request({"kind": "echo"})
    with pytest.raises(ForeignEngineError, match="status 9: Killed by the test"):
        engine.request({"kind": "die"})
    assert engine.request({"kind": "echo"})[0]["pid"] != first["pid"]


def test_a_worker_that_hangs_is_ended_and_replaced(worker):
    engine = worker()
    hung, _ = engine.request({"kind": "echo"})
    patient, engine.timeouts = engine.timeouts, Timeouts(answer_s=0.3)
    with pytest.raises(ForeignEngineError, match="answer_timeout_s"):
        engine.request({"kind": "hang"})
    engine.timeouts = patient
    assert not _is_alive(hung["pid"])
    assert engine.request({"kind": "echo"})[0]["pid"] != hung["pid"]


def test_another_version_of_the_package_is_refused_before_any_work(worker):
    with pytest.raises(ForeignEngineError, match=r"numpy .* is installed here, 0\.0\.1 is needed"):
        worker(version="0.0.1").request({"kind": "echo"})


def test_an_interpreter_that_is_not_there_is_named(worker):
    with pytest.raises(ForeignEngineError, match="no-such-python"):
        worker(interpreter="no-such-python").request({"kind": "echo"})


def test_an_interpreter_without_numpy_says_so(worker, tmp_path):
    bare = tmp_path / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I "$@"\n')
    bare.chmod(0o755)
    # -I ignores PYTHONPATH: the worker's module is not found, as in an environment that lacks something.
    with pytest.raises(ForeignEngineError, match="did not start: it ended with status 1"):
        worker(interpreter=str(bare)).request({"kind": "echo"})


def test_the_worker_ends_with_a_parent_that_is_killed(tmp_path):
    code = f"""
import os, signal, sys
from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.speech.foreign import ForeignEngine
engine = ForeignEngine(sys.executable, "echo_worker", {{}}, None, ({FOLDER!r},))
sys.stdout.write(str(engine.request({{"kind": "echo"}})[0]["pid"]))
sys.stdout.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        env={**os.environ, "DUPLEX_BENCH_CACHE": str(tmp_path)},
        timeout=300,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL
    # Our end of the pipe closes when the last holder of its other end is gone; the worker's output is elsewhere.
    pid = int(ended.stdout)
    assert wait_until(lambda: not _is_alive(pid), 120), f"worker {pid} outlived its parent"


def _is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
