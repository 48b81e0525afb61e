"""The S3 store against a real server: what a reader sees is whole, what a writer is told is true."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from duplex_bench.storage import s3_store as module
from duplex_bench.storage.blobs import BlobDamagedError, BlobStore
from duplex_bench.storage.cached_store import CachedStore
from duplex_bench.storage.ledger import ItemLedger, LedgerRecord
from duplex_bench.storage.object_store import FolderStore, StorageFullError
from duplex_bench.storage.places import open_store
from duplex_bench.storage.s3_store import S3Store, StoreUnavailableError, WriteLostError, s3_store

pytestmark = pytest.mark.process


@pytest.fixture(params=["folder", "bucket", "cached"])
def store(request, tmp_path, s3):
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    return s3 if request.param == "bucket" else CachedStore(s3, tmp_path / "copies")


def test_every_store_keeps_the_same_promises(store):
    with pytest.raises(KeyError):
        store.get("a/none")
    assert not store.exists("a/one")
    assert store.stamp("a/one") == ""
    store.put("a/one", b"first")
    before = store.stamp("a/one")
    assert store.put_if_absent("a/two", b"second")
    assert not store.put_if_absent("a/two", b"other, and longer")
    store.put("a/one", b"first again")
    assert store.stamp("a/one") != before
    store.put("ab/three", b"")
    assert list(store.keys("a")) == ["a/one", "a/two"]
    assert list(store.get_many(["a/two", "a/none", "a/one"])) == [
        ("a/two", b"second"),
        ("a/none", None),
        ("a/one", b"first again"),
    ]
    assert store.missing(["a/two", "a/none", "ab/three"]) == {"a/none"}
    store.delete("a/one")
    store.delete("a/one")
    assert list(store.keys("a")) == ["a/two"]
    for bad in ("", "/a", "../a", "a/../../b"):
        with pytest.raises(ValueError, match="not a relative path"):
            store.put(bad, b"x")


def test_of_many_who_create_one_object_one_is_told_that_it_did(store):
    def create(number):
        return store.put_if_absent("race/key", f"writer {number}".encode())

    with ThreadPoolExecutor(8) as threads:
        won = list(threads.map(create, range(16)))
    assert sum(won) == 1
    assert store.get("race/key") == f"writer {won.index(True)}".encode()


def test_listing_goes_on_over_pages(s3):
    names = [f"many/{number:05d}" for number in range(1_050)]
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda name: s3._send(name, b"", {}), names))
    assert list(s3.keys("many")) == names


def test_a_large_object_goes_up_in_parts_and_is_whole(s3, monkeypatch):
    monkeypatch.setattr(module, "MULTIPART_BYTES", 5 * 2**20)
    data = bytes(range(256)) * (11 * 2**20 // 256)
    s3.put("large/one", data)
    assert s3.get("large/one") == data
    assert s3.put_if_absent("large/two", data)
    assert not s3.put_if_absent("large/two", data)
    assert s3.abandoned_uploads() == 0


def test_an_upload_whose_process_is_killed_is_never_seen(s3, proxy, monkeypatch):
    code = (
        "from duplex_bench.storage import s3_store as m; m.MULTIPART_BYTES = 5 * 2**20\n"
        f"m.S3Store('bench', {s3.prefix!r}).put('large/one', b'x' * (12 * 2**20))"
    )
    process = None

    def kill_at_second_part(method, path):
        if method == "PUT" and "partNumber=2" in path:
            process.kill()
            return "drop"
        return None

    proxy.fault = kill_at_second_part
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.DEVNULL)
    assert process.wait(300) == -9
    assert not s3.exists("large/one")
    assert list(s3.keys("large")) == []
    assert s3.abandoned_uploads(remove=True) == 1
    assert s3.abandoned_uploads() == 0


@pytest.mark.parametrize("fault", ["error", "drop", "cut", "slow"])
def test_a_read_that_fails_once_is_made_again(faulty, proxy, impatient_once, fault):
    faulty.put("one", b"content" * 1_000)
    proxy.once("GET", fault)
    if fault == "slow":
        impatient_once()
    if fault == "cut":
        # A body that breaks off is an error, never a short object.
        with pytest.raises(StoreUnavailableError):
            faulty.get("one")
    assert faulty.get("one") == b"content" * 1_000


@pytest.mark.parametrize("fault", ["error", "drop", "slow", "lost", "unsaid"])
def test_a_write_that_fails_once_is_made_again(faulty, proxy, impatient_once, fault):
    proxy.once("PUT", fault)
    if fault == "slow":
        impatient_once()
    faulty.put("one", b"content")
    assert faulty.get("one") == b"content"
    assert [seen[2] for seen in proxy.seen if seen[0] == "PUT"] == [fault, None]


def test_a_store_that_loses_every_write_is_found_out(faulty, proxy):
    proxy.fault = lambda method, _path: "lost" if method == "PUT" else None
    with pytest.raises(WriteLostError, match="has not got it"):
        faulty.put("one", b"content")
    with pytest.raises(WriteLostError):
        BlobStore(faulty).put(b"audio", "flac")


@pytest.mark.parametrize("in_many", [True, False])
def test_what_is_damaged_on_the_way_is_refused(faulty, proxy, tmp_path, in_many):
    store = CachedStore(faulty, tmp_path / "copies") if in_many else faulty
    proxy.fault = lambda method, _path: "damaged" if method == "PUT" else None
    with pytest.raises(StoreUnavailableError, match="BadDigest"):
        BlobStore(store).put(b"audio", "flac")
    assert list(faulty.keys(".")) == []


def test_a_store_that_does_not_know_checksums_gets_an_md5(faulty, proxy, tmp_path):
    proxy.fault = lambda method, _path: "unconfirmed" if method == "PUT" else None
    store = CachedStore(faulty, tmp_path / "copies")
    digests = [BlobStore(store).put(f"audio {number}".encode(), "flac") for number in range(3)]
    store.settle()
    assert [BlobStore(faulty).get(digest, "flac") for digest in digests] == [b"audio 0", b"audio 1", b"audio 2"]
    # The first goes twice, and the rest as the first turned out.
    assert sum(method == "PUT" for method, *_ in proxy.seen) == 4


def test_a_store_that_is_away_or_full_is_an_error_of_the_item(faulty, proxy):
    proxy.fault = lambda method, _path: "error" if method == "PUT" else None
    with pytest.raises(StoreUnavailableError, match="run the same again"):
        faulty.put("one", b"content")
    proxy.fault = lambda method, _path: "full" if method == "PUT" else None
    with pytest.raises(StorageFullError, match="no space"):
        faulty.put("one", b"content")


def test_a_store_without_conditional_writes_is_refused(s3, monkeypatch):
    s3.check_conditions()
    send = s3._send
    monkeypatch.setattr(s3, "_send", lambda key, data, _condition, *_: send(key, data, {}))
    with pytest.raises(ValueError, match="ignores If-None-Match"):
        s3.check_conditions()
    assert list(s3.keys("probe")) == []


def test_what_a_ledger_could_not_write_stays_pending(faulty, proxy):
    ledger = ItemLedger(faulty, "track/stage")
    ledger.add(LedgerRecord("key", "item", "ok", payload="{}"))
    proxy.fault = lambda method, _path: "error" if method == "PUT" else None
    with pytest.raises(OSError, match="run the same again"):
        ledger.flush()
    proxy.fault = lambda _method, _path: None
    ledger.flush()
    assert ledger.finished().keys() == {"key"}


def test_a_damaged_blob_is_refused(s3):
    blobs = BlobStore(s3)
    digest = blobs.put(b"what was heard", "flac")
    s3.put(blobs.key(digest, "flac"), b"what was he")
    with pytest.raises(BlobDamagedError, match="damaged"):
        blobs.get(digest, "flac")


def test_blobs_are_read_over_the_network_once(faulty, proxy, tmp_path):
    cached = BlobStore(CachedStore(faulty, tmp_path / "copies"))
    digest = BlobStore(faulty).put(b"what was heard", "flac")
    assert {cached.get(digest, "flac") for _ in range(3)} == {b"what was heard"}
    assert sum(method == "GET" for method, *_ in proxy.seen) == 1


def test_wrong_credentials_are_named(s3_environment, monkeypatch):
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    with pytest.raises(StoreUnavailableError, match="AWS_SECRET_ACCESS_KEY"):
        S3Store("bench").put("one", b"")


def test_the_environment_chooses_the_store(s3_environment, monkeypatch, tmp_path):
    assert isinstance(open_store(tmp_path), FolderStore)
    monkeypatch.setenv("DUPLEX_BENCH_STORE", "s3://bench/chosen/by/environment")
    open_store(tmp_path).put("one", b"content")
    assert S3Store("bench", "chosen/by/environment").get("one") == b"content"
    for bad in ("http://bench", "s3://", "bench", "s3://bench/../other"):
        with pytest.raises(ValueError, match=r"s3://|relative path"):
            s3_store(bad)
