import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.contract.client import RemoteSystem, Timeouts
from duplex_bench.contract.types import OpenRequest, Prompt, RemoteSystemError, TransportError, UnsupportedError
from duplex_bench.contract.worker import load_factory

pytestmark = pytest.mark.process

REQUEST = OpenRequest(seed=1, stimulus_id="x")
SYSTEM = """
import os, threading
import numpy as np
from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit, refuse_unsupported

class Session:
    def __init__(self):
        self.units = 0
    def open(self, request):
        refuse_unsupported(request, System.spec)
        if request.stimulus_id == "bad":
            raise RuntimeError("weights are gone")
    def step(self, unit):
        checked_unit(unit, System.spec)
        self.units += 1
        if unit[0] == 1.0:
            raise KeyError("no such token")
        if unit[0] == 2.0:
            os._exit(3)
        if unit[0] == 3.0:
            threading.Event().wait()
        return [Out("audio", self.units - 1, pcm=(unit * 2).astype(np.float32))]
    def close(self):
        return SessionStats(units=self.units)

class System:
    spec = Spec(8000, 8000, 160, 160, True)
    def new_session(self):
        return Session()

def create(settings):
    if settings.get("broken"):
        raise ValueError("cannot load: " + settings["broken"])
    return System()
"""


@pytest.fixture
def start(tmp_path):
    (tmp_path / "a_system.py").write_text(SYSTEM)
    processes = []

    def starter(settings=None, stdin=subprocess.PIPE):
        address = tmp_path / f"{len(processes)}.sock"
        command = [sys.executable, "-m", "duplex_bench.contract.worker", "--factory", "a_system:create",
                   "--settings", json.dumps(settings or {}), "--socket", str(address)]  # fmt: skip
        process = subprocess.Popen(
            command, stdin=stdin, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(Path.cwd())])},
        )  # fmt: skip
        processes.append(process)
        while not address.exists() and process.poll() is None:
            threading.Event().wait(0.01)
        return process, address

    yield starter
    for process in processes:
        process.kill()
        process.wait()
        process.stderr.close()


def _unit(first=0.5):
    unit = np.full(160, 0.25, dtype=np.float32)
    unit[0] = first
    return unit


def test_errors_are_replies_and_the_worker_survives_them(start):
    process, address = start()
    system = RemoteSystem(address)
    session = system.new_session()
    with pytest.raises(RemoteSystemError, match="RuntimeError: weights are gone"):
        session.open(OpenRequest(seed=1, stimulus_id="bad"))
    with pytest.raises(UnsupportedError, match="text_prompt"):
        system.new_session().open(OpenRequest(seed=1, stimulus_id="x", prompt=Prompt(text="hi")))
    session = system.new_session()
    session.open(REQUEST)
    with pytest.raises(RemoteSystemError, match="KeyError"):
        session.step(_unit(1.0))
    outs = session.step(_unit())
    assert np.array_equal(outs[0].pcm, _unit() * 2)
    stats = session.close()
    assert stats.units == 2
    assert session.close() == stats
    assert process.poll() is None
    system.shutdown()
    assert process.wait(timeout=120) == 0


def test_a_worker_that_dies_mid_step_is_a_transport_error(start):
    process, address = start()
    session = RemoteSystem(address).new_session()
    session.open(REQUEST)
    with pytest.raises(TransportError, match="lost during 'step'"):
        session.step(_unit(2.0))
    assert process.wait(timeout=120) == 3


def test_a_worker_that_hangs_is_a_transport_error(start):
    _, address = start()
    session = RemoteSystem(address, Timeouts(step_s=0.2)).new_session()
    session.open(REQUEST)
    with pytest.raises(TransportError, match="did not answer"):
        session.step(_unit(3.0))
    # Neither waits for the hung worker.
    with pytest.raises(TransportError, match="open another"):
        session.step(_unit())
    assert session.close().warnings == ("the session was lost with its worker",)


def test_a_client_that_leaves_frees_the_worker_for_the_next(start):
    _, address = start()
    first = RemoteSystem(address)
    session = first.new_session()
    session.open(REQUEST)
    session.step(_unit())
    first.disconnect()
    again = RemoteSystem(address).new_session()
    again.open(REQUEST)
    assert again.step(_unit())[0].unit == 0
    with pytest.raises(TransportError, match="open another"):
        session.step(_unit())


def test_the_worker_ends_when_its_parent_does(start):
    process, _ = start()
    process.stdin.close()
    assert process.wait(timeout=120) == 0


def test_a_system_that_cannot_be_made_says_why(start):
    process, _ = start({"broken": "no GPU"})
    assert process.wait(timeout=120) == 2
    assert b"cannot load: no GPU" in process.stderr.read()


def test_nobody_behind_the_socket_is_a_transport_error(tmp_path):
    with pytest.raises(TransportError, match="hello"):
        RemoteSystem(tmp_path / "nobody.sock")


@pytest.mark.parametrize("path", ["json", "json:", ":loads", "json:no_such", "json:__doc__"])
def test_a_factory_that_is_none_is_refused(path):
    with pytest.raises(ValueError, match="adapter"):
        load_factory(path)
