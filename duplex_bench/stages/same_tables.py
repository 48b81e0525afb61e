"""Whether two runs of one profile came out the same: every table, but for the columns that only time a run."""

from dataclasses import dataclass

from duplex_bench.storage.digests import digest_bytes
from duplex_bench.storage.frames import VOLATILE_COLUMNS, read_frame, to_parquet
from duplex_bench.storage.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class TablesCompared:
    """Keys of tables: the same bytes as they are; the same once times are left out; and different or on one side."""

    same_bytes: tuple[str, ...]
    same_but_times: tuple[str, ...]
    different: tuple[str, ...]


def compare_tables(one: ObjectStore, other: ObjectStore, profile: str) -> TablesCompared:
    """Compare the tables of ``profile`` in two stores, byte for byte.

    A table that holds the time a run took is compared again, as Parquet bytes, without those columns.
    """
    folder = f"tables/{profile}"
    keys = sorted({*one.keys(folder), *other.keys(folder)})
    gone = one.missing(keys) | other.missing(keys)
    same, timed, different = [], [], list(gone)
    for key in keys:
        if key in gone:
            continue
        if digest_bytes(one.get(key)) == digest_bytes(other.get(key)):
            same.append(key)
        elif _untimed(one, key) == _untimed(other, key):
            timed.append(key)
        else:
            different.append(key)
    return TablesCompared(tuple(same), tuple(timed), tuple(sorted(different)))


def _untimed(store: ObjectStore, key: str) -> bytes:
    frame = read_frame(store, key)
    return to_parquet(frame.drop([name for name in VOLATILE_COLUMNS if name in frame.columns]))
