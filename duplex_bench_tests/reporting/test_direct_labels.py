import itertools
import json

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.reporting.figures import draw_figures
from duplex_bench.reporting.figures.direct import Part, beside_points, spread, stacked_bars
from duplex_bench.reporting.figures.interactive import interactive
from duplex_bench.reporting.figures.panels import Curve, system_panels
from duplex_bench.reporting.figures.ridges import Ridge, ridges
from duplex_bench.reporting.inputs import SystemInfo
from duplex_bench.reporting.scales import scale_of

mpl.use("svg")
pytestmark = pytest.mark.unit


def axes_of(**limits):
    from matplotlib.figure import Figure

    axes = Figure(figsize=(6, 4), layout="constrained").subplots()
    axes.set(**limits)
    return axes


def drawn_boxes(figure):
    """Extents of every text of the axes, pixels, after the layout is settled."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return [
        # Of the text alone, without the line that may join it to its point.
        (text.get_text(), Text.get_window_extent(text, canvas.get_renderer()))
        for axes in figure.axes
        for text in axes.texts
        if axes.get_visible() and text.get_text()
    ]


def assert_apart(boxes):
    for n, (name, box) in enumerate(boxes):
        for other, theirs in boxes[n + 1 :]:
            wide = min(box.x1, theirs.x1) - max(box.x0, theirs.x0)
            tall = min(box.y1, theirs.y1) - max(box.y0, theirs.y0)
            assert min(wide, tall) < 1.5, (name, other)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_spread_keeps_order_and_distance_within_the_ends(places):
    found = spread(places, 0.1, 0.0, 1.0)
    assert len(found) == len(places)
    assert min(found) >= -1e-9
    assert max(found) <= 1 + 1e-9
    ordered = [found[n] for n in sorted(range(len(places)), key=lambda n: (places[n], n))]
    assert all(b - a >= 0.1 - 1e-9 for a, b in itertools.pairwise(ordered))


def test_no_figure_has_a_legend_on_paper_or_on_screen(report_inputs):
    for track in report_inputs.tracks:
        for figure in draw_figures(track, report_inputs.systems):
            assert b'id="legend' not in figure.svg, figure.id
            assert json.loads(figure.plot)["layout"]["showlegend"] is False, figure.id


def test_equal_lines_have_names_that_do_not_touch():
    curves = [Curve([0, 1, 2], [1.0, 1.0, 1.0], name, place) for place, name in enumerate(("any", "fresh", "right"))]
    figure = system_panels([("One", curves), ("Two", curves)], x_label="time", y_label="share")
    boxes = drawn_boxes(figure)
    assert sorted(name for name, _ in boxes) == ["any", "any", "fresh", "fresh", "right", "right"]
    assert_apart(boxes)


def test_a_dashed_line_is_named_only_where_it_stands_alone():
    full, dashed = Curve([0, 1], [0.2, 0.4], "any", 0), Curve([0, 1], [0.1, 0.3], "any", 0, dashed=True)
    alone = Curve([0, 1], [0.8, 0.9], "right", 1, dashed=True)
    figure = system_panels([("One", [full, dashed, alone])], x_label="time", y_label="share")
    assert [name for name, _ in drawn_boxes(figure)] == ["any", "right"]


def test_each_kind_of_segment_is_named_once_where_it_is_widest():
    axes = axes_of()
    parts = (Part("silent", "#46586e"), Part("wordless", "#E69F00", dark_text=True), Part("takeover", "#D55E00"))
    widths = np.array([[0.2, 0.05, 0.75], [0.9, 0.1, 0.0]])
    stacked_bars(axes, parts, widths, lambda share: f"{share:.2f}", 4.6)
    texts = [text.get_text() for text in axes.texts]
    assert "takeover 0.75" in texts
    assert "silent 0.90" in texts
    assert texts.count("wordless") == 1  # too narrow for its name: above the bar
    assert sum("silent" in text for text in texts) == 1
    assert_apart(drawn_boxes(axes.figure))


def test_points_in_one_place_share_a_label_and_none_covers_another():
    axes = axes_of(xlim=(0, 1), ylim=(0, 1))
    points = [(0.5, 1.0, "Cascade, 300 ms", "k"), (0.5, 1.0, "Cascade, 500 ms", "b"), (0.52, 1.0, "Grok Voice", "g"),
              (0.0, 0.0, "Never speaks", "r"), (1.0, 1.0, "Always speaks", "c"),
              (0.05, 1.0, "The person", "m")]  # fmt: skip
    beside_points(axes, points, (5.3, 3.4), 8.0)
    boxes = drawn_boxes(axes.figure)
    assert any(name == "Cascade, 300 ms\nCascade, 500 ms" for name, _ in boxes)
    assert len(boxes) == 5
    assert_apart(boxes)


def test_a_row_of_points_has_names_that_do_not_touch_joined_by_lines():
    axes = axes_of(xlim=(0, 1), ylim=(0, 1.06))
    points = [(0.05 + 0.08 * n, 1.0, f"System {n}, semantic endpointer", "k") for n in range(11)]
    beside_points(axes, points, (5.3, 3.4), 8.0)
    boxes = drawn_boxes(axes.figure)
    assert len(boxes) == 11
    assert_apart(boxes)
    assert any(text.arrow_patch is not None for text in axes.texts)


def test_every_cumulative_curve_has_its_own_row_and_says_its_median():
    values = [np.array([0.1, 0.2, 0.9]), np.array([-1.0, -0.5]), np.array([])]
    figure = ridges(["A", "B", "C"], [Ridge("latency (s)", values, [4, 2, 3], 0.0, log=True, floor=0.05)])
    names = [name for name, _ in drawn_boxes(figure)]
    assert names == ["0.20", "\N{LESS-THAN OR EQUAL TO} 0"]
    spec = interactive(figure)
    top = max(spec["data"][0]["y"])
    assert top == pytest.approx(0.75)  # three of four rollouts had words


def test_a_rule_does_not_stretch_the_scale_of_what_is_evaluated(report_inputs):
    tables = report_inputs.tracks[1]
    card = tables.card("turn_end_latency")
    far = tables.statistics.with_columns(
        pl.when((pl.col("system") == "always-speak") & (pl.col("metric") == card.id))
        .then(pl.lit(-12.0))
        .otherwise(pl.col("estimate"))
        .alias("estimate")
    )
    scale = scale_of(far, card, report_inputs.systems)
    assert scale.low > -1
    assert scale.side(-12.0) == "left"
    assert scale.per_cent(-12.0) == 0.0
    assert scale.side(0.5) == ""
    only = [SystemInfo("always-speak", "Always speak", "policy", reference=True)]
    alone = far.filter(pl.col("system") == "always-speak")
    assert scale_of(alone, card, only).side(-12.0) == ""
