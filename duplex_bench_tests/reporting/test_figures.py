import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import polars as pl
import pytest

from duplex_bench.reporting.figures import draw_figures
from duplex_bench.reporting.figures.outcomes import pause_lengths

pytestmark = pytest.mark.unit


def test_figures_are_deterministic_vectors_with_n_in_the_caption(report_inputs):
    tables = report_inputs.tracks[1]
    first, second = (draw_figures(tables, report_inputs.systems) for _ in range(2))
    assert {figure.id for figure in first} == {
        "conversation-rates", "conversation-timing", "conversation-turn-end-distributions",
        "conversation-pause-outcomes", "conversation-takeover-by-length", "conversation-pause-point",
        "conversation-turn-end-quartiles",
    }  # fmt: skip
    for one, other in zip(first, second, strict=True):
        assert (one.svg, one.png) == (other.svg, other.png)
        assert ElementTree.fromstring(one.svg).tag.endswith("svg")
        assert b"<dc:date>" not in one.svg
        assert one.svg != one.svg_dark
        assert any(digit in one.caption for digit in "123456789")


def test_figures_do_not_depend_on_row_order(report_inputs):
    import dataclasses

    tables = report_inputs.tracks[1]
    turned = dataclasses.replace(
        tables, measurements=tables.measurements.reverse(), statistics=tables.statistics.reverse()
    )
    ours, theirs = (draw_figures(each, report_inputs.systems) for each in (tables, turned))
    assert [figure.svg for figure in ours] == [figure.svg for figure in theirs]


def test_pause_lengths_come_from_the_windows(report_inputs):
    tables = report_inputs.tracks[1]
    lengths = pause_lengths(tables)
    assert lengths.height == tables.items.filter(pl.col("protocol") == "pause").height
    assert lengths["pause_s"].is_between(0.6, 2.2).all()


def test_systems_of_one_sweep_are_joined_to_a_curve(report_inputs):
    import dataclasses

    from duplex_bench.reporting.inputs import SweepPlace

    tables = report_inputs.tracks[1]
    places = {"cascade-500ms": SweepPlace("s", 500.0, "500 ms"), "cascade-300ms": SweepPlace("s", 300.0, "300 ms")}
    alone = {"cascade-300ms": places["cascade-300ms"]}

    def drawn(placed):
        systems = [dataclasses.replace(one, sweep=placed.get(one.name)) for one in report_inputs.systems]
        return {figure.id: figure for figure in draw_figures(tables, systems)}

    assert "conversation-endpointers" not in drawn(alone)
    figure = drawn(places)["conversation-endpointers"]
    assert "2 systems; curves: 1" in figure.caption
    assert b"300 ms" in figure.svg
    assert b"500 ms" in figure.svg


def test_importing_reporting_loads_no_heavy_library():
    heavy = "('matplotlib', 'soxr', 'librosa')"
    code = f"import sys, duplex_bench.reporting.site; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


@pytest.mark.parametrize(("least", "hollow"), [(10, True), (1, False)])
def test_a_bin_of_few_pauses_has_a_hollow_mark_and_the_caption_says_so(report_inputs, monkeypatch, least, hollow):
    from duplex_bench.reporting.figures import draw, outcomes

    for module in (draw, outcomes):
        monkeypatch.setattr(module, "LEAST_PER_BIN", least)
    tables, systems = report_inputs.tracks[1], report_inputs.systems
    figure = next(one for one in draw_figures(tables, systems) if one.id == "conversation-takeover-by-length")
    assert ("Hollow: fewer than 10" in figure.caption) is hollow
    shares = outcomes.takeover_by_length(tables, [one for one in systems if one.family != "bound"])
    marks = [line for line in shares.make().axes[0].lines if line.get_marker() not in ("None", "")]
    assert marks
    assert {line.get_markerfacecolor() == "none" for line in marks} == {hollow}
