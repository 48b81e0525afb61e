"""Tables in an object store, each with a seal that shows damage, and the digest of what a table says."""

import io
from collections.abc import Sequence
from typing import Final

import polars as pl

from duplex_bench.records.tables import Schema
from duplex_bench.storage.digests import digest_bytes
from duplex_bench.storage.object_store import ObjectStore

# What a run took is recorded, but a rerun that took longer says nothing new.
VOLATILE_COLUMNS = ("compute_s", "wall_s", "attempts")
# Parquet has no checksum that polars writes or reads: four of five flipped bits would give other numbers in silence.
SEAL: Final = "duplex_bench.sha256"
_UNSEALED: Final = b"0" * 64


class DamagedTableError(ValueError):
    """A stored table is not what was written."""


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
    """The table as zstd Parquet, whose metadata hold as ``SEAL`` the SHA-256 of the file with zeros in its place."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, compression="zstd", metadata={SEAL: _UNSEALED.decode()})
    data = bytearray(buffer.getbuffer())
    place = _seal_place(data)
    data[place : place + len(_UNSEALED)] = digest_bytes(buffer.getbuffer()).encode()
    return bytes(data)


def from_parquet(data: bytes) -> pl.DataFrame:
    """The table that ``to_parquet`` wrote; one of other tools, which has no seal, is read as it is.

    Raises:
        DamagedTableError: it is no Parquet, or its bytes are not those that were written.
    """
    place = _seal_place(data)
    if place >= 0:
        end = place + len(_UNSEALED)
        if digest_bytes(data[:place] + _UNSEALED + data[end:]) != data[place:end].decode("ascii", "replace"):
            raise DamagedTableError("its bytes are not those that were written (SHA-256)")
    try:
        return pl.read_parquet(io.BytesIO(data))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise DamagedTableError(str(error)) from error


def write_frame(store: ObjectStore, key: str, frame: pl.DataFrame) -> None:
    """Store a table under ``key``, whole or not at all."""
    store.put(key, to_parquet(frame))


def read_frame(store: ObjectStore, key: str) -> pl.DataFrame:
    """A stored table.

    Raises:
        KeyError: there is none.
        DamagedTableError: it is not what was written.
    """
    try:
        return from_parquet(store.get(key))
    except DamagedTableError as error:
        remedy = "run again (on a cluster, a backfill), no work is lost. If it stays, delete it and run again"
        # Whoever tells the first cause alone must tell which table it is, too.
        raise DamagedTableError(f"table {key} is damaged, {error}: {remedy}") from None


def content_digest(frame: pl.DataFrame) -> str:
    """Digest of what a table says: rows in any order, without the columns that only time a run."""
    kept = frame.drop([name for name in VOLATILE_COLUMNS if name in frame.columns])
    lines = sorted(kept.write_ndjson().splitlines())
    return digest_bytes("\n".join([",".join(kept.columns), *lines]).encode())


def _seal_place(data: bytes | bytearray) -> int:
    """Where the seal's digits begin, which Thrift writes after the name, a type and a length; -1 without a seal."""
    name = SEAL.encode()
    found = data.rfind(name)
    return found + len(name) + 2 if found >= 0 else -1
