"""Work by content key: an interrupt, a failing item, a full disk and a torn file lose nothing finished."""

import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from duplex_bench.stages import progress
from duplex_bench.stages.work import Task, resume
from duplex_bench.storage.ledger import ItemLedger, LedgerRecord
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit

TASKS = [Task(f"key-{number}", f"item-{number}", number) for number in range(30)]


@pytest.fixture
def ledger(tmp_path):
    return ItemLedger(FolderStore(tmp_path), "track/stage/system")


def doubled(number):
    return str(2 * number)


def test_finished_work_is_found_and_equal_keys_are_one_piece_of_work(ledger):
    first = resume(ledger, "stage", [*TASKS[:5], TASKS[0]], doubled)
    assert first.counts() == {"planned": 5, "computed": 5, "reused": 0, "failed": 0}
    second = resume(ledger, "stage", TASKS[:8], doubled)
    assert (second.computed, second.reused) == ([t.key for t in TASKS[5:8]], [t.key for t in TASKS[:5]])
    assert second.payloads == {task.key: doubled(task.argument) for task in TASKS[:8]}


@pytest.mark.parametrize("threads", [0, 2])
def test_a_failing_item_is_named_and_tried_again(ledger, threads):
    broken = {3}

    def work(number):
        if number in broken:
            raise ValueError(f"file-{number}.wav: no samples; record it again")
        return doubled(number)

    with ThreadPoolExecutor(threads or 1) as executor:
        given = executor if threads else None
        first = resume(ledger, "stage", TASKS[:6], work, given)
        assert first.failed == {"key-3": "ValueError: file-3.wav: no samples; record it again"}
        assert first.counts() == {"planned": 6, "computed": 5, "reused": 0, "failed": 1}
        broken.clear()
        second = resume(ledger, "stage", TASKS[:6], work, given)
    assert (second.computed, len(second.reused), second.failed) == (["key-3"], 5, {})


def test_what_is_not_final_is_reported_and_tried_again(ledger):
    first = resume(ledger, "stage", TASKS[:4], doubled, final=lambda payload: payload != "4")
    assert first.payloads["key-2"] == "4"
    second = resume(ledger, "stage", TASKS[:4], doubled)
    assert second.computed == ["key-2"]


@pytest.mark.parametrize("threads", [0, 2])
def test_an_interrupt_keeps_what_is_finished(ledger, threads):
    finished = []

    def interrupted(now):
        finished[:] = [now.done]
        if now.done == 7:
            raise KeyboardInterrupt

    with ThreadPoolExecutor(threads or 1) as executor:
        given = executor if threads else None
        with progress.listening(interrupted), pytest.raises(KeyboardInterrupt):
            resume(ledger, "stage", TASKS, doubled, given)
        again = resume(ledger, "stage", TASKS, doubled, given)
    assert finished == [7]
    assert (len(again.reused), len(again.computed)) == (7, len(TASKS) - 7)


def test_an_error_that_is_nobodys_input_ends_the_stage_and_keeps_what_is_finished(ledger):
    def work(number):
        if number == 5:
            raise RuntimeError("a fault of ours")
        return doubled(number)

    with pytest.raises(RuntimeError, match="a fault of ours"):
        resume(ledger, "stage", TASKS, work)
    assert len(resume(ledger, "stage", TASKS, doubled).reused) == 5


@pytest.mark.parametrize("torn", [b"", b'{"key": "key-1", "item_id"', b"\xff\xfe", b"[1]\n", b'"text"\n'])
def test_a_torn_ledger_file_is_left_out_and_its_work_done_again(ledger, tmp_path, torn):
    resume(ledger, "stage", TASKS[:4], doubled)
    (segment,) = (tmp_path / "ledger/track/stage/system").glob("*.jsonl")
    whole = segment.read_bytes()
    segment.write_bytes(torn)
    again = resume(ledger, "stage", TASKS[:4], doubled)
    assert (len(again.computed), again.counts()["damaged_ledger_files"]) == (
        4,
        f"ledger/track/stage/system/{segment.name}",
    )
    assert ledger.unreadable_segments == (f"ledger/track/stage/system/{segment.name}",)
    # A file cut in its last line: whole lines before it are not trusted either.
    segment.write_bytes(whole[:-9])
    assert ledger.finished().keys() == {task.key for task in TASKS[:4]}


def test_a_half_written_file_is_never_read(ledger, tmp_path):
    folder = tmp_path / "ledger/track/stage/system"
    folder.mkdir(parents=True)
    (folder / ".writing-abc").write_text('{"key":"key-1","item_id":"item-1","status":"ok","payload":"999"}\n')
    done = resume(ledger, "stage", TASKS[:2], doubled)
    assert done.payloads["key-1"] == "2"


FULL = """
import resource, sys
from pathlib import Path
from duplex_bench.stages.work import Task, resume
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.ledger import ItemLedger, LedgerRecord
from duplex_bench.storage.object_store import FolderStore
import signal

store = FolderStore(Path(sys.argv[1]))
def work(size):
    return BlobStore(store).put(bytes(size), "bin")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
if sys.argv[2] != "0":
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
done = resume(ItemLedger(store, "s"), "s", [Task(str(n), str(n), 1000 * n) for n in range(1, 9)], work)
print(len(done.computed), len(done.reused), len(done.failed))
print(next(iter(done.failed.values()), ""))
"""


def test_a_full_disk_is_said_and_the_next_run_goes_on(tmp_path):
    """A limit on the size of files, as a stand-in for a disk with room for small files only."""

    def run(limit):
        command = [sys.executable, "-c", FULL, str(tmp_path), str(limit)]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout.splitlines()

    first = run(5500)
    assert first[0] == "5 0 3"
    assert "no space left to write" in first[1]
    assert "run again, finished work is kept" in first[1]
    blobs = [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]
    assert sorted(path.stat().st_size for path in blobs) == [1000, 2000, 3000, 4000, 5000], "no part of a file is left"
    assert run(0)[0] == "3 5 0"


def test_what_could_not_be_noted_on_a_full_disk_is_noted_later(tmp_path):
    store = FolderStore(tmp_path)
    ledger = ItemLedger(store, "scope")
    ledger.add(LedgerRecord("key", "item", "ok", payload="1"))
    # A file where the folder should be: writing fails as it does on a full disk.
    (tmp_path / "ledger").write_text("in the way")
    with pytest.raises(OSError, match="ledger"):
        ledger.flush()
    (tmp_path / "ledger").unlink()
    ledger.flush()
    assert ledger.finished().keys() == {"key"}


def test_finished_work_is_written_while_other_work_goes_on(ledger):
    """A killed process must not lose what ended long ago: the first item is on disk while the second still runs."""
    seen = []

    def work(number):
        if number == 1:
            deadline = time.monotonic() + 120
            while not seen and time.monotonic() < deadline:
                seen.extend(ItemLedger(ledger._store, "track/stage/system").finished())
        return doubled(number)

    with ThreadPoolExecutor(2) as executor:
        resume(ledger, "stage", TASKS[:2], work, executor)
    assert seen == ["key-0"]
