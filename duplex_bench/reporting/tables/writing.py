"""Tables as files; ``reporting.run_tables.load_run`` reads them back."""

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from duplex_bench.reporting.inputs import Table
from duplex_bench.storage.frames import to_parquet


def write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Write each table as ``<id>.csv`` and ``<id>.parquet`` into ``folder`` and return the paths.

    Nested columns become JSON text in CSV, which has no nesting; Parquet keeps them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        csv, parquet = folder / f"{table.id}.csv", folder / f"{table.id}.parquet"
        _flat(table.frame).write_csv(csv)
        parquet.write_bytes(to_parquet(table.frame))
        written += [csv, parquet]
    return written


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    nested = [name for name, kind in frame.schema.items() if kind.is_nested()]
    if not nested:
        return frame
    as_text = [
        pl.Series(name, [None if value is None else _json(value) for value in frame[name].to_list()], dtype=pl.String)
        for name in nested
    ]
    return frame.with_columns(as_text)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
