"""Whether two runs of one profile came out the same: every table, but for the columns that only time a run."""

from dataclasses import dataclass
from pathlib import Path

import polars as pl

from duplex_bench.storage.frames import VOLATILE_COLUMNS, from_parquet, to_parquet
from duplex_bench.storage.object_store import ObjectStore

_OF_THE_PAST = "/conversation/regenerated.parquet"
"""What became of each item since it was last made: another thing where items were made twice."""


@dataclass(frozen=True, slots=True)
class TablesCompared:
    """Keys of tables: the same bytes as they are, the same but for times and folder, different or on one side only."""

    same_bytes: tuple[str, ...]
    same_but_times: tuple[str, ...]
    different: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs: its object store and its data folder."""

    store: ObjectStore
    data: Path


def compare_tables(profile: str, one: Side, other: Side) -> TablesCompared:
    """Compare the tables of two runs of one profile, byte for byte.

    Where the bytes differ they are compared again, as Parquet, without the columns that time a run and with the data
    folder's own path (which names a generated recording) left out. Tables of what a data folder has been through are
    not compared.
    """
    folder = f"tables/{profile}"
    keys = sorted(key for key in {*one.store.keys(folder), *other.store.keys(folder)} if not key.endswith(_OF_THE_PAST))
    gone = one.store.missing(keys) | other.store.missing(keys)
    same, but_times, different = [], [], list(gone)
    for key in keys:
        if key in gone:
            continue
        first, second = one.store.get(key), other.store.get(key)
        if first == second:
            same.append(key)
        elif _settled(first, one.data) == _settled(second, other.data):
            but_times.append(key)
        else:
            different.append(key)
    return TablesCompared(tuple(same), tuple(but_times), tuple(sorted(different)))


def _settled(table: bytes, data: Path) -> bytes:
    frame = from_parquet(table)
    kept = frame.drop([name for name in VOLATILE_COLUMNS if name in frame.columns])
    return to_parquet(kept.with_columns(pl.col(pl.String).str.replace_all(str(data), "", literal=True)))
