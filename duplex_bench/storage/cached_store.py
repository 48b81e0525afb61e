"""A remote object store whose blobs are kept on this machine too, once read or written.

Blobs are named by the digest of their bytes and never change, so that a copy is as good as the original. Everything
else (tables, ledgers, caches of answers) always comes from the remote store.

A blob that was written is looked up in the remote store before anything that may name it is written: many blobs at
once, when the ledger's next segment or a table goes out. One that the store confirmed and has not got is then written
again from its copy, so that nothing is computed or paid for twice.
"""

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from duplex_bench.storage.object_store import FolderStore, StorageFullError
from duplex_bench.storage.s3_store import S3Store, WriteLostError
from duplex_bench.storage.unseen_writes import UnseenWrites

_KEPT = "blobs/"
_NAME_NO_BLOB = ("leases/", "runs/")
"""Signs of life: written often, and by threads that have nothing to do with the work."""


class CachedStore:
    """``remote``, with copies of its blobs below ``folder``. The folder may be deleted at any time."""

    def __init__(self, remote: S3Store, folder: Path) -> None:
        self.remote = remote
        self._copies = FolderStore(folder)
        bucket = quote(f"{remote.bucket}/{remote.prefix}", safe="")
        self._unseen = UnseenWrites(folder.with_name(f"{folder.name}-unseen") / bucket)
        self._settling = threading.Lock()

    def get(self, key: str) -> bytes:
        """The object's bytes; raises KeyError if there is none."""
        if not key.startswith(_KEPT):
            return self.remote.get(key)
        try:
            return self._copies.get(key)
        except KeyError:
            data = self.remote.get(key)
            self._keep(key, data)
            return data

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Objects in the order of ``keys``, several on the way at once; None for one that is not there."""
        return self.remote.get_many(keys)

    def put(self, key: str, data: bytes) -> None:
        """Write or replace an object in the remote store; first, blobs that it may name are looked up there."""
        self._settle_before(key)
        self.remote.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object to the remote store unless one is there; True if this call wrote it."""
        if not key.startswith(_KEPT):
            self._settle_before(key)
            return self.remote.put_if_absent(key, data)
        if not self._keep(key, data):
            # Without a copy a lost write could not be made again later.
            return self.remote.put_if_absent(key, data)
        written = self.remote.create_unseen(key, data, sha256=PurePosixPath(key).name.split(".")[0])
        if written is None:
            return False
        self._unseen.add(key, written)
        return True

    def settle(self) -> None:
        """Look up every blob that was written from this machine and not looked up yet, by whatever process.

        Raises:
            WriteLostError: the store confirms a blob again and again and has not got it, or has lost it together with
                its copy here.
            StoreUnavailableError: it does not answer; the blobs are looked up next time.
        """
        with self._settling:
            unseen = self._unseen.all()
            if not unseen:
                return
            lost = self.remote.not_as_written(unseen)
            self._unseen.remove(unseen.keys() - lost)
            for key in sorted(lost):
                self._write_again(key)

    def exists(self, key: str) -> bool:
        """Whether the remote store has the object."""
        return self.remote.exists(key)

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` that the remote store has not got."""
        return self.remote.missing(keys)

    def stamp(self, key: str) -> str:
        """A text that changes when the object does; empty where there is none."""
        return self.remote.stamp(key)

    def delete(self, key: str) -> None:
        """Remove an object, and its copy."""
        self._unseen.remove([key])
        self.remote.delete(key)
        self._copies.delete(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key of the remote store below ``prefix`` (a folder), sorted."""
        return self.remote.keys(prefix)

    def _settle_before(self, key: str) -> None:
        if not key.startswith(_NAME_NO_BLOB):
            self.settle()

    def _write_again(self, key: str) -> None:
        try:
            data = self._copies.get(key)
        except KeyError:
            self._unseen.remove([key])
            raise WriteLostError(f"{key}: the store confirmed it and has not got it: run the same again") from None
        self.remote.put(key, data)
        self._unseen.remove([key])

    def _keep(self, key: str, data: bytes) -> bool:
        try:
            self._copies.put_if_absent(key, data)
        except StorageFullError:
            # A copy saves time and nothing else; what the run writes is in the remote store.
            return False
        return True
