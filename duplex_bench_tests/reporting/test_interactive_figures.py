import json
import math

import matplotlib as mpl
import pytest

from duplex_bench.reporting.figures import draw_figures
from duplex_bench.reporting.figures.interactive import interactive

mpl.use("svg")
pytestmark = pytest.mark.unit


def drawn(make):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4, 3), layout="constrained")
    axes = figure.subplots()
    make(axes)
    figure.draw_without_rendering()
    return interactive(figure)


def test_every_figure_has_an_interactive_form_with_the_numbers_of_the_drawing(report_inputs):
    for track in report_inputs.tracks:
        for figure in draw_figures(track, report_inputs.systems):
            spec = json.loads(figure.plot)
            assert spec["data"], figure.id
            assert all(len(trace["x"]) == len(trace["y"]) for trace in spec["data"]), figure.id
    rates = next(one for one in draw_figures(track, report_inputs.systems) if one.id == "conversation-rates")
    shown = {round(x, 4) for trace in json.loads(rates.plot)["data"] if trace["mode"] == "markers" for x in trace["x"]}
    rate_metrics = {card.id for card in track.headline_cards if card.statistic == "rate"}
    stored = {
        round(row["estimate"], 4)
        for row in track.statistics.to_dicts()
        if row["metric"] in rate_metrics and row["estimate"] is not None
    }
    assert {float(f"{value:.4g}") for value in stored} == {float(f"{value:.4g}") for value in shown}


def test_points_of_named_rows_say_their_row():
    def make(axes):
        axes.plot([0.2, 0.4], [0.9, 0.1], "o", label="explicit")
        axes.set_yticks([0, 1], ["never <b>speak</b>", "always"])

    spec = drawn(make)
    assert spec["data"][0]["text"] == ["always", "never &lt;b&gt;speak&lt;/b&gt;"]
    assert spec["layout"]["yaxis"]["ticktext"] == ["never &lt;b&gt;speak&lt;/b&gt;", "always"]


def test_stacked_bars_keep_start_length_and_name():
    def make(axes):
        axes.barh([0, 1], [0.25, 0.5], left=[0.1, 0.2], label="silent")

    (bars,) = drawn(make)["data"]
    assert (bars["base"], bars["x"], bars["customdata"]) == ([0.1, 0.2], [0.25, 0.5], [0.25, 0.5])
    assert (bars["orientation"], bars["y"], bars["name"]) == ("h", [0, 1], "silent")


def test_log_axes_lines_across_and_gaps():
    def make(axes):
        axes.step([0.1, 1.0, 10.0], [0.2, math.nan, 1.0], where="post", label="a")
        axes.axvline(1.0, linestyle="--", color="#D55E00")
        axes.set_xscale("log")
        axes.set_xlim(0.1, 100)

    spec = drawn(make)
    assert spec["layout"]["xaxis"]["type"] == "log"
    assert spec["layout"]["xaxis"]["range"] == [-1.0, 2.0]
    assert spec["data"][0]["y"] == [0.2, None, 1.0]
    assert spec["data"][0]["line"]["shape"] == "hv"
    (line,) = spec["layout"]["shapes"]
    assert (line["x0"], line["yref"], line["line"]["dash"]) == (1.0, "y domain", "dash")
    json.dumps(spec, allow_nan=False)
