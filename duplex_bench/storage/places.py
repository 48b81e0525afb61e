"""Which object store holds a run: a folder of this machine, or a bucket, chosen by environment."""

import os
from functools import cache
from pathlib import Path

from duplex_bench.storage.cached_store import CachedStore
from duplex_bench.storage.object_store import FolderStore, ObjectStore
from duplex_bench.storage.s3_store import s3_store

STORE_VARIABLE = "DUPLEX_BENCH_STORE"
"""``s3://bucket/prefix``; unset or empty: the folder ``store`` below the data folder."""


def open_store(data: str | Path) -> ObjectStore:
    """The object store of the data folder ``data``; one client a process.

    Raises:
        ValueError: DUPLEX_BENCH_STORE is no address of a bucket.
    """
    return _opened(str(Path(data).resolve()), os.environ.get(STORE_VARIABLE, ""))


@cache
def _opened(data: str, address: str) -> ObjectStore:
    if not address:
        return FolderStore(Path(data) / "store")
    return CachedStore(s3_store(address), Path(data) / "cache" / "store")
