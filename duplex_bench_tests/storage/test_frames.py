"""A stored table comes back as it was, or its damage is named: no flipped bit becomes another number."""

import contextlib
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.storage.frames import (
    SEAL,
    DamagedTableError,
    from_parquet,
    read_frame,
    to_parquet,
    write_frame,
)
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit

TABLE = pl.DataFrame(
    {
        "item_id": [f"item-{number % 17}" for number in range(400)],
        "value": np.linspace(0, 1, 400),
        "spans": [[number / 7, 2.0] for number in range(400)],
    }
)
WHOLE = to_parquet(TABLE)
ROWS = st.lists(st.tuples(st.text(max_size=8), st.floats() | st.none()), max_size=20)


@given(ROWS)
def test_any_table_comes_back_and_is_the_same_bytes_each_time(rows):
    frame = pl.DataFrame(rows, schema={"text": pl.String, "value": pl.Float64}, orient="row")
    data = to_parquet(frame)
    assert from_parquet(data).equals(frame)
    assert data == to_parquet(frame)


@given(st.integers(0, len(WHOLE) - 1), st.integers(0, 7))
def test_a_flipped_bit_is_named_or_harmless(place, bit):
    damaged = bytearray(WHOLE)
    damaged[place] ^= 1 << bit
    try:
        found = from_parquet(bytes(damaged))
    except DamagedTableError:
        return
    # Of the seal's own name: the table is then read as one that has none.
    assert SEAL.encode() not in damaged
    assert found.equals(TABLE)


@pytest.mark.parametrize("column", ["value", "spans"])
def test_a_flipped_bit_of_a_column_is_found_although_polars_reads_it(column):
    only = TABLE.select(column)
    whole = to_parquet(only)
    read_by_polars = 0
    for place in range(8, len(whole) // 2, 5):
        damaged = bytearray(whole)
        damaged[place] ^= 1
        with pytest.raises(DamagedTableError, match="SHA-256"):
            from_parquet(bytes(damaged))
        with contextlib.suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException):
            read_by_polars += not pl.read_parquet(io.BytesIO(bytes(damaged))).equals(only)
    assert read_by_polars > 0


@given(st.integers(0, len(WHOLE) - 1))
def test_a_cut_table_is_named(length):
    with pytest.raises(DamagedTableError):
        from_parquet(WHOLE[:length])


def test_other_tools_read_it_and_theirs_are_read(tmp_path):
    (tmp_path / "ours.parquet").write_bytes(WHOLE)
    assert pl.read_parquet(tmp_path / "ours.parquet").equals(TABLE)
    buffer = io.BytesIO()
    TABLE.write_parquet(buffer)
    assert from_parquet(buffer.getvalue()).equals(TABLE)


def test_the_message_names_the_table_and_the_remedy(tmp_path):
    store = FolderStore(tmp_path)
    write_frame(store, "tables/demo/multiparty/statistics.parquet", TABLE)
    store.put("tables/demo/multiparty/statistics.parquet", WHOLE.replace(b"PAR1", b"PAR2"))
    with pytest.raises(
        DamagedTableError, match=r"tables/demo/multiparty/statistics.parquet .* delete it and run again"
    ) as told:
        read_frame(store, "tables/demo/multiparty/statistics.parquet")
    # What shows the first cause alone, as the runs do, shows this one.
    assert told.value.__cause__ is None
