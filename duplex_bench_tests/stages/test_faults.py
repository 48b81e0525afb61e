"""Faults during work: killed processes, two runs at once, a store that fails, a stepped clock. After each, run again:
every item is accounted for, none is paid for twice that was finished, and what is stored is what a quiet run stores.
"""

import importlib.util
import json
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from duplex_bench.cli.cluster.processes import wait_until
from duplex_bench.storage import s3_store as s3_module
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.ledger import FLUSH_EVERY
from duplex_bench.storage.places import open_store

pytestmark = pytest.mark.process

PROGRAM = Path(__file__).with_name("fault_work.py")
N = 40
PATIENCE_S = 240


def _load(name, path):
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


work = _load("fault_work", PROGRAM)
servers = _load("fault_servers", Path(__file__).parents[1] / "storage" / "conftest.py")
serving, s3_server, s3_environment, proxy = servers.serving, servers.s3_server, servers.s3_environment, servers.proxy


@pytest.fixture(params=["folder", "bucket"])
def data(request, tmp_path, monkeypatch):
    """A data folder whose store is local, or a bucket."""
    if request.param == "bucket":
        request.getfixturevalue("s3_environment")
        monkeypatch.setenv("DUPLEX_BENCH_STORE", f"s3://bench/{tmp_path.name}")
    return tmp_path


def started(data, held=None):
    """A run in a process of its own; one that is ``held`` stays at the purchase of that item."""
    words = [sys.executable, str(PROGRAM), str(data), str(N), *([] if held is None else ["0", str(held)])]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    if held is not None:
        assert wait_until(lambda: str(held) in purchases(data), PATIENCE_S)
    return process


def purchases(data):
    path = Path(data) / "purchases"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def assert_whole(data, done):
    """Every item once, with its data, the same bytes as a quiet run's."""
    assert len(done.payloads) == N
    assert done.failed == {}
    blobs = BlobStore(open_store(data))
    for payload in done.payloads.values():
        found = json.loads(payload)
        assert blobs.get(found["audio"], "flac") == f"audio of {found['number']} ".encode() * 500


def test_a_killed_run_costs_at_most_what_was_not_yet_written_down(data):
    process = started(data, held=30)
    process.kill()
    process.wait()
    assert sum(purchases(data).values()) == 31
    done = work.run(data, N)
    assert_whole(data, done)
    assert set(purchases(data).values()) == {1, 2}
    # The segment that was being filled, and the item that was being made.
    assert sum(purchases(data).values()) - N <= FLUSH_EVERY + 1
    assert work.run(data, N).computed == []


def test_two_runs_of_the_same_items_at_once_pay_once(data):
    both = [started(data), started(data)]
    counts = [json.loads(process.communicate(timeout=PATIENCE_S)[0]) for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all(count["planned"] == N and count["failed"] == 0 for count in counts)
    assert sorted(count["computed"] for count in counts) == [0, N]
    assert set(purchases(data).values()) == {1}
    assert_whole(data, work.run(data, N))


def test_a_run_that_waits_takes_over_from_a_killed_one(data):
    first = started(data, held=25)
    second = started(data)
    first.kill()
    first.wait()
    count = json.loads(second.communicate(timeout=PATIENCE_S)[0])
    assert count["reused"] >= FLUSH_EVERY
    assert count["computed"] + count["reused"] == N
    assert_whole(data, work.run(data, N))


def test_an_interrupted_run_pays_for_nothing_twice(data):
    process = started(data, held=10)
    process.send_signal(signal.SIGINT)
    process.wait()
    assert sum(purchases(data).values()) == 11
    done = work.run(data, N)
    assert_whole(data, done)
    # Only the item under way is made again.
    assert sum(purchases(data).values()) - N == 1


@pytest.mark.parametrize("fault", ["error", "lost", "unsaid"])
def test_a_store_that_fails_now_and_then_fails_items_and_no_run(proxy, tmp_path, monkeypatch, fault):
    monkeypatch.setenv("DUPLEX_BENCH_STORE", f"s3://bench/{tmp_path.name}")
    monkeypatch.setattr(s3_module.S3Settings, "__init__", _impatient(s3_module.S3Settings.__init__))
    drawn = random.Random(7)
    # Worse than any store should be: every third write, so that retries do not always help.

    def fails(method, path):
        return fault if method == "PUT" and "/leases/" not in path and drawn.random() < 0.34 else None

    proxy.fault = fails
    for _ in range(20):
        try:
            done = work.run(tmp_path, N)
        except OSError:
            continue
        assert done.counts()["planned"] == N
        assert len(done.payloads) + len(done.failed) == N
        if not done.failed:
            break
    proxy.fault = lambda _method, _path: None
    assert_whole(tmp_path, work.run(tmp_path, N))


def _impatient(original):
    def settings(self, *args, **kwargs):
        original(self, *args, **{**kwargs, "attempts": 1})

    return settings


def test_what_the_store_loses_later_is_made_again(data):
    done = work.run(data, N)
    blobs = BlobStore(open_store(data))
    for number in (3, 14, 15):
        open_store(data).delete(blobs.key(json.loads(done.payloads[f"key-{number}"])["audio"], "flac"))
    again = work.run(data, N)
    assert sorted(again.computed) == ["key-14", "key-15", "key-3"]
    assert_whole(data, again)


def test_a_stepped_clock_changes_nothing(tmp_path):
    """The wall clock jumps a day ahead and two back while the run works; only monotonic time is used."""
    code = (
        "import sys, time, itertools\n"
        "real, calls = time.time, itertools.count()\n"
        "time.time = lambda: real() + (86400.0 if next(calls) % 2 else -172800.0)\n"
        "import datetime\n"
        f"sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        f"import fault_work, json\nfrom pathlib import Path\n"
        f"print(json.dumps(fault_work.run(Path({str(tmp_path)!r}), {N}).counts()))\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PATIENCE_S, check=True
    ).stdout
    assert json.loads(told) == {"planned": N, "computed": N, "reused": 0, "failed": 0}
    assert set(purchases(tmp_path).values()) == {1}
    assert_whole(tmp_path, work.run(tmp_path, N))


def test_a_stopped_run_notices_that_another_has_taken_over(tmp_path):
    """A process that was stopped (a suspended laptop) must not go on beside the one that took its place."""
    code = (
        "import sys\nfrom duplex_bench.storage import lease\n"
        "lease.LeaseTimes.__init__.__defaults__ = (0.2, 1.0, 0.05)\n"
        # As if on another machine: nobody can look whether the process lives.
        "lease._began = lambda _: 'elsewhere/1'\n"
        f"sys.path.insert(0, {str(PROGRAM.parent)!r})\n"
        "import fault_work\nfrom pathlib import Path\n"
        f"fault_work.run(Path({str(tmp_path)!r}), {N}, *map(float, sys.argv[1:]))\n"
    )
    command = [sys.executable, "-c", code]
    first = subprocess.Popen([*command, "0", "10"], stderr=subprocess.PIPE, text=True)
    assert wait_until(lambda: sum(purchases(tmp_path).values()) == 11, PATIENCE_S)
    os.kill(first.pid, signal.SIGSTOP)
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert second.returncode == 0, second.stderr
    bought = sum(purchases(tmp_path).values())
    (tmp_path / "let-go").touch()
    os.kill(first.pid, signal.SIGCONT)
    told = first.communicate(timeout=PATIENCE_S)[1]
    assert first.returncode != 0
    assert "another run has taken over" in told
    # The item that was under way when it was stopped is all that was made beside the other.
    assert sum(purchases(tmp_path).values()) == bought
    assert_whole(tmp_path, work.run(tmp_path, N))
