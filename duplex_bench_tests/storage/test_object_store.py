"""An object is there whole or not at all, inside the store or refused."""

import errno
import os
import threading

import pytest

from duplex_bench.storage.object_store import FolderStore, StorageFullError, checked_key

pytestmark = pytest.mark.unit


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


def test_what_was_put_is_got(store):
    store.put("a/b.bin", b"one")
    store.put("a/b.bin", b"two")
    assert store.get("a/b.bin") == b"two"
    assert list(store.keys("a")) == ["a/b.bin"]


def test_a_missing_object_is_a_key_error(store):
    with pytest.raises(KeyError):
        store.get("nothing")
    assert not store.exists("nothing")
    store.delete("nothing")


def test_only_the_first_of_many_writers_creates(store):
    wrote = []
    threads = [
        threading.Thread(target=lambda n=n: wrote.append(store.put_if_absent("x/y", str(n).encode())))
        for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(wrote) == 1
    assert list(store.keys("x")) == ["x/y"]


@pytest.mark.parametrize("key", ["", "/etc/passwd", "../up", "a/../../b", "a\\b", "a\0b"])
def test_a_key_cannot_leave_the_store(key):
    with pytest.raises(ValueError, match="not a relative path"):
        checked_key(key)


def test_a_full_disk_leaves_no_part_behind(store, tmp_path):
    """A real limit on file size, as a full disk gives: the write fails part-way."""
    import resource
    import signal

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        with pytest.raises(StorageFullError, match="no space left") as caught:
            store.put("big", os.urandom(1 << 20))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert caught.value.errno in {errno.ENOSPC, errno.EFBIG}
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file()] == []
