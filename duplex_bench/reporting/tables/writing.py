"""Tables as files, and back into frames for notebooks."""

import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl

from duplex_bench.reporting.inputs import ReportInputError, Table

FOLDER = "tables"


def write_tables(tables: Iterable[Table], folder: Path) -> list[Path]:
    """Write each table as ``<id>.csv`` and ``<id>.parquet`` into ``folder`` and return the paths.

    Nested columns become JSON text in CSV, which has no nesting; Parquet keeps them.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for table in tables:
        csv, parquet = folder / f"{table.id}.csv", folder / f"{table.id}.parquet"
        _flat(table.frame).write_csv(csv)
        table.frame.write_parquet(parquet)
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


def load_run(path: Path | str) -> dict[str, pl.DataFrame]:
    """Every table of a report folder by its id, for notebooks.

    Args:
        path: the report folder (the one with ``index.html``).

    Raises:
        ReportInputError: the folder holds no tables.
    """
    files = sorted((Path(path) / FOLDER).glob("*.parquet"))
    if not files:
        raise ReportInputError(f"{path} holds no tables: give the report folder that `duplex-bench report` printed")
    return {file.stem: pl.read_parquet(file) for file in files}
