"""Recall tables and figure of the second paper (tables 3, 9, 10, 12, 14, figure 4) from planted answers."""

import importlib.util
import json
from pathlib import Path

import polars as pl
import pytest

from duplex_bench.reporting.figures import draw_figures
from duplex_bench.reporting.papers import exhibits
from duplex_bench.reporting.tables.conversation import conversation_tables

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def planted():
    spec = importlib.util.spec_from_file_location("planted_recall_module", Path(__file__).parent / "planted_recall.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def inputs(planted, report_inputs):
    return planted.with_recall(report_inputs)


@pytest.fixture(scope="module")
def tables(inputs):
    return {table.id: table for table in conversation_tables(inputs.tracks[1], inputs.systems)}


def one(frame, **values):
    return frame.row(by_predicate=pl.all_horizontal(*(pl.col(k) == v for k, v in values.items())), named=True)


def test_every_length_has_the_share_that_was_planted(tables, planted):
    frame = tables["conversation-recall-by-history"].frame
    for length in planted.LENGTHS_S:
        row = one(frame, system="cascade-300ms", kind="conversation_recall", history_s=length)
        truth = [planted.recalls("cascade-300ms", "conversation_recall", length, n) for n in range(planted.POINTS)]
        assert (row["n_points"], row["judged"]) == (planted.POINTS, pytest.approx(sum(truth) / planted.POINTS))
        assert row["strict"] <= row["judged"]
        assert one(frame, system="cascade-500ms", kind="fact_recall", history_s=length)["judged"] == 1.0


def test_the_main_results_hold_recall_at_the_longest_history_with_its_interval(tables, planted):
    main, told = tables["conversation-main-results"], tables["conversation-intervals"].frame
    by_history = tables["conversation-recall-by-history"].frame
    assert "after 120 s of history" in main.caption
    assert main.frame.columns[-4:] == ["n_conversation_recall", "conversation_recall", "n_fact_recall", "fact_recall"]
    for kind in planted.KINDS:
        longest = one(by_history, system="cascade-300ms", kind=kind, history_s=120.0)
        assert one(main.frame, system="cascade-300ms")[kind] == longest["judged"]
        shown = one(told, system="cascade-300ms", condition=kind)
        assert (shown["estimate"], shown["low"], shown["high"]) == (longest["judged"], longest["low"], longest["high"])


def test_scorers_side_by_side_and_one_point_with_every_reply(tables, planted):
    row = one(tables["conversation-recall-by-scorer"].frame, system="cascade-500ms", kind="fact_recall")
    assert (row["judged"], row["judge_only"], row["strict_only"]) == (1.0, 8, 0)
    example = tables["conversation-recall-example"].frame
    assert example["item_id"].n_unique() == 1
    assert set(example["answer"]) <= {"It was in March.", "I could not say."}
    assert example.height == 5


def test_the_figure_names_both_kinds_at_their_lines(inputs, tables):
    drawn = {figure.id: figure for figure in draw_figures(inputs.tracks[1], inputs.systems)}
    figure = drawn["conversation-recall"]
    spec = json.loads(figure.plot)
    names = [one["text"] for one in spec["layout"]["annotations"]]
    assert names.count("general fact") == names.count("conversation") == 5
    line = next(one for one in spec["data"] if one["name"] == "conversation")
    assert line["x"] == [30.0, 60.0, 90.0, 120.0]
    shown = exhibits({**{name: table.title for name, table in tables.items()}, figure.id: figure.title},
                     {*tables, figure.id})  # fmt: skip
    filled = {one.exhibit.number for one in shown if one.exhibit.paper == "P2" and one.found}
    assert {"Table 9", "Table 10", "Table 12", "Figure 4"} <= filled
