"""The text ceilings of recall, put to a model server on loopback: from label words, and from recognised ones."""

from dataclasses import replace

import polars as pl
import pytest

from duplex_bench.records import tables as schemas
from duplex_bench.records.audio import TimedWord
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.speech import engines
from duplex_bench.stages import conversation, recall_ceiling, report, scoring, summary
from duplex_bench.stages.evaluation import measurement_row
from duplex_bench.stages.recall_ceiling import CEILINGS, HEARD_CEILING, TEXT_CEILING
from duplex_bench.stages.text_costs import text_costs
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit

EVERY_TABLE = (
    "items", "rollouts", "activity", "words", "judgements", "measurements", "statistics", "comparisons",
)  # fmt: skip
PRICES = {"input_usd_per_million": 2.0, "output_usd_per_million": 8.0}


@pytest.fixture
def with_model(probes, text_api):
    """The probes' workspace with a text model on loopback that answers ``reply(prompt)``."""

    def start(reply, **recall):
        api = text_api("openai", lambda prompt, _body: {"answer": reply(prompt)})
        track = probes.workspace.profile.conversation
        asked = replace(track.recall, model=api.settings(**PRICES), **recall)
        profile = replace(probes.workspace.profile, conversation=replace(track, recall=asked))
        return replace(probes.workspace, profile=profile), api

    return start


def transcript_in(prompt):
    return prompt.split('in which you are "assistant":')[1].rsplit("user: ", 1)[0].strip()


def knows_all(items):
    right = {item.reference.attributes["question"]: item.reference.gold_answer for item in items}
    return lambda prompt: next(answer for question, answer in right.items() if question in prompt)


def knows_what_it_reads(items):
    """Gives the gold answer only where the transcript holds all its words."""
    right = {item.reference.attributes["question"]: item.reference.gold_answer for item in items}

    def reply(prompt):
        gold = next(answer for question, answer in right.items() if question in prompt)
        told = transcript_in(prompt).lower()
        return gold if all(word in told for word in gold.lower().split()) else "I could not say"

    return reply


def values(scores, metric):
    return {score.item_id: score.score.value for score in scores if score.metric == metric}


def test_a_fact_that_the_recogniser_lost_is_known_from_the_labels_alone(probes, with_model):
    workspace, api = with_model(knows_what_it_reads(probes.items))
    scores, counts = recall_ceiling.text_ceilings(workspace, probes.items)
    assert tuple(scores) == CEILINGS
    facts = {item.item_id for item in probes.items if item.condition == "conversation_recall"}
    assert facts
    by_labels, by_ear = (values(scores[name], "recall_strict") for name in CEILINGS)
    # The recogniser of these tests writes how long each stretch of speech is, and none of its words.
    assert {by_labels[item] for item in facts} == {1.0}
    assert {by_ear[item] for item in facts} == {0.0}
    read = {transcript_in(seen.body["messages"][-1]["content"]) for seen in api.seen}
    heard = {text for text in read if "seconds" in text}
    labels = {"\n".join(f"{turn.role}: {turn.text}" for turn in item.stimulus.history) for item in probes.items}
    assert read - heard == labels
    assert {len(text.splitlines()) for text in heard} == {len(text.splitlines()) for text in labels}
    assert counts["history_word_error_rate"] > 0.9
    assert counts["text_ceiling_computed"] == counts["text_ceiling_heard_computed"] == len(probes.items)


def test_what_was_answered_and_heard_is_not_asked_or_heard_again(probes, with_model, monkeypatch):
    workspace, api = with_model(knows_all(probes.items))
    first, counts = recall_ceiling.text_ceilings(workspace, probes.items)
    asked = len(api.seen)
    # A turn stands in the history of every length, and is heard once.
    turns = sum(len(item.stimulus.history) for item in probes.items)
    assert 0 < counts["history_turns_computed"] < turns
    again, counts = recall_ceiling.text_ceilings(workspace, probes.items)
    assert again == first
    assert len(api.seen) == asked
    assert (counts["history_turns_computed"], counts["text_ceiling_heard_computed"]) == (0, 0)


def test_histories_that_are_heard_as_they_are_labelled_are_paid_for_once(probes, with_model, monkeypatch):
    workspace, api = with_model(knows_all(probes.items))
    monkeypatch.setattr(recall_ceiling, "heard_histories", lambda _workspace, items: _as_labelled(items))
    scores, _ = recall_ceiling.text_ceilings(workspace, probes.items)
    assert len(api.seen) == len(probes.items)
    assert values(scores[TEXT_CEILING], "recall_strict") == values(scores[HEARD_CEILING], "recall_strict")


def _as_labelled(items):
    from duplex_bench.stages.heard_histories import HeardHistories

    return HeardHistories({item.item_id: item for item in items}, {})


def test_a_history_that_cannot_be_heard_is_a_reason_and_not_a_zero(probes, with_model, monkeypatch):
    workspace, _ = with_model(knows_all(probes.items))
    longest = max(turn.end_s - turn.start_s for item in probes.items for turn in item.stimulus.history)

    class Fails:
        engine_id = "fails on the longest turn/1"

        def words(self, samples, rate):
            if len(samples) / rate > longest - 0.01:
                raise ValueError("cannot hear this")
            return (TimedWord("something", 0.0, 0.5),)

    monkeypatch.setattr(engines, "recogniser", lambda *_: Fails())
    scores, counts = recall_ceiling.text_ceilings(workspace, probes.items)
    assert counts["history_turns_failed"] >= 1
    lost = {
        item.item_id
        for item in probes.items
        if any(turn.end_s - turn.start_s > longest - 0.01 for turn in item.stimulus.history)
    }
    assert lost
    for score in scores[HEARD_CEILING]:
        if score.item_id in lost:
            assert (score.score.value, score.score.reason) == (None, "a turn of the history could not be recognised")
        else:
            assert score.score.value == 1.0
    assert {score.score.value for score in scores[TEXT_CEILING]} == {1.0}


def test_without_a_model_or_with_the_switch_off_nothing_is_heard(probes, with_model, monkeypatch):
    assert recall_ceiling.text_ceilings(probes.workspace, probes.items) == ({}, {})
    workspace, api = with_model(knows_all(probes.items), heard_ceiling=False)
    scores, counts = recall_ceiling.text_ceilings(workspace, probes.items)
    assert set(scores) == {TEXT_CEILING}
    assert not [name for name in counts if name.startswith("history_turns")]
    assert len(api.seen) == len(probes.items)


def test_both_ceilings_have_a_row_for_every_history_length(probes, with_model):
    workspace, _ = with_model(knows_what_it_reads(probes.items))
    items = {item.item_id: item for item in probes.items}
    empty = {name: pl.DataFrame(schema=dict(getattr(schemas, name.upper()))) for name in EVERY_TABLE}
    tables = TrackTables(
        track="conversation", cards=scoring.metric_cards("conversation"), **{**empty, "items": probes.all_items()}
    )
    assert recall_ceiling.ceiling_by_history(workspace, tables) is None
    scores, _ = recall_ceiling.text_ceilings(workspace, probes.items)
    rows = [measurement_row(name, "", items[one.item_id], one) for name, found in scores.items() for one in found]
    bounds = pl.DataFrame(rows, schema=dict(schemas.MEASUREMENTS))
    write_frame(workspace.store, workspace.table_key(("conversation", "bounds"), None), bounds)
    found = recall_ceiling.ceiling_by_history(workspace, tables).frame
    due = {}
    for item in probes.items:
        length = float(item.reference.attributes["history_target_s"])
        due[item.condition, length] = due.get((item.condition, length), 0) + 1
    assert len({length for _, length in due}) > 1
    for name in CEILINGS:
        mine = found.filter(pl.col("system") == name)
        assert {(row["kind"], row["history_s"]): row["n_points"] for row in mine.iter_rows(named=True)} == due
        rates = mine.filter((pl.col("kind") == "conversation_recall") & pl.col("strict").is_not_null())["strict"]
        assert set(rates) == {1.0 if name == TEXT_CEILING else 0.0}
    estimates, _ = summary.aggregate(workspace, "conversation", {}, bounds)
    assert set(estimates.frame["system"]) == set(CEILINGS) <= {info.name for info in report.BOUNDS}


def test_the_plan_counts_both_ceilings_and_afterwards_neither(probes, with_model):
    workspace, api = with_model(knows_all(probes.items))
    write_frame(workspace.store, workspace.table_key(("conversation", "items"), None), probes.all_items())

    def plan(opened):
        return next(cost.plan for cost in text_costs(opened, ()) if cost.role == "text ceiling")

    track = workspace.profile.conversation
    labels_only = replace(
        workspace,
        profile=replace(
            workspace.profile, conversation=replace(track, recall=replace(track.recall, heard_ceiling=False))
        ),
    )
    n = len(probes.items)
    before, alone = plan(workspace), plan(labels_only)
    assert (before.requests, alone.requests) == (2 * n, n)
    assert before.usd_high > 1.5 * alone.usd_high > 0
    recall_ceiling.text_ceilings(labels_only, probes.items)
    # The answers from label words are stored; those from recognised words are not, and still count.
    halfway = plan(workspace)
    assert (halfway.requests, halfway.cached) == (2 * n, n)
    recall_ceiling.text_ceilings(workspace, probes.items)
    after = plan(workspace)
    assert (after.requests, after.cached, after.usd_high) == (2 * n, 2 * n, 0.0)
    assert len(api.seen) == 2 * n


def test_the_bounds_stage_stores_both(probes, with_model):
    workspace, _ = with_model(knows_all(probes.items))
    made = conversation.bounds(workspace, probes.all_items())
    recall = made.frame.filter(pl.col("metric") == "recall_correct")
    assert set(recall["system"]) == set(CEILINGS)
    assert recall.height == 2 * len(probes.items)
