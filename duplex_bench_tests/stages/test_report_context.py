"""What the report says beside its tables: who made what, what was scored anew, what was not measured and why."""

import json

import polars as pl
import pytest
from planted_run import policy, three_pairs

from duplex_bench.reporting.inputs import TrackTables
from duplex_bench.stages import report_context
from duplex_bench.stages.report import track_tables
from duplex_bench.stages.stored_run import required, systems_with
from duplex_bench.systems.card import Environment, SystemCard, resolved

pytestmark = pytest.mark.unit

PER_SYSTEM = ("rollouts", "activity", "words", "judgements", "measurements")


def tables_of(workspace, track) -> TrackTables:
    stored = {
        name: {system: required(workspace, track, name, system) for system in systems_with(workspace, track, name)}
        for name in PER_SYSTEM
    }
    stored |= {name: required(workspace, track, name) for name in ("items", "statistics", "comparisons")}
    return track_tables(track, stored)


def by_maker(name, provider):
    return SystemCard(name=name, title=name, family="hosted", adapter="a.b:c", provider=provider, licence="terms")


@pytest.fixture
def judged_by_openai(run, small_workspace):
    table = {**three_pairs(small_workspace), "judge": {
        "engine": "model", "model": {"vendor": "openai", "model": "gpt-4o"},
        "second": {"vendor": "anthropic", "model": "claude-opus-5"},
    }}  # fmt: skip
    table["multiparty"] = {**table["multiparty"], "reference": {
        "engine": "model", "model": {"vendor": "gemini", "model": "gemini-3.1-pro"},
    }}  # fmt: skip
    return small_workspace(run.data, table)


@pytest.mark.parametrize(
    ("provider", "roles"),
    [("openai", {"judge"}), ("anthropic", {"second judge"}), ("google", {"transcript reference"}), ("xai", set())],
)
def test_every_model_of_the_systems_maker_is_warned_about(judged_by_openai, provider, roles):
    found = report_context.warnings(
        judged_by_openai, [tables_of(judged_by_openai, "multiparty")], [by_maker("early", provider)]
    )
    assert len(found) == len(roles)
    assert {role for role in roles for told in found if f"the {role} " in told and "system early" in told} == roles


def test_a_system_that_did_not_run_and_one_without_a_maker_are_not_warned_about(judged_by_openai):
    tracks = [tables_of(judged_by_openai, "multiparty")]
    assert report_context.warnings(judged_by_openai, tracks, [by_maker("absent", "openai")]) == ()
    assert report_context.warnings(judged_by_openai, tracks, [by_maker("early", "")]) == ()


def test_results_that_were_scored_anew_are_told_with_their_notice(run):
    name = run.profile.name
    folder = run.data / "rescored" / f"{name}-rescored-strict"
    folder.mkdir(parents=True)
    (folder / "rescore.json").write_text(json.dumps({"name": "strict", "notice": "Rates fell by 3 points."}))
    other = run.data / "rescored" / "elsewhere-rescored-x"
    other.mkdir()
    (other / "rescore.json").write_text(json.dumps({"name": "x", "notice": "Not of this profile."}))
    (told,) = report_context.warnings(run, [], [])
    assert "strict" in told
    assert "Rates fell by 3 points." in told
    assert f"profile {name}" in told


def test_a_metric_without_rows_says_why_and_one_with_rows_is_not_named(run):
    tracks = [tables_of(run, name) for name in ("multiparty", "conversation")]
    found = report_context.unmeasured(run, tracks)
    cards = {card.id for track in tracks for card in track.cards}
    measured = set(pl.concat([track.measurements["metric"] for track in tracks]))
    assert set(found) == cards - measured
    recall = {name: why for name, why in found.items() if name.startswith("recall")}
    assert recall
    assert all("conversation.recall.enabled" in why for why in recall.values())


def test_recall_that_is_on_but_gave_nothing_is_told_otherwise(run, small_workspace):
    table = three_pairs(small_workspace)
    table["conversation"] = {**table["conversation"], "recall": {"enabled": True}}
    on = small_workspace(run.data, table)
    found = report_context.unmeasured(on, [tables_of(run, "conversation")])
    assert {why for name, why in found.items() if name.startswith("recall")} == {
        "no conversation of this run gave a recall point"
    }


def test_card_facts_name_paths_as_the_card_does(tmp_path):
    environment = Environment(kind="python", interpreter="../env/bin/python", python_path=(".",))
    card = resolved(policy("planted", "a.b:c").model_copy(update={"environment": environment}), tmp_path)
    told = report_context.card_facts(card)["environment"]
    assert "../env/bin/python" in told
    assert str(tmp_path) not in told
    assert "as written" not in told.replace("_", " ")


def test_card_facts_leave_out_defaults_and_read_as_text():
    facts = report_context.card_facts(policy("planted", "a.b:c", at_s=[1.0, 2.5], loud=True))
    assert facts["settings"] == "at_s 1.0, 2.5, loud yes"
    assert facts["adapter"] == "a.b:c"
    assert not {"name", "title", "family", "licence", "notes", "epoch"} & set(facts)


def test_a_card_that_nobody_examined_has_no_level(run):
    assert report_context.conformance(run, policy("early", "a.b:c")) == ""
