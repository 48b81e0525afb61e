"""The recall probes from planted facts to scores, on quick engines; and a profile without them."""

import json
from dataclasses import replace

import polars as pl
import pytest
from recall_probes import Probes, profile

from duplex_bench.conversation.label_types import other
from duplex_bench.records import tables as schemas
from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.stages import (
    corpus,
    evaluation,
    recall,
    regeneration,
    scoring,
)
from duplex_bench.stages.judges import SECOND
from duplex_bench.stages.recall_scorers import second_judge_table
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.storage.frames import write_frame
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

EVERY_TABLE = (
    "items", "rollouts", "activity", "words", "judgements", "measurements", "statistics", "comparisons",
)  # fmt: skip


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
