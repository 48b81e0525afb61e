"""A remote object store whose blobs are kept on this machine too, once read or written.

Blobs are named by the digest of their bytes and never change, so that a copy is as good as the original. Everything
else (tables, ledgers, caches of answers) always comes from the remote store.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from duplex_bench.storage.object_store import FolderStore, StorageFullError
from duplex_bench.storage.s3_store import S3Store

_KEPT = "blobs/"


class CachedStore:
    """``remote``, with copies of its blobs below ``folder``. The folder may be deleted at any time."""

    def __init__(self, remote: S3Store, folder: Path) -> None:
        self.remote = remote
        self._copies = FolderStore(folder)

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
        """Write or replace an object in the remote store."""
        self.remote.put(key, data)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object to the remote store unless one is there; True if this call wrote it."""
        wrote = self.remote.put_if_absent(key, data)
        if key.startswith(_KEPT):
            self._keep(key, data)
        return wrote

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
        self.remote.delete(key)
        self._copies.delete(key)

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key of the remote store below ``prefix`` (a folder), sorted."""
        return self.remote.keys(prefix)

    def _keep(self, key: str, data: bytes) -> None:
        try:
            self._copies.put_if_absent(key, data)
        except StorageFullError:
            # A copy saves time and nothing else; what the run writes is in the remote store.
            return
