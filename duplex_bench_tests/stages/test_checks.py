"""Checks of stored tables: each passes on a sound table, and fails for each fault that it is there to find."""

import polars as pl
import pytest

from duplex_bench.records import tables
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item, Reference, Stimulus, Window
from duplex_bench.stages import checks
from duplex_bench.stages.items import items_frame

pytestmark = pytest.mark.unit

METRICS = ("response_presence", "fresh_onset_response", "answer_accuracy")


def an_item(name, content="heard"):
    labels = {"turn_type": "T", "addressee": "assistant", "speaker": "A", "utterance_id": "u1", "text": "How many?"}
    window = Window("u1-request", "request", 1.0, 6.0, {}, labels)
    stimulus = Stimulus("multiparty", AudioSlice("source", 0, 24_000, 24_000, content))
    return Item(name, "multiparty", name, "explicit", stimulus, Reference((window,), "five"), "CC0")


@pytest.fixture
def items():
    return items_frame([an_item("one"), an_item("two", "other")])


@pytest.fixture
def rollouts(items):
    nothing = dict.fromkeys(tables.ROLLOUTS)
    rows = [
        nothing | {"item_id": row["item_id"], "stimulus_digest": row["stimulus_digest"], "outcome": "completed",
                   "rollout_key": f"key {row['item_id']}", "repeat": 0}
        for row in items.iter_rows(named=True)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=dict(tables.ROLLOUTS))


@pytest.fixture
def measurements(items):
    nothing = dict.fromkeys(tables.MEASUREMENTS)
    rows = [
        nothing | {"item_id": item_id, "window_id": "u1-request", "metric": metric, "value": 1.0}
        for item_id in items["item_id"]
        for metric in METRICS
    ]
    return pl.DataFrame(rows, schema=dict(tables.MEASUREMENTS))


def changed(frame, row, **values):
    """``frame`` with some values of one row set."""
    there = pl.int_range(pl.len()) == row
    return frame.with_columns(
        pl.when(there).then(pl.lit(value, dtype=frame.schema[name])).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
    )


def test_rollouts_complete(rollouts, items):
    assert checks.rollouts_complete(rollouts, items).passed
    missing = checks.rollouts_complete(rollouts.head(1), items)
    assert (missing.passed, missing.numbers["missing"]) == (False, 1)
    for outcome in ("transport_error", "refused", "pacing_violation"):
        lost = checks.rollouts_complete(changed(rollouts, 0, outcome=outcome), items)
        assert (lost.passed, lost.numbers["lost"]) == (False, 1)
    assert checks.rollouts_complete(changed(rollouts, 0, outcome="no_audio"), items).passed


@pytest.mark.parametrize(
    ("spoil", "number"),
    [
        (lambda table: table.head(5), "missing"),
        (lambda table: pl.concat([table, table.tail(1)]), "twice"),
        (lambda table: changed(table, 2, metric="stop_latency"), "unexpected"),
        (lambda table: changed(table, 2, reason="a reason beside a value"), "value_and_reason"),
        (lambda table: changed(table, 2, value=None), "value_and_reason"),
        (lambda table: changed(table, 0, item_id="three"), "unexpected"),
    ],
)
def test_measurements_add_up(measurements, items, spoil, number):
    assert checks.measurements_add_up("multiparty", measurements, items).passed
    found = checks.measurements_add_up("multiparty", spoil(measurements), items)
    assert not found.passed
    assert found.numbers[number] == 1


def test_a_reason_instead_of_a_value_adds_up(measurements, items):
    table = changed(measurements, 2, value=None, reason="no response in the window")
    assert checks.measurements_add_up("multiparty", table, items).passed


@pytest.mark.parametrize(("without", "passed"), [(0, True), (1, True), (2, False)])
def test_share_of_questions_without_a_verdict(without, passed):
    verdicts = pl.DataFrame({"verdict": [None] * without + ["correct"] * (10 - without)})
    assert checks.verdict_share(verdicts).passed is passed


def test_no_question_is_no_fault():
    assert checks.verdict_share(pl.DataFrame(schema=dict(tables.JUDGEMENTS))).passed


ESTIMATE = {"estimate": 0.5, "low": 0.2, "high": 0.8, "n_scored": 3, "n_expected": 4, "reason": None}


@pytest.mark.parametrize(
    ("spoilt", "number"),
    [
        ({"estimate": 0.1}, "outside"),
        ({"estimate": 0.9}, "outside"),
        ({"n_scored": 5}, "too_many"),
        ({"estimate": None, "low": None, "high": None}, "without_reason"),
    ],
)
def test_estimates(spoilt, number):
    schema = {**dict.fromkeys(("estimate", "low", "high"), pl.Float64), "n_scored": pl.Int64, "n_expected": pl.Int64,
              "reason": pl.String}  # fmt: skip
    assert checks.estimates_sane(pl.DataFrame([ESTIMATE], schema=schema)).passed
    told = pl.DataFrame([ESTIMATE | {"estimate": None, "low": None, "high": None, "reason": "none scored"}], schema)
    assert checks.estimates_sane(told).passed
    found = checks.estimates_sane(pl.DataFrame([ESTIMATE | spoilt], schema=schema))
    assert (found.passed, found.numbers[number]) == (False, 1)


def test_systems_that_were_run_on_other_stimuli_are_named(items, rollouts):
    behind = {
        "current": rollouts,
        "on old stimuli": changed(rollouts, 0, stimulus_digest="before the review"),
        "on fewer": rollouts.head(1),
        "not for this track": rollouts.with_columns(pl.lit("not_applicable").alias("outcome")).head(1),
    }
    found = checks.systems_up_to_date(items, behind)
    assert (found.passed, found.numbers["which"]) == (False, "on fewer, on old stimuli")
    assert checks.systems_up_to_date(items, {"current": rollouts}).passed


LABELS = [("s", "left", "turn", 0.0, 5.0), ("s", "left", "pause", 2.0, 3.0), ("s", "left", "turn", 5.0, 9.0),
          ("s", "right", "turn", 4.0, 8.0)]  # fmt: skip


@pytest.mark.parametrize(
    ("extra", "number"),
    [
        (("s", "left", "turn", 8.5, 10.0), "overlapping_turns"),
        (("s", "right", "pause", 8.2, 8.9), "pauses_outside_turns"),
        (("s", "left", "pause", 4.5, 5.5), "pauses_outside_turns"),
    ],
)
def test_labels(extra, number):
    names = ["session_id", "speaker", "kind", "start_s", "end_s"]
    assert checks.label_invariants(pl.DataFrame(LABELS, schema=names, orient="row")).passed
    found = checks.label_invariants(pl.DataFrame([*LABELS, extra], schema=names, orient="row"))
    assert (found.passed, found.numbers[number]) == (False, 1)


def test_the_funnel():
    funnel = pl.DataFrame({"n_pause": [5, 3, 2], "rejected_pause": [0, 2, 1], "n_turn_end": [1, 1, 1],
                           "rejected_turn_end": [0, 0, 0]})  # fmt: skip
    points = pl.DataFrame({"point_id": ["a", "b", "c"], "kind": ["pause", "pause", "turn_end"]})
    assert checks.funnel_adds_up(funnel, points).passed
    assert checks.funnel_adds_up(funnel, points.head(2)).numbers["rows_that_differ"] == 1
    assert checks.funnel_adds_up(changed(funnel, 1, n_pause=4), points).numbers["rows_that_differ"] == 2
    twice = points.with_columns(pl.lit("a").alias("point_id"))
    assert checks.funnel_adds_up(funnel, twice).numbers["ids_twice"] == 2
