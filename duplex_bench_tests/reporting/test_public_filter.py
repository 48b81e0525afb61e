import json

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.records.tables import ITEMS, JUDGEMENTS, MEASUREMENTS, ROLLOUTS, WORDS
from duplex_bench.reporting.inputs import Table
from duplex_bench.reporting.public_filter import (
    DETAILS,
    public_attributes,
    public_details,
    public_events,
    public_labels,
    public_reason,
    public_stored,
    public_table,
)

pytestmark = pytest.mark.unit

CORPUS = "my sister moved to Lisbon last spring"


@given(
    st.dictionaries(
        st.text(min_size=1, max_size=12), st.one_of(st.text(), st.integers(), st.booleans(), st.none()), max_size=8
    )
)
def test_of_details_only_numbers_and_listed_keys_pass(details):
    kept = json.loads(public_details(json.dumps(details)))
    for name, value in details.items():
        if isinstance(value, str) and name not in DETAILS:
            assert name not in kept
        else:
            assert kept.get(name) == value or ("bound" in details and isinstance(value, str))


def test_questions_gold_and_the_words_of_people_are_left_out_of_details():
    details = {"request": CORPUS, "gold": CORPUS, "heard": CORPUS, "answer": "in Lisbon", "n_words": 2, "ok": True}
    assert json.loads(public_details(json.dumps(details))) == {"answer": "in Lisbon", "n_words": 2, "ok": True}
    bound = {"bound": "floor", "response_text": CORPUS, "n_words": 7}
    assert json.loads(public_details(json.dumps(bound))) == {"bound": "floor", "n_words": 7}
    assert json.loads(public_details(json.dumps({"text": CORPUS}), of_system=False)) == {}
    assert public_details(None) is None


def test_a_recall_question_is_no_attribute_and_what_was_said_no_label():
    assert public_attributes({"question": CORPUS, "asker": "left", "history_s": 30.0}) == {
        "asker": "left",
        "history_s": 30.0,
    }
    assert public_labels({"text": CORPUS, "turn_type": "N2"}) == {"turn_type": "N2"}


def test_what_a_system_understood_is_no_event_text():
    events = [{"t": 1.0, "kind": "user_text", "text": CORPUS}, {"t": 2.0, "kind": "text", "text": "oh"}]
    assert [(event["t"], event["text"]) for event in public_events(events)] == [(1.0, ""), (2.0, "oh")]


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (None, None),
        ("no words", "no words"),
        (f"no verdict: the answer said {CORPUS}", "no verdict"),
        (f"3 of 9: no verdict: {CORPUS}", "3 of 9: no verdict"),
    ],
)
def test_a_judges_prose_is_no_reason(reason, kept):
    assert public_reason(reason) == kept


def _row(schema, **values):
    row = dict.fromkeys(schema) | values
    return pl.DataFrame([row], schema=dict(schema))


def test_stored_tables_keep_digests_verdicts_and_the_words_of_systems():
    items = public_stored("items", _row(ITEMS, item_id="p1", stimulus=CORPUS, reference=CORPUS, stimulus_digest="ab"))
    assert {"stimulus", "reference"}.isdisjoint(items.columns)
    assert items["stimulus_digest"].item() == "ab"
    judged = public_stored("judgements", _row(JUDGEMENTS, verdict="correct", reason=CORPUS, raw=CORPUS))
    assert judged["verdict"].item() == "correct"
    scores = public_stored("measurements", _row(MEASUREMENTS, details=json.dumps({"gold": CORPUS, "n_words": 3})))
    assert json.loads(scores["details"].item()) == {"n_words": 3}
    words = public_stored("words", _row(WORDS, text="hello there"))
    assert words["text"].item() == "hello there"
    rollouts = _row(ROLLOUTS, reason="closed")
    assert public_stored("rollouts", rollouts).equals(rollouts)
    for frame in (items, judged, scores):
        assert CORPUS not in frame.write_json()


def test_an_unlisted_text_column_is_left_out_and_named():
    frame = pl.DataFrame({"system": ["a"], "something_new": [CORPUS], "n": [3], "gold": [CORPUS], "reason": ["why"]})
    table = public_table(Table("t", "T", "n = 1.", frame))
    assert table.frame.columns == ["system", "n"]
    assert "something_new" in table.caption
    assert CORPUS not in table.frame.write_json() + table.caption
    whole = Table("t", "T", "n = 1.", pl.DataFrame({"system": ["a"], "reason": ["no words"]}))
    assert public_table(whole).frame.equals(whole.frame)
    assert public_table(whole).caption == whole.caption


def test_a_reader_of_the_transcript_answers_in_its_words_which_are_left_out():
    frame = pl.DataFrame({"item_id": ["i"], "answer": [CORPUS]})
    assert public_table(Table("transcript_reference_decisions", "T", "", frame)).frame.columns == ["item_id"]
    assert public_table(Table("multiparty-examples", "T", "", frame)).frame.columns == ["item_id", "answer"]
