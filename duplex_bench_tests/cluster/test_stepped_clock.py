"""The wall clock of a whole process is stepped while it works, by Debian's libfaketime; monotonic time goes on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from duplex_bench.cli.cluster.processes import wait_until

pytestmark = pytest.mark.cluster

PROGRAM = Path(__file__).parents[1] / "stages" / "fault_work.py"
N = 60
STEPS = {10: "+1d", 25: "-2d", 40: "+90s"}


@pytest.fixture
def stepped(tmp_path):
    """Starts a program under a clock whose distance from the true one is read from a file at every look."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketime.so.1")
    distance = tmp_path / "distance"
    distance.write_text("+0")
    names = {
        "LD_PRELOAD": str(library),
        "FAKETIME_TIMESTAMP_FILE": str(distance),
        "FAKETIME_NO_CACHE": "1",
        "DONT_FAKE_MONOTONIC": "1",
    }

    def start(command):
        return subprocess.Popen(command, env={**os.environ, **names}, stdout=subprocess.PIPE, text=True)

    return start, distance


def test_a_running_process_sees_the_step(stepped, tmp_path):
    start, distance = stepped
    code = (
        "import pathlib, sys, threading, time\n"
        "ready, go = map(pathlib.Path, sys.argv[1:])\n"
        "before, since = time.time(), time.monotonic()\n"
        "ready.touch()\n"
        "while not go.exists():\n"
        "    threading.Event().wait(0.02)\n"
        "print(time.time() - before, time.monotonic() - since)"
    )
    ready, go = tmp_path / "ready", tmp_path / "go"
    process = start([sys.executable, "-c", code, str(ready), str(go)])
    assert wait_until(ready.exists, 60)
    distance.write_text("+1d")
    go.touch()
    wall_s, monotonic_s = map(float, process.communicate(timeout=60)[0].split())
    assert wall_s == pytest.approx(86_400, abs=60)
    assert monotonic_s < 60


def test_work_goes_on_while_the_clock_steps(stepped, tmp_path):
    start, distance = stepped
    process = start([sys.executable, str(PROGRAM), str(tmp_path), str(N), "0.03"])
    purchases = tmp_path / "purchases"

    def bought():
        return len(purchases.read_text().split()) if purchases.exists() else 0

    for after, step in STEPS.items():
        assert wait_until(lambda after=after: bought() >= after, 60)
        distance.write_text(step)
    told = json.loads(process.communicate(timeout=60)[0])
    assert process.returncode == 0
    assert (told["planned"], told["computed"], told["failed"]) == (N, N, 0)
    assert bought() == N
    # A second run under a clock two days behind finds it all.
    distance.write_text("-2d")
    again = json.loads(start([sys.executable, str(PROGRAM), str(tmp_path), str(N)]).communicate(timeout=60)[0])
    assert (again["computed"], again["reused"]) == (0, N)
