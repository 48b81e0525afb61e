import dataclasses
import json

import polars as pl
import pytest

from duplex_bench.records.outcome import Outcome
from duplex_bench.reporting.inputs import ReportInputError, Table
from duplex_bench.reporting.tables import (
    condition_comparison,
    failures,
    leaderboard,
    load_run,
    missing_scores,
    outcomes,
    pairwise,
    write_tables,
)

pytestmark = pytest.mark.unit


@pytest.fixture
def conversation(report_inputs):
    return report_inputs.tracks[1]


def test_outcomes_add_up_to_what_was_planned(conversation):
    table = outcomes(conversation, {"cascade-300ms": conversation.items.height + 3}).frame
    for row in table.iter_rows(named=True):
        assert sum(row[str(outcome)] for outcome in Outcome) + row["not_run"] == row["planned"]
    assert table.filter(pl.col("system") == "cascade-300ms")["not_run"].item() == 3


def test_more_rollouts_than_planned_raise(conversation):
    with pytest.raises(ReportInputError, match="two runs"):
        outcomes(conversation, {"cascade-300ms": 1})


def test_failures_and_missing_scores_are_counted_never_dropped(conversation):
    failed = conversation.rollouts.filter(pl.col("outcome") != "completed")
    assert failed.height > 0
    assert failures(conversation).frame.height == failed.height
    missing = missing_scores(conversation).frame
    assert missing["n"].sum() == conversation.measurements["value"].null_count() > 0
    assert missing["reason"].null_count() == 0


def test_leaderboard_holds_headline_metrics_with_their_n(report_inputs):
    for tables in report_inputs.tracks:
        frame = leaderboard(tables).frame
        assert set(frame["metric"]) == {card.id for card in tables.headline_cards}
        assert (frame["n_scored"] <= frame["n_expected"]).all()
        without = frame.filter(pl.col("estimate").is_null())
        assert without["reason"].null_count() == 0


def test_conditions_stand_side_by_side_with_their_difference(report_inputs):
    frame = condition_comparison(report_inputs.tracks[0]).frame
    known = frame.drop_nulls(["explicit_estimate", "implicit_estimate"])
    assert known.height > 0
    difference = known["explicit_estimate"] - known["implicit_estimate"]
    assert (difference - known["difference"]).abs().max() < 1e-12


def test_pairwise_keeps_every_comparison(report_inputs):
    tables = report_inputs.tracks[0]
    assert pairwise(tables).frame.height == tables.comparisons.height > 0


def test_tables_come_back_from_a_folder(tmp_path):
    frame = pl.DataFrame({"a": [1, None], "spans": [[[0.0, 1.5]], None]})
    write_tables([Table("t", "T", "n = 2.", frame)], tmp_path / "tables")
    assert load_run(tmp_path)["t"].equals(frame)
    csv = pl.read_csv(tmp_path / "tables" / "t.csv")
    assert json.loads(csv["spans"][0]) == [[0.0, 1.5]]


def test_a_folder_without_tables_raises(tmp_path):
    with pytest.raises(ReportInputError, match="holds no tables"):
        load_run(tmp_path)


def test_inputs_name_table_and_column_that_do_not_fit(conversation):
    with pytest.raises(ReportInputError, match="conversation/rollouts lacks columns outcome"):
        dataclasses.replace(conversation, rollouts=conversation.rollouts.drop("outcome"))
    with pytest.raises(ReportInputError, match="without a card: takeover_latency"):
        dataclasses.replace(conversation, cards=tuple(c for c in conversation.cards if c.id != "takeover_latency"))
