"""Blobs over a bucket with copies here: few requests an item, and a lost write is found before anything names it."""

import json
import subprocess
import sys
import textwrap
from collections import Counter

import pytest

from duplex_bench.stages.work import Task, resume
from duplex_bench.storage import ledger as ledger_module
from duplex_bench.storage import s3_store as s3_module
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.cached_store import CachedStore
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.s3_store import StoreUnavailableError, WriteLostError

pytestmark = pytest.mark.process

N = 40


@pytest.fixture
def cached(faulty, tmp_path):
    """A store with copies, behind the proxy."""
    return CachedStore(faulty, tmp_path / "copies")


def of_blobs(method, path):
    return method == "PUT" and "/blobs/" in path


def losing(times, wanted=of_blobs):
    """A fault that confirms and drops the first ``times`` writes of blobs."""
    left = [times]

    def chosen(method, path):
        if wanted(method, path) and left[0]:
            left[0] -= 1
            return "lost"
        return None

    return chosen


def rollout(store, number):
    """What a rollout stores: audio and events."""
    blobs = BlobStore(store)
    audio = blobs.put(f"audio {number}".encode() * 200, "flac")
    return json.dumps([audio, blobs.put(f"events {number}".encode(), "jsonl.gz")])


def made(store, n=N):
    tasks = [Task(f"key-{number}", f"item-{number}", number) for number in range(n)]
    return resume(ItemLedger(store, "track/stage"), "rollouts", tasks, rollout, common=(store,))


def in_the_bucket(store, done):
    """Whether every blob that the results name is in the remote store."""
    blobs = BlobStore(store.remote)
    for payload in done.payloads.values():
        audio, events = json.loads(payload)
        blobs.get(audio, "flac")
        blobs.get(events, "jsonl.gz")
    return len(done.payloads)


def test_an_item_costs_two_requests_and_its_share_of_a_commit(cached, proxy, monkeypatch):
    monkeypatch.setattr(ledger_module, "FLUSH_AFTER_S", 600.0)
    done = made(cached)
    seen = Counter((method, "blobs" if "/blobs/" in path else "other") for method, path, _ in proxy.seen)
    assert seen["PUT", "blobs"] == 2 * N
    assert seen["HEAD", "blobs"] == 0
    # Two commits of 20 items: a list, a segment, its look-up. The lease and what was finished before: once a stage.
    assert len(proxy.seen) - 2 * N <= 2 * 3 + 16
    assert in_the_bucket(cached, done) == N


@pytest.mark.parametrize("n", [3, N])
def test_a_lost_blob_is_written_again_and_its_item_is_not_made_again(cached, proxy, n):
    proxy.fault = losing(3)
    done = made(cached, n)
    assert [fault for _, _, fault in proxy.seen].count("lost") == 3
    assert done.failed == {}
    assert in_the_bucket(cached, done) == n
    assert made(cached, n).computed == []


def test_no_ledger_names_what_the_store_has_not_got(cached, proxy, tmp_path):
    proxy.fault = lambda method, path: "lost" if of_blobs(method, path) else None
    with pytest.raises(WriteLostError):
        made(cached)
    proxy.fault = lambda _method, _path: None
    assert ItemLedger(cached.remote, "track/stage").finished() == {}
    # Another run, which knows the lost blobs by their notes alone.
    done = made(CachedStore(cached.remote, tmp_path / "copies"))
    assert in_the_bucket(cached, done) == N


def test_what_another_process_wrote_is_looked_up_before_this_one_names_it(cached, proxy, tmp_path):
    program = f"""
        from duplex_bench.storage.blobs import BlobStore
        from duplex_bench.storage.cached_store import CachedStore
        from duplex_bench.storage.s3_store import S3Store
        from pathlib import Path
        store = CachedStore(S3Store("bench", {cached.remote.prefix!r}), Path({str(tmp_path / "copies")!r}))
        print(BlobStore(store).put(b"audio of a pool's process", "flac"), end="")
    """
    proxy.fault = losing(1)
    command = [sys.executable, "-c", textwrap.dedent(program)]
    digest = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    key = BlobStore(cached).key(digest, "flac")
    assert not cached.remote.exists(key)
    cached.put("tables/one.parquet", digest.encode())
    assert BlobStore(cached.remote).get(digest, "flac") == b"audio of a pool's process"


def test_a_lost_blob_without_its_copy_ends_the_run_once(cached, proxy, tmp_path):
    proxy.fault = losing(1)
    digest = BlobStore(cached).put(b"content", "flac")
    (tmp_path / "copies" / BlobStore(cached).key(digest, "flac")).unlink()
    with pytest.raises(WriteLostError, match="run the same again"):
        cached.put("tables/one.parquet", b"")
    assert not cached.exists("tables/one.parquet")
    cached.put("tables/one.parquet", b"")


def test_a_store_that_cannot_be_asked_is_asked_later(cached, proxy):
    digest = BlobStore(cached).put(b"content", "flac")
    proxy.fault = lambda method, _path: "error" if method in {"HEAD", "GET"} else None
    with pytest.raises(StoreUnavailableError):
        cached.put("tables/one.parquet", b"")
    proxy.fault = losing(1)
    cached.put("tables/one.parquet", b"")
    assert BlobStore(cached.remote).get(digest, "flac") == b"content"


def test_signs_of_life_wait_for_no_blob(cached, proxy):
    BlobStore(cached).put(b"content", "flac")
    before = len(proxy.seen)
    cached.put("runs/one.json", b"")
    cached.put("leases/track/stage/00000001.json", b"")
    assert all("/blobs/" not in path for _, path, _ in proxy.seen[before:])
    cached.put("tables/one.parquet", b"")
    assert any("/blobs/" in path for method, path, _ in proxy.seen if method == "HEAD")


def test_many_look_ups_are_few_requests_and_say_what_single_ones_say(s3, faulty, proxy, monkeypatch):
    monkeypatch.setattr(s3_module, "LISTED_FOR_LOOKS", 10)
    # Names that stores sort differently: a folder beside files whose names begin as its does.
    there = [f"a/{number:02d}.x" for number in range(20)] + ["a/05/deep", "a/05-deep", "b/1", "b/1.x", "b/1/x"]
    for key in there:
        faulty.put(key, key.encode())
    proxy.seen.clear()
    gone = ["a/00", "a/05", "a/055.x", "b/0", "c/1"]
    assert faulty.missing([*there, *gone]) == set(gone)
    assert len(proxy.seen) <= 1 + len(gone)
