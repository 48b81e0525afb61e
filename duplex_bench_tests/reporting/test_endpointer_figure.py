"""The curve of a sweep says what its numbers show, and nothing that they do not."""

import dataclasses

import polars as pl
import pytest

from duplex_bench.records.tables import STATISTICS
from duplex_bench.reporting.figures.endpointers import endpointer_curves
from duplex_bench.reporting.inputs import SweepPlace, SystemInfo

pytestmark = pytest.mark.unit


def told(report_inputs, places):
    """The caption of a sweep of (silence in ms, latency in s, takeover rate)."""
    rows, systems = [], []
    for silence, latency, takeover in places:
        name = f"s-{silence}"
        systems.append(SystemInfo(name, name, sweep=SweepPlace("one", float(silence), f"{silence} ms")))
        for metric, value in (("turn_end_latency", latency), ("pause_takeover", takeover)):
            rows.append({"system": name, "metric": metric, "estimate": value, "n_scored": 6, "condition": "pause"})
    frame = pl.DataFrame(schema=dict(STATISTICS))
    statistics = pl.concat([frame, pl.DataFrame(rows)], how="diagonal_relaxed").select(list(STATISTICS))
    tables = dataclasses.replace(report_inputs.tracks[1], statistics=statistics)
    return endpointer_curves(tables, systems).caption


def test_a_curve_that_falls_all_the_way_says_so(report_inputs):
    caption = told(report_inputs, [(100, 0.6, 0.9), (500, 1.0, 0.5), (2000, 2.5, 0.0)])
    assert "from 0.60 s (100 ms) to 2.50 s (2000 ms) takeovers go from 0.90 to 0.00, and at no step" in caption


def test_a_curve_that_rises_on_the_way_says_where_it_does_not_hold(report_inputs):
    caption = told(report_inputs, [(100, 0.6, 0.2), (500, 1.0, 0.5), (2000, 2.5, 0.1)])
    assert "takeovers go from 0.20 to 0.10, and at 1 of 2 steps takeovers rise" in caption


def test_places_are_told_by_their_latency_whatever_their_setting_promised(report_inputs):
    caption = told(report_inputs, [(100, 2.0, 0.1), (500, 1.0, 0.5)])
    assert "from 1.00 s (500 ms) to 2.00 s (100 ms)" in caption
