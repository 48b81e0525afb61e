"""Tables in an object store, and the digest of what a table says."""

import io
from collections.abc import Sequence

import polars as pl

from duplex_bench.records.tables import Schema
from duplex_bench.storage.digests import digest_bytes
from duplex_bench.storage.object_store import ObjectStore

# What a run took is recorded, but a rerun that took longer says nothing new.
VOLATILE_COLUMNS = ("compute_s", "wall_s", "attempts")


def frame_of(rows: Sequence[dict[str, object]], schema: Schema) -> pl.DataFrame:
    """A table with exactly the schema's columns, in order.

    Raises:
        ValueError: a row has a column that the schema does not know, or lacks one.
    """
    known = set(schema)
    for number, row in enumerate(rows):
        if set(row) != known:
            missing, extra = sorted(known - set(row)), sorted(set(row) - known)
            raise ValueError(f"row {number}: missing columns {missing}, unknown columns {extra}")
    return pl.DataFrame(list(rows), schema=dict(schema), orient="row")


def to_parquet(frame: pl.DataFrame) -> bytes:
    """The table as zstd Parquet."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd")
    return buffer.getvalue()


def from_parquet(data: bytes) -> pl.DataFrame:
    """The table that ``to_parquet`` wrote."""
    return pl.read_parquet(io.BytesIO(data))


def write_frame(store: ObjectStore, key: str, frame: pl.DataFrame) -> None:
    """Store a table under ``key``, whole or not at all."""
    store.put(key, to_parquet(frame))


def read_frame(store: ObjectStore, key: str) -> pl.DataFrame:
    """A stored table; raises KeyError if there is none."""
    return from_parquet(store.get(key))


def content_digest(frame: pl.DataFrame) -> str:
    """Digest of what a table says: rows in any order, without the columns that only time a run."""
    kept = frame.drop([name for name in VOLATILE_COLUMNS if name in frame.columns])
    lines = sorted(kept.write_ndjson().splitlines())
    return digest_bytes("\n".join([",".join(kept.columns), *lines]).encode())
