"""Inventory, agreement at points and boundary shifts of the conversation track, on quick engines."""

import json

import polars as pl
import pytest

from duplex_bench.records import tables as schemas
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.stages import conversation, conversation_inventory, evaluation, scoring, summary
from duplex_bench.stages.conversation_sensitivity import sensitivity_tables
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit


@pytest.fixture
def made(quick_engines, small_workspace, tmp_path):
    """The workspace and the tables of its conversation track."""
    workspace = small_workspace(tmp_path)
    sessions = conversation.lively_sessions(workspace).frame
    filled = conversation.gap_fill(workspace, sessions).frame
    engine = conversation.engine_labels(workspace, sessions, filled).frame
    found = conversation.candidates(workspace, sessions, filled, engine).frame
    points = conversation.points(workspace, found).frame
    items = conversation.items(workspace, sessions, filled, engine, points).frame
    names = {"sessions": sessions, "filled": filled, "engine": engine, "candidates": found, "points": points}
    return workspace, {**names, "items": items}, quick_engines


def test_the_inventory_counts_the_labels_and_the_boundaries(made):
    workspace, frames, _ = made
    told = conversation_inventory.inventory(
        workspace, frames["sessions"], frames["filled"], frames["engine"], frames["engine"], frames["candidates"],
        frames["points"],
    )  # fmt: skip
    tables = {table.id: table.frame for table in summary.stored_tables(workspace, told.frame)}
    counts = dict(tables["conversation-label-inventory"].select("kind", "count").iter_rows())
    assert {k: v for k, v in counts.items() if v and k != "gap-filled word"} == dict(
        frames["engine"]["kind"].value_counts().iter_rows()
    )
    funnel = tables["conversation-curation"]
    assert funnel["pause_points"][0] == frames["candidates"]["n_pause"].sum()
    assert funnel["pause_points"][-1] == frames["points"].filter(pl.col("kind") == "pause").height
    assert funnel["pause_points"].to_list() == sorted(funnel["pause_points"].to_list(), reverse=True)
    assert "conversation-boundary-agreement" not in tables


def test_agreement_at_points_is_the_shift_that_a_person_made(made):
    _, frames, _ = made
    pauses = (pl.col("kind") == "pause").cast(pl.Float64)
    reviewed = frames["engine"].with_columns(
        (pl.col("start_s") + 0.15 * pauses).alias("start_s"), pl.lit("review").alias("source")
    )
    table = conversation_inventory.boundary_agreement(frames["points"], frames["engine"], reviewed)
    rows = {row["boundary"]: row for row in table.frame.iter_rows(named=True)}
    n_pauses = frames["points"].filter(pl.col("kind") == "pause").height
    assert rows["pause boundary"]["n"] == n_pauses
    assert (rows["pause boundary"]["within_100_ms"], rows["pause boundary"]["within_250_ms"]) == (0.0, 1.0)
    assert rows["pause boundary"]["median_shift_s"] == pytest.approx(0.15)
    assert rows["turn_end boundary"]["within_100_ms"] == 1.0
    assert rows["pause end"]["median_shift_s"] == 0.0


def test_corpus_figures_leave_out_what_the_corpus_does_not_have(made):
    workspace, frames, _ = made
    drawn = conversation_inventory.corpus_figures(workspace, frames["sessions"], frames["engine"])
    # One session: nothing is selected from it.
    assert drawn.frame["id"].to_list() == ["conversation-label-distributions"]


def test_shifted_boundaries_score_the_stored_rollouts_again(made):
    workspace, frames, adapter = made
    items = frames["items"].filter(pl.col("condition") == "pause")
    first = items.row(0, named=True)
    window = json.loads(first["reference"])["windows"][0]
    # One word from 0.1 s after the pause on: inside it only if its end moves out.
    card = SystemCard(name="late", title="late", family="policy", adapter=adapter, licence="test",
                      settings={"at_s": [window["end_s"] + 0.1]})  # fmt: skip
    only = items.filter(pl.col("item_id") == first["item_id"])
    rolled = run_rollouts(workspace, "conversation", only, card).frame
    heard = evaluation.activity(workspace, "conversation", rolled, "late").frame
    said = evaluation.words(workspace, "conversation", rolled, "late").frame
    empty = {name: pl.DataFrame(schema=dict(getattr(schemas, name.upper())))
             for name in ("judgements", "measurements", "statistics", "comparisons")}  # fmt: skip
    track = TrackTables(track="conversation", items=only, rollouts=rolled, activity=heard, words=said,
                        cards=scoring.metric_cards("conversation"), **empty)  # fmt: skip
    tables = {table.id: table.frame for table in sensitivity_tables(track)}
    shifts = dict(tables["conversation-boundary-shifts"].select("boundary", "takeovers").iter_rows())
    assert shifts == {"as labelled": 0, "end -250 ms": 0, "end +250 ms": 1, "start +250 ms": 0}
    assert tables["conversation-detectors"]["after"].to_list() == [1.0, 1.0]
