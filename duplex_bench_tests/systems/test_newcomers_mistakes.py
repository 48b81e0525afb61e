"""A first adapter with a mistake in it, under its own interpreter: the message says where and what to do."""

import sys

import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.systems import interpreters
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import SystemStartError, open_system

pytestmark = pytest.mark.process

ADAPTER = """
import numpy as np
from duplex_bench.contract.types import Out, SessionStats, Spec

class ModelError(Exception):
    "Of no kind that Python knows."

def deep(unit):
    raise ModelError("token 7 [bold]")

class Session:
    def __init__(self, mistake):
        self.mistake, self.units = mistake, 0
    def open(self, request):
        pass
    def step(self, unit):
        self.units += 1
        if self.mistake == "own error":
            deep(unit)
        if self.mistake == "int16":
            return [Out("audio", 0, pcm=np.full(160, 3000, np.int16))]
        return [Out("audio", 0, pcm=np.full(160, 3000.0, np.float32))]
    def close(self):
        return SessionStats(units=self.units)

class System:
    spec = Spec(8000, 8000, 160)
    def __init__(self, mistake):
        self.mistake = mistake
    def new_session(self):
        return Session(self.mistake)

def create(settings):
    if settings["mistake"] == "None":
        return None
    if settings["mistake"] == "import":
        import no_such_package
    if settings["mistake"] == "memory":
        raise MemoryError
    return System(settings["mistake"])
"""


@pytest.fixture
def opened(tmp_path):
    """Opens the system with a mistake; the card's environment may be changed."""
    (tmp_path / "mine.py").write_text(ADAPTER)

    def open_it(mistake, adapter="mine:create", **changes):
        environment = {"kind": "python", "interpreter": sys.executable, "python_path": [str(tmp_path)], **changes}
        card = SystemCard(
            name="x", title="X", family="policy", licence="MIT", adapter=adapter, settings={"mistake": mistake},
            environment={key: value for key, value in environment.items() if value is not None},
        )  # fmt: skip
        return open_system(card, cache_folder=tmp_path / "cache")

    return open_it


def rollout(system):
    return run(system, OpenRequest(1, "x"), np.zeros(1600, dtype=np.float32), 8000, StreamPlan(0.1))


def test_an_exception_of_a_package_of_its_own_ends_the_rollout_and_not_the_worker(opened):
    with opened("own error") as system:
        pid = system.worker_pid
        first, second = rollout(system), rollout(system)
        assert (system.worker_pid, system.starts) == (pid, 1)
    assert first.outcome is second.outcome is Outcome.TRANSPORT_ERROR
    assert "ModelError: token 7 [bold] (mine.py:19 in step, mine.py:9 in deep)" in first.reason


@pytest.mark.parametrize(("mistake", "told"), [("int16", "int16 (160,)"), ("scale", "reaches 3000")])
def test_samples_of_integers_are_refused_however_they_come(opened, mistake, told):
    with opened(mistake) as system:
        result = rollout(system)
    assert result.outcome is Outcome.REFUSED
    assert told in result.reason


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        ("None", "callable returned None: return the system"),
        ("import", "no_such_package' (mine.py:37 in create): install it into the environment of"),
        ("memory", "give it more memory"),
    ],
)
def test_a_system_that_is_not_made_says_what_to_do(opened, mistake, told):
    with pytest.raises(SystemStartError) as refused, opened(mistake):
        pass
    assert str(refused.value).startswith("system x: ")
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"python_path": []}, "name the folder of that module in the card's environment.python_path"),
        ({"python_path": ["/no/such/folder"]}, "environment.python_path: /no/such/folder is not there"),
        ({"kind": "command", "interpreter": None, "command": ["no-such-program"]}, "environment.command 'no-such-pro"),
        ({"kind": "command", "interpreter": None, "command": ["/bin/true"]}, "is handed --settings JSON and --socket"),
        ({"kind": "none", "interpreter": None, "python_path": []}, 'one beside the card needs kind = "python"'),
    ],
)
def test_an_environment_that_cannot_be_started_names_its_key(opened, changes, told):
    with pytest.raises(SystemStartError) as refused, opened("", **changes):
        pass
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ('[[3, 9, 18], "cpython", true]', "is cpython 3.9.18: name 3.10 or newer"),
        ('[[3, 12, 1], "cpython", false]', "-m pip install numpy"),
        ("nothing", "is no Python that can be run"),
    ],
)
def test_an_interpreter_under_which_nothing_can_be_served_is_named(opened, tmp_path, facts, told):
    fake = tmp_path / "python"
    fake.write_text(f"#!/bin/sh\n[ \"$1\" = -c ] && echo '{facts}' && exit 0\nexit 1\n")
    fake.chmod(0o755)
    with pytest.raises(SystemStartError) as refused, opened("", interpreter=str(fake)):
        pass
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("adapter", "driver", "call"),
    [("serving.loopback", "frame_stepped", "new_session"), ("adapters.never_speak", "realtime", "new_push_session")],
)
def test_a_driver_that_is_not_the_systems_is_told_at_once(adapter, driver, call):
    card = SystemCard(
        name="x", title="X", family="policy", licence="MIT", adapter=f"duplex_bench.systems.{adapter}:create",
        driver=driver, settings={"protocol": "moshi"} if "serving" in adapter else {},
    )  # fmt: skip
    with pytest.raises(SystemStartError, match=rf"has no {call}\(\), by which its card's driver"), open_system(card):
        pass


def test_this_interpreter_has_no_fault():
    assert interpreters.fault_of(sys.executable) is None


PROGRAM = """
import json, os, socket, struct, sys
path = sys.argv[sys.argv.index("--socket") + 1]
listener = socket.socket(socket.AF_UNIX)
listener.bind(path + ".new")
listener.listen()
os.rename(path + ".new", path)
connection = listener.accept()[0]
connection.recv(65536)
head = json.dumps({answer}).encode()
connection.sendall(struct.pack("!4sII", b"DXB1", len(head), 0) + head)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('{"kind": "outs", "version": 1, "arrays": []}', "'hello' is answered with 'spec', not with 'outs'"),
        ('{"kind": "spec", "version": 1, "arrays": []}', "the answer 'spec' has no 'spec'"),
        ('{"kind": "spec", "version": 1, "arrays": [], "spec": {"rate": 1}, "pid": 1}', "Spec has the fields"),
        ('{"kind": "spec", "version": 2, "arrays": []}', "contract version 1 is spoken here"),
    ],
)
def test_a_program_that_answers_something_else_is_told_what_was_expected(opened, tmp_path, answer, told):
    (tmp_path / "program.py").write_text(PROGRAM.replace("{answer}", answer))
    command = [sys.executable, str(tmp_path / "program.py")]
    with (
        pytest.raises(SystemStartError) as refused,
        opened("", kind="command", interpreter=None, command=command, python_path=[]),
    ):
        pass
    assert "did not tell its spec" in str(refused.value)
    assert told in str(refused.value)
