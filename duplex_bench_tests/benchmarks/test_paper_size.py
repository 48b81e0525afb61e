"""The benchmark of size on a run of seconds: it runs the product's own parts, and its arithmetic is right."""

import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.paper_size import Size, event_rows, fitted, page_bytes, simulated

SMALL = Size(systems=2, pairs=3, points=8, repeats=2)


@pytest.mark.unit
def test_slopes_of_known_growth():
    sizes = np.array([100.0, 200.0, 400.0, 800.0])
    linear, quadratic = fitted(sizes, 3.0 * sizes), fitted(sizes, 0.5 * sizes**2)
    assert linear.slope == pytest.approx(1.0)
    assert linear.each == pytest.approx(3.0)
    assert quadratic.low > 1.99
    mostly_fixed = fitted(sizes, 1_000.0 + sizes)
    assert mostly_fixed.high < 1.0
    assert mostly_fixed.fixed == pytest.approx(1_000.0)


@pytest.mark.unit
def test_a_noisy_line_is_not_called_steep():
    sizes = np.array([1.0, 2.0, 4.0, 8.0])
    noise = np.random.default_rng(1).uniform(0.9, 1.1, 4)
    found = fitted(sizes, sizes * noise)
    assert found.low < 1.0 < found.high


@pytest.mark.unit
def test_a_page_counts_what_it_loads(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "items.js").write_bytes(b"x" * 1000)
    text = '<script src="data/items.js"></script><a href="other.html">elsewhere</a>'
    (tmp_path / "page.html").write_text(text)
    assert page_bytes(tmp_path, "page.html") == 1000 + len(text)


@pytest.mark.slow
def test_a_small_run_goes_through_every_part(tmp_path):
    run = simulated(tmp_path / "run", SMALL)
    for name in ("system_cpu_s", "report_cpu_s", "peak_bytes", "store_bytes", "event_bytes", "first_page_bytes"):
        assert run.figures[name] > 0, name
    tables = run.folder / "data" / "store" / "tables" / "size"
    for track, items in (("multiparty", 2 * SMALL.pairs), ("conversation", SMALL.points)):
        for system in ("simulated-000", "simulated-001"):
            rollouts = pl.read_parquet(tables / track / "rollouts" / f"{system}.parquet")
            assert rollouts.height == items * SMALL.repeats
            scores = pl.read_parquet(tables / track / "measurements" / f"{system}.parquet")
            assert scores["value"].is_not_null().any()
    assert len(list(event_rows(run.folder / "data" / "dagster"))) == SMALL.systems + 1
    assert (run.folder / "data" / "reports" / "size" / "index.html").is_file()
