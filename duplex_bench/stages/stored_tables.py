"""Whether tables that another version stored are those that today's code reads."""

from typing import Final

import polars as pl

from duplex_bench.records import tables
from duplex_bench.storage.frames import DamagedTableError, from_parquet
from duplex_bench.storage.object_store import ObjectStore

# Tables by the name of their asset. Others have the schema of the stage that makes them, and are made from these.
SCHEMAS: Final = {
    "items": tables.ITEMS,
    "rollouts": tables.ROLLOUTS,
    "activity": tables.ACTIVITY,
    "words": tables.WORDS,
    "judgements": tables.JUDGEMENTS,
    "measurements": tables.MEASUREMENTS,
    "statistics": tables.STATISTICS,
    "comparisons": tables.COMPARISONS,
}


def unreadable_tables(store: ObjectStore) -> dict[str, str]:
    """Object keys of tables that today's code cannot read as they are, with what is wrong."""
    told = ((key, why_unreadable(store, key)) for key in store.keys("tables"))
    return {key: why for key, why in told if why is not None}


def why_unreadable(store: ObjectStore, key: str) -> str | None:
    """What is wrong with the table of this key; None if it can be read, or is none whose columns are known here."""
    parts = key.removesuffix(".parquet").split("/")
    # tables/<profile>/<group>/<asset>[/<system>]
    schema = SCHEMAS.get(parts[3]) if len(parts) > 3 else None
    if schema is None:
        return None
    try:
        found = dict(from_parquet(store.get(key)).schema)
    except (DamagedTableError, KeyError, OSError) as error:
        return f"cannot be read: {error}"
    expected = dict(pl.Schema(schema))
    missing = sorted(set(expected) - set(found))
    unknown = sorted(set(found) - set(expected))
    changed = sorted(name for name in set(expected) & set(found) if expected[name] != found[name])
    told = [f"{what} {', '.join(names)}" for what, names in
            (("lacks", missing), ("has unknown", unknown), ("has another type of", changed)) if names]  # fmt: skip
    return "; ".join(told) or None
