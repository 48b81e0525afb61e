"""No word of a closed item passes, whatever it is called and wherever it stands; numbers and names do."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.records.items import HistoryTurn, HumanReply, Reference, Window
from duplex_bench.reporting.public_filter import ATTRIBUTES, DETAILS, LABELS, public_details
from duplex_bench.reporting.withholding import (
    placeless,
    public_reason,
    public_reference,
    public_stimulus,
    without_places,
)
from duplex_bench.storage.serial import from_json, to_json

pytestmark = pytest.mark.unit

SECRET = "the person's own words"
KEYS = st.text(st.characters(codec="ascii", categories=["L"]), min_size=1, max_size=12).filter(
    lambda name: name not in ATTRIBUTES | DETAILS | LABELS
)
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-5, 5), st.floats(allow_nan=False, allow_infinity=False), st.just(SECRET)
)


@given(
    st.dictionaries(KEYS, st.one_of(VALUES, st.lists(VALUES, max_size=2), st.dictionaries(KEYS, VALUES, max_size=2)))
)
def test_details_keep_numbers_and_no_text_under_any_name(details):
    kept = json.loads(public_details(json.dumps(details), of_system=True))
    assert SECRET not in json.dumps(kept)
    assert kept == {
        name: value for name, value in details.items() if value is None or isinstance(value, bool | int | float)
    }
    assert json.loads(public_details(json.dumps(kept), of_system=True)) == kept


def test_what_a_system_said_stays_and_what_a_person_said_goes():
    details = json.dumps(
        {"answer": "fifteen", "gold": "fifteen", "text": "uh", "response_text": "well", "outcome": "x"}
    )
    said = {"answer": "fifteen", "text": "uh", "response_text": "well", "outcome": "x"}
    assert json.loads(public_details(details, of_system=True)) == said
    assert json.loads(public_details(details, of_system=False)) == {"outcome": "x"}


@given(st.dictionaries(KEYS, st.one_of(st.just(SECRET), st.floats(0, 9), st.integers(0, 9)), max_size=4))
def test_a_reference_keeps_its_windows_and_loses_its_words(more):
    labels = {
        "turn_type": "N1",
        "speaker": "A",
        "text": SECRET,
        **{k: v for k, v in more.items() if isinstance(v, str)},
    }
    reference = Reference(
        windows=(Window("w", "silence", 1.0, 2.0, {"turn_end_s": 1.5}, labels),),
        gold_answer=SECRET,
        human_reply=HumanReply(SECRET, 1.25, 4),
        transcript=(HistoryTurn("user", SECRET, 0.0, 1.0),),
        attributes={"domain": "harbor", "n_turns": 3, "question": SECRET, **more},
    )
    kept = public_reference(to_json(reference))
    assert SECRET not in kept
    read = from_json(Reference, kept)
    assert read.windows == (Window("w", "silence", 1.0, 2.0, {"turn_end_s": 1.5}, {"turn_type": "N1", "speaker": "A"}),)
    assert (read.human_reply.duration_s, read.human_reply.n_words) == (1.25, 4)
    assert read.attributes["domain"] == "harbor"
    assert public_reference(kept) == kept


def test_a_stimulus_loses_history_and_prompt_and_keeps_its_digests():
    told = {"identity_prompt": SECRET, "history": [{"text": SECRET}], "live": {"content": "ab"}, "protocol": "pause"}
    kept = json.loads(public_stimulus(json.dumps(told)))
    assert kept == {"identity_prompt": None, "history": [], "live": {"content": "ab"}, "protocol": "pause"}
    timed = json.loads(public_stimulus(json.dumps({**told, "history_words": [{"text": SECRET, "start_s": 0.1}]})))
    assert timed == {**kept, "history_words": []}


@pytest.mark.parametrize(
    ("reason", "kept"),
    [
        (f"no verdict: it said {SECRET}", "no verdict"),
        (f"transport_error: server told {SECRET}", "transport_error"),
        ("no response in the window", "no response in the window"),
        ("not eligible: no onset in window", "not eligible: no onset in window"),
        (None, None),
    ],
)
def test_a_reason_keeps_no_quotation(reason, kept):
    assert public_reason(reason) == kept


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("cannot open /home/someone/models/a.onnx now", "cannot open <place> now"),
        (r"in C:\Users\me\x.toml", "in <place>"),
        ("ws://10.0.0.7:8998/chat refused", "<place> refused"),
        ("~/cards/own.toml", "<place>"),
        ("and/or 3/4 of 24 kHz", "and/or 3/4 of 24 kHz"),
        ("rollout/1", "rollout/1"),
    ],
)
def test_places_of_the_machine_go_and_fractions_stay(text, kept):
    assert without_places(text) == kept
    assert placeless({"a": [text, {"b": text}], "n": 1}) == {"a": [kept, {"b": kept}], "n": 1}
