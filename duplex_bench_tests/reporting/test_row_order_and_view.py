import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.reporting.comparisons import SIGN_FLIP
from duplex_bench.reporting.formats import interval
from duplex_bench.reporting.inputs import Table
from duplex_bench.reporting.site.pages import in_words, under
from duplex_bench.reporting.site.view import columns, label, pair_view, show, shown_frame
from duplex_bench.reporting.tables.row_order import in_row_order
from duplex_bench.stages.report import system_infos
from duplex_bench.stages.row_order import ROWS, row_key
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

ORDER = ("moshi", "flm", "voila")


def test_systems_first_then_their_conditions():
    frame = pl.DataFrame({"system": ["flm", "flm", "moshi", "moshi", "voila"], "condition": ["e", "i", "e", "i", "e"]})
    assert in_row_order(frame, ORDER).rows() == [
        ("moshi", "e"), ("moshi", "i"), ("flm", "e"), ("flm", "i"), ("voila", "e"),
    ]  # fmt: skip


def test_metrics_stay_where_they_are_and_systems_are_ordered_within_each():
    frame = pl.DataFrame(
        {"metric": ["b", "b", "b", "a", "a"], "condition": ["e", "i", "i", "e", "e"],
         "system": ["flm", "flm", "moshi", "flm", "moshi"]}
    )  # fmt: skip
    assert in_row_order(frame, ORDER).rows() == [
        ("b", "i", "moshi"), ("b", "e", "flm"), ("b", "i", "flm"), ("a", "e", "moshi"), ("a", "e", "flm"),
    ]  # fmt: skip


def test_a_table_ordered_by_condition_first_stays_so():
    frame = pl.DataFrame({"condition": ["e", "e", "i", "i"], "system": ["flm", "moshi", "flm", "moshi"]})
    assert in_row_order(frame, ORDER)["system"].to_list() == ["moshi", "flm", "moshi", "flm"]
    assert in_row_order(frame, ORDER)["condition"].to_list() == ["e", "e", "i", "i"]


@given(st.lists(st.tuples(st.sampled_from(["moshi", "flm", "other"]), st.sampled_from("ei"), st.integers(0, 9))))
def test_no_row_is_lost_or_changed(rows):
    frame = pl.DataFrame(rows, schema={"system": pl.String, "condition": pl.String, "n": pl.Int64}, orient="row")
    assert sorted(in_row_order(frame, ORDER).rows()) == sorted(frame.rows())


def test_pairs_follow_the_system_that_stands_higher_within_each_metric():
    frame = pl.DataFrame(
        {"metric": ["a", "a", "a", "b"], "system_a": ["flm", "flm", "moshi", "flm"],
         "system_b": ["voila", "moshi", "voila", "moshi"]}
    )  # fmt: skip
    assert in_row_order(frame, ORDER).select("metric", "system_a", "system_b").rows() == [
        ("a", "flm", "moshi"), ("a", "moshi", "voila"), ("a", "flm", "voila"), ("b", "flm", "moshi"),
    ]  # fmt: skip


def test_the_papers_order_of_systems_holds_among_the_shipped_cards():
    cards = load_cards(None, plug_ins=False).cards
    assert set(ROWS) <= set(cards)
    shown = [info.name for info in system_infos([found.card for found in cards.values()])]
    first = ["minicpm-o", "moshi", "flm-audio", "voila", "freeze-omni"]
    second = ["personaplex", "moshi", "gpt-realtime-300ms", "gpt-realtime-500ms", "gpt-realtime-semantic",
              "gemini-live", "grok-voice"]  # fmt: skip
    for order in (first, second):
        assert [name for name in shown if name in order] == order
    assert row_key("a-card-of-mine") < row_key("b-card-of-mine")


def test_ids_and_columns_are_shown_in_words_and_counts_as_counts():
    assert show("fresh_onset_response", "quantity") == "fresh onset response"
    assert show("cascade_500ms", "system") == "cascade_500ms"
    assert show(2000.0, "paper") == "2000"
    assert show(110.93, "paper") == "110.9"
    assert show(2000.0, "rate") == "2000.0"
    assert (label("p_mcnemar"), label("stop_latency_s"), label("q50")) == ("p (McNemar)", "stop latency (s)", "median")
    frame = pl.DataFrame({"metric": ["a"], "other_metric": ["b_c"], "title": ["A"], "empty": [None]})
    seen = shown_frame(Table("x", "X", "", frame), {"a": "Alpha", "b_c": "Beta"})
    assert seen.rows() == [("Alpha", "Beta", None)]
    assert [column.name for column in columns(seen)] == ["metric", "other_metric"]


def test_a_pair_is_one_row_with_both_tests():
    row = {"metric": "m", "title": "M", "condition": "e", "system_a": "a", "system_b": "b", "difference": 0.5,
           "low": 0.1, "high": 0.9, "p": 0.03, "n_pairs": 9, "n_clusters": 6, "minimum_detectable": 0.4,
           "correction": "c"}  # fmt: skip
    frame = pl.DataFrame(
        [{**row, "test": "mcnemar", "p_corrected": 0.001}, {**row, "test": SIGN_FLIP, "p_corrected": 0.3}]
    )
    (seen,) = pair_view(frame).to_dicts()
    assert (seen["p_corrected"], seen["p_mcnemar_corrected"]) == (0.3, 0.001)
    assert seen["interval"] == "[+0.10, +0.90]"
    alone = pair_view(frame.filter(pl.col("test") == SIGN_FLIP)).to_dicts()
    assert alone[0]["p_mcnemar_corrected"] is None


def test_zero_has_no_sign():
    assert interval(-0.00001, 0.0, "s", signed=True) == "[0.00, 0.00]"


def test_titles_and_card_texts_for_people():
    assert under("Multiparty: answers, given a response", "Multiparty") == "Answers, given a response"
    assert under("Prices", "") == "Prices"
    assert in_words("see silence_without_carry_over.", {"silence_without_carry_over": "Silence, no carry-over"}) == (
        "see Silence, no carry-over."
    )


def test_an_item_s_runs_stand_in_the_order_of_the_rows(report_inputs):
    from duplex_bench.reporting.site.chunks import TrackIndex

    track = report_inputs.tracks[0]
    order = [system.name for system in report_inputs.systems]
    item = track.items["item_id"][0]
    assert [row["system"] for row in TrackIndex(track, order).of_item(item).rollouts] == order
