import polars as pl
import pytest

from duplex_bench.reporting.papers import EXHIBITS, exhibits, exhibits_table
from duplex_bench.reporting.site.titles import item_title

pytestmark = pytest.mark.unit


def test_every_numbered_exhibit_of_the_conversation_paper_is_listed():
    numbers = {one.number for one in EXHIBITS if one.paper == "P2"}
    assert {f"Table {number}" for number in range(1, 16)} <= numbers
    assert {f"Figure {number}" for number in (1, 3, 4, 5, 6, 7, 8)} <= numbers
    assert {"Figure 2 a", "Figure 2 b", "Figure 2 c"} <= numbers
    known = {one.number for one in EXHIBITS if one.paper == "P1"}
    assert {"Table 1", "Table 14", "Table 15", "Table 16", "Table 21"} <= known
    sections = {one.title: one.number for one in EXHIBITS if one.paper == "P1"}
    assert sections["Human validation of the judge"] == "A3.4"
    assert sections["Examples"] == "A6"
    assert sections["Do metrics rank systems alike"] == "4.5"


def test_an_exhibit_is_shown_where_it_has_rows_and_else_says_what_it_needs():
    titles = {"conversation-main-results": "Main results", "conversation-recall-by-history": "Recall"}
    shown = {one.exhibit.number: one for one in exhibits(titles, {"conversation-main-results"})}
    assert shown["Table 3"].found == (("conversation-main-results", "Main results"),)
    assert shown["Table 9"].found == ()
    rows = exhibits_table(shown.values()).frame
    assert rows.filter(pl.col("shown_as").is_null())["needs"].null_count() == 0
    assert rows.filter(pl.col("shown_as").is_not_null())["needs"].null_count() == 1
    assert "recall" in rows.filter(pl.col("number") == "Table 9")["needs"].item()


@pytest.mark.parametrize(
    ("condition", "cluster", "attributes", "title"),
    [
        ("explicit", "s20261129-00007-animal_shelter-total", {"domain": "animal_shelter", "family": "total"},
         "Animal shelter: total, explicit (scene 7)"),
        ("pause", "V00_S1_I2", {"boundary_s": 100.4053, "speaker": "left"},
         "Pause at 1:40.4 of V00_S1_I2, left speaker"),
        ("turn_end", "V00_S1_I2", {"boundary_s": 3.0}, "Turn end at 0:03.0 of V00_S1_I2"),
        ("fact_recall", "V00_S1_I2", {"history_target_s": 60.0}, "Recall of a fact after 60 s of V00_S1_I2"),
        ("pause", "c", {}, "0123"),
    ],
)  # fmt: skip
def test_items_are_titled_by_what_happens_in_them(condition, cluster, attributes, title):
    assert item_title("0123", condition, cluster, attributes) == title
