"""The recall probes from planted facts to scores, on quick engines; and a profile without them."""

import copy
import json
from dataclasses import replace
from types import SimpleNamespace

import polars as pl
import pytest

from duplex_bench.conversation.label_types import other
from duplex_bench.records import tables as schemas
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.stages import (
    conversation,
    corpus,
    evaluation,
    recall,
    recall_ceiling,
    recall_speech,
    regeneration,
    scoring,
)
from duplex_bench.stages.judges import SECOND
from duplex_bench.stages.recall_scorers import second_judge_table
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.storage.frames import write_frame
from duplex_bench.systems.card import SystemCard
from duplex_bench.textmodels.settings import ModelSettings

pytestmark = pytest.mark.unit

EVERY_TABLE = (
    "items", "rollouts", "activity", "words", "judgements", "measurements", "statistics", "comparisons",
)  # fmt: skip


def profile(small, **settings):
    table = copy.deepcopy(small)
    table["conversation"]["recall"] = {"enabled": True, "lengths_s": [30.0, 60.0], **settings}
    return table


class Probes:
    """The conversation track with its probes."""

    def __init__(self, workspace):
        self.workspace = workspace
        self.sessions = conversation.lively_sessions(workspace).frame
        self.filled = conversation.gap_fill(workspace, self.sessions).frame
        self.labels = conversation.engine_labels(workspace, self.sessions, self.filled).frame
        given = (workspace, self.sessions, self.filled, self.labels)
        self.identities = recall.identity_prompts(*given)
        self.facts = recall.recall_facts(*given)
        self.questions = recall.recall_questions(
            workspace, self.sessions, self.labels, self.facts.frame, self.identities.frame
        )
        self.speech = recall_speech.question_speech(workspace, self.sessions, self.questions.frame)
        self.items = recall.recall_items(
            *given, self.identities.frame, self.questions.frame, self.speech.frame
        )  # fmt: skip

    def all_items(self):
        found = conversation.candidates(self.workspace, self.sessions, self.filled, self.labels).frame
        points = conversation.points(self.workspace, found).frame
        told = recall.identity_of(self.identities.frame)
        return conversation.items(
            self.workspace, self.sessions, self.filled, self.labels, points, told, self.items
        ).frame  # fmt: skip


@pytest.fixture
def small_table():
    from importlib import util
    from pathlib import Path

    spec = util.spec_from_file_location("stages_conftest", Path(__file__).with_name("conftest.py"))
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.SMALL


@pytest.fixture
def probes(quick_engines, small_workspace, small_table, tmp_path):
    return Probes(small_workspace(tmp_path, profile(small_table)))


def test_planted_facts_are_asked_by_who_stated_them_in_their_own_voice(probes):
    (session,) = corpus.planted_sessions(probes.workspace)
    planted = {(fact.speaker, fact.question, fact.answer) for fact in session.plan.facts}
    assert set(probes.facts.frame.select("asker", "question", "answer").iter_rows()) == planted
    voices = {"left": session.left_voice, "right": session.right_voice}
    told = {(row["asker"], row["voice"]) for row in probes.speech.frame.iter_rows(named=True)}
    assert told <= set(voices.items())
    assert set(probes.speech.frame["how"]) == {"speaker's own embedded voice"}


def test_the_same_question_is_asked_after_every_history_and_the_gold_stays_sealed(probes):
    by_question = {}
    for item in probes.items:
        by_question.setdefault(item.reference.attributes["question_id"], []).append(item)
        assert item.stimulus.protocol == "recall"
        assert item.stimulus.history_user.n_samples == item.stimulus.history_assistant.n_samples
        sees = json.dumps([turn.text for turn in item.stimulus.history]) + (item.stimulus.identity_prompt or "")
        assert "gold_answer" not in sees
    assert by_question
    for asked in by_question.values():
        assert len({item.stimulus.live for item in asked}) == 1
        lengths = [item.reference.attributes["history_s"] for item in asked]
        assert lengths == sorted(lengths)
        for item in asked:
            assert item.reference.attributes["history_s"] <= item.reference.attributes["history_target_s"]


def test_the_history_holds_the_fact_and_the_system_plays_the_other_side(probes):
    facts = {(row["asker"], row["question"]): row for row in probes.facts.frame.iter_rows(named=True)}
    told = recall.identity_of(probes.identities.frame)
    for item in probes.items:
        if item.condition != "conversation_recall":
            continue
        asker = item.reference.attributes["asker"]
        stated = facts[asker, item.reference.attributes["question"]]
        assert stated["end_s"] <= item.reference.attributes["history_s"]
        assert item.stimulus.identity_prompt == told[item.cluster, other(asker)]


def test_probes_are_scored_and_those_who_say_nothing_recall_nothing(probes):
    items = probes.all_items().filter(pl.col("protocol") == "recall")
    card = SystemCard(name="silent", title="silent", family="policy", licence="test",
                      adapter="duplex_bench.systems.adapters.never_speak:create")  # fmt: skip
    rolled = run_rollouts(probes.workspace, "conversation", items, card).frame
    heard = evaluation.activity(probes.workspace, "conversation", rolled, "silent").frame
    said = evaluation.words(probes.workspace, "conversation", rolled, "silent").frame
    given = ("conversation", items, rolled, heard, said)
    judged = evaluation.judgements(probes.workspace, *given, "silent")
    scores = evaluation.measurements(probes.workspace, *given, judged.frame, "silent").frame
    assert judged.frame.height == 0
    assert set(scores["metric"]) == set(scoring.conversation_cards.RECALL_METRICS)
    assert scores["value"].to_list() == [0.0] * scores.height
    assert scores.height == 3 * items.height


def test_a_draw_takes_some_of_each_kind(quick_engines, small_workspace, small_table, tmp_path):
    table = profile(small_table, n_conversation_recall=1, n_fact_recall=1)
    found = Probes(small_workspace(tmp_path, table))
    assert sorted(item.condition for item in found.items) == ["conversation_recall", "fact_recall"]


def test_without_the_switch_there_are_no_probes_and_the_points_are_as_before(
    quick_engines, small_workspace, small_table, tmp_path, probes
):
    plain = Probes(small_workspace(tmp_path / "plain"))
    assert plain.items == []
    assert plain.facts.frame.height == plain.questions.frame.height == plain.identities.frame.height == 0
    items = plain.all_items()
    assert set(items["protocol"]) == {"pause", "turn_end"}
    changed = regeneration.compare(items, probes.all_items())
    # An identity prompt is something that a system reads: with it, every point is another stimulus.
    assert changed.counts["stimulus_changed"] == items.height
    assert changed.counts["drawn"] == len(probes.items)


def test_a_real_corpus_without_a_model_says_what_facts_need(probes):
    track = probes.workspace.profile.conversation
    real = replace(track, corpus=replace(track.corpus, kind="two_channel"))
    workspace = replace(probes.workspace, profile=replace(probes.workspace.profile, conversation=real))
    told = recall.recall_facts(workspace, probes.sessions, probes.filled, probes.labels)
    assert told.frame.height == 0
    assert "conversation.recall.model" in told.note


class ReadsTheHistory:
    """A text model that answers with the words said last, or with the gold answer that a test hands it."""

    def __init__(self, answers):
        self.answers = answers

    def __call__(self, settings, *_, **__):
        self.settings = settings
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def check_key(self):
        pass

    def ask(self, request, kind, subject=""):
        text = request.turns[0].text
        found = next((answer for question, answer in self.answers.items() if question in text), "")
        return SimpleNamespace(value=kind(answer=found), reason="")


def test_the_text_ceiling_answers_after_every_history_and_is_judged_like_a_system(probes, monkeypatch):
    track = probes.workspace.profile.conversation
    model = ModelSettings(vendor="openai", model="test")
    asked = replace(track, recall=replace(track.recall, model=model))
    workspace = replace(probes.workspace, profile=replace(probes.workspace.profile, conversation=asked))
    first = probes.items[0].reference
    right = {first.attributes["question"]: f"I think it was {first.gold_answer}"}
    monkeypatch.setattr(recall_ceiling, "TextModel", ReadsTheHistory(right))
    scores, counts = recall_ceiling.text_ceiling(workspace, probes.items)
    known = {item.item_id: item.reference.attributes["question"] for item in probes.items}
    for score in scores:
        due = float(known[score.item_id] == first.attributes["question"])
        assert score.score.value == due, score
    assert counts["text_ceiling_computed"] == len(probes.items)
    assert recall_ceiling.text_ceiling(probes.workspace, probes.items) == ([], {})


def test_the_ceiling_has_a_row_for_every_history_length(probes, monkeypatch):
    model = ModelSettings(vendor="openai", model="test")
    track = probes.workspace.profile.conversation
    asked = replace(track, recall=replace(track.recall, model=model))
    workspace = replace(probes.workspace, profile=replace(probes.workspace.profile, conversation=asked))
    # The model knows every answer.
    right = {one.reference.attributes["question"]: one.reference.gold_answer for one in probes.items}
    monkeypatch.setattr(recall_ceiling, "TextModel", ReadsTheHistory(right))
    items = {item.item_id: item for item in probes.items}
    scores, _ = recall_ceiling.text_ceiling(workspace, probes.items)
    rows = [evaluation.measurement_row(recall_ceiling.TEXT_CEILING, "", items[one.item_id], one) for one in scores]
    empty = {name: pl.DataFrame(schema=dict(getattr(schemas, name.upper()))) for name in EVERY_TABLE}
    tables = TrackTables(
        track="conversation", cards=scoring.metric_cards("conversation"), **{**empty, "items": probes.all_items()}
    )
    assert recall_ceiling.ceiling_by_history(workspace, tables) is None
    key = workspace.table_key(("conversation", "bounds"), None)
    write_frame(workspace.store, key, pl.DataFrame(rows, schema=dict(schemas.MEASUREMENTS)))
    found = recall_ceiling.ceiling_by_history(workspace, tables).frame
    due = {}
    for item in probes.items:
        length = float(item.reference.attributes["history_target_s"])
        due[item.condition, length] = due.get((item.condition, length), 0) + 1
    assert {(row["kind"], row["history_s"]): row["n_points"] for row in found.iter_rows(named=True)} == due
    assert len({length for _, length in due}) > 1
    for row in found.iter_rows(named=True):
        # One point has no rate.
        expected = 1.0 if row["n_points"] > 1 else None
        assert (row["judged"], row["strict"]) == (expected, expected)
    assert found["judged"].drop_nulls().len() > 0


def test_a_second_judge_stands_beside_the_first_and_the_matcher(probes):
    items = probes.all_items().filter(pl.col("protocol") == "recall").sort("item_id").head(4)
    rows, verdicts = [], []
    # First judge, strict matcher, second judge: credited by all, by judges only, by the matcher only, by none.
    for number, item in enumerate(items.iter_rows(named=True)):
        base = {"system": "one", "item_id": item["item_id"], "rollout_key": f"r{number}", "window_id": "recall",
                "cluster": item["cluster"], "condition": "conversation_recall", "metric_version": 1, "reason": None,
                "at_s": 0.0, "details": "{}"}  # fmt: skip
        for metric, value in (("recall_correct", number < 2), ("recall_strict", number in {0, 2})):
            rows.append({**base, "metric": metric, "value": float(value), "measurement_id": f"{metric}{number}"})
        verdicts.append({"judgement_id": str(number), "rollout_key": f"r{number}", "item_id": item["item_id"],
                         "window_id": "recall", "system": "one", "rubric": "recall_correctness", "rubric_version": 1,
                         "judge": "second", "verdict": "correct" if number < 2 else "incorrect", "reason": "",
                         "raw": ""})  # fmt: skip
    rolled = pl.DataFrame([dict.fromkeys(schemas.ROLLOUTS) | {"system": "one"}], schema=dict(schemas.ROLLOUTS))
    empty = {name: pl.DataFrame(schema=dict(getattr(schemas, name.upper())))
             for name in ("activity", "words", "judgements", "statistics", "comparisons")}  # fmt: skip
    track = TrackTables(track="conversation", items=items, rollouts=rolled, cards=scoring.metric_cards("conversation"),
                        measurements=pl.DataFrame(rows).select(list(schemas.MEASUREMENTS)), **empty)  # fmt: skip
    assert second_judge_table(probes.workspace, track) is None
    key = probes.workspace.table_key(("conversation", SECOND), "one")
    write_frame(probes.workspace.store, key, pl.DataFrame(verdicts, schema=dict(schemas.JUDGEMENTS)))
    (row,) = second_judge_table(probes.workspace, track).frame.iter_rows(named=True)
    assert (row["n"], row["second_only"], row["strict_only"]) == (4, 1, 1)
    assert (row["judges_agree"], row["second_agrees_with_strict"]) == (1.0, 0.5)
