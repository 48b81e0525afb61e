import json
import math

import matplotlib as mpl
import numpy as np
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


def test_names_of_rows_stand_level_and_places_on_a_log_axis_are_logarithms():
    from duplex_bench.reporting.figures.ridges import Ridge, ridges

    figure = ridges(["Cascade, 300 ms"], [Ridge("latency (s)", [np.array([0.1, 0.1, 0.9])], [3], 1.0, True, 0.05)])
    figure.draw_without_rendering()
    spec = interactive(figure)
    named = [one for one in spec["layout"]["annotations"] if one["text"] == "Cascade, 300 ms"]
    assert [one["xanchor"] for one in named] == ["right"]
    assert spec["layout"]["yaxis"]["title"] == {"text": ""}
    assert spec["layout"]["yaxis"]["tickvals"] == [0.0, 1.0]
    (median,) = [one for one in spec["layout"]["annotations"] if one["text"] == "0.10"]
    assert median["x"] == pytest.approx(-1.0)


def test_the_script_and_the_drawing_agree_on_what_a_dark_ground_changes():
    from importlib import resources

    from duplex_bench.reporting.figures.draw import _INK, ON_DARK

    script = (resources.files("duplex_bench.reporting.site") / "assets" / "figures.js").read_text(encoding="utf-8")
    for light, dark in ON_DARK.items():
        assert light == _INK or f'"{light}": "{dark}"' in script


def test_a_drawing_says_its_size_before_it_is_loaded(report_inputs):
    for figure in draw_figures(report_inputs.tracks[0], report_inputs.systems):
        width, height = figure.size_px
        assert 200 < width < 1200
        assert 50 < height < 2000
