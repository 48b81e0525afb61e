"""The gate: passes what is the same, fails what is worse by interval, and never passes over what is missing."""

import dataclasses
import math
import re
import shutil
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from planted_run import keep

from duplex_bench.reporting.run_tables import load_run
from duplex_bench.stages import scoring
from duplex_bench.stages.gate import decide, gate
from duplex_bench.stages.gate_output import junit, summary
from duplex_bench.stages.gate_rules import GateRules, GateRulesError, MetricRule, read_rules
from duplex_bench.stages.stored_run import required

pytestmark = pytest.mark.unit

CARDS = {card.id: card for track in ("multiparty", "conversation") for card in scoring.metric_cards(track)}
UP = CARDS["silence_preservation"]
DOWN = next(card for card in CARDS.values() if card.direction == "lower")
TARGET = next(card for card in CARDS.values() if card.direction == "target")
FINITE = st.floats(-2, 2, allow_nan=False)
INTERVALS = st.tuples(FINITE, FINITE).map(sorted)
# The small conversation track is one conversation, which no interval can be given for.
MULTIPARTY = ["twin"]


@pytest.fixture
def baseline(run, tmp_path):
    shutil.copytree(run.data, tmp_path / "baseline")
    return dataclasses.replace(run, data=tmp_path / "baseline")


def checked(run, baseline, rules=None, systems=()):
    return gate(load_run(run.data), load_run(baseline.data), rules or GateRules(), systems)


def verdict(found, check, system="twin"):
    return next(one for one in found.verdicts if (one.system, one.check) == (system, check))


def worse(workspace, system="twin", share=1.0):
    """Silence windows fail in a share of the clusters."""
    frame = required(workspace, "multiparty", "measurements", system)
    clusters = sorted(frame["cluster"].unique())
    chosen = clusters[: math.ceil(share * len(clusters))]
    mine = (pl.col("metric") == "silence_preservation") & pl.col("cluster").is_in(chosen)
    value = pl.when(mine).then(0.0).otherwise(pl.col("value"))
    keep(workspace, "multiparty", "measurements", frame.with_columns(value.alias("value")), system)


@given(INTERVALS, st.floats(0, 1), st.floats(0, 1))
def test_a_wider_margin_never_fails_what_a_narrower_passes(bounds, margin, more):
    for test in ("non_inferiority", "equivalence", "no_regression"):
        rules = GateRules(test=test)
        narrow, _ = decide(UP, MetricRule(margin=margin), rules, *bounds)
        wide, _ = decide(UP, MetricRule(margin=margin + more), rules, *bounds)
        assert wide == "passed" or narrow != "passed"


@given(INTERVALS, st.floats(0, 1))
def test_the_three_tests_stand_in_order(bounds, margin):
    """What is equivalent is not inferior; what is not inferior is no regression."""
    status = {
        test: decide(UP, MetricRule(margin=margin), GateRules(test=test), *bounds)[0] == "passed"
        for test in ("equivalence", "non_inferiority", "no_regression")
    }
    assert status["equivalence"] <= status["non_inferiority"] <= status["no_regression"]


@given(INTERVALS, st.floats(0, 1))
def test_lower_is_better_is_the_mirror_of_higher_is_better(bounds, margin):
    low, high = bounds
    rule = MetricRule(margin=margin)
    assert decide(UP, rule, GateRules(), low, high)[0] == decide(DOWN, rule, GateRules(), -high, -low)[0]


@given(INTERVALS)
def test_a_metric_with_a_target_is_held_to_it_from_both_sides(bounds):
    low, high = bounds
    passed = decide(TARGET, MetricRule(margin=0.5), GateRules(), low, high)[0] == "passed"
    assert passed == (low >= -0.5 - 1e-9 and high <= 0.5 + 1e-9)


@pytest.mark.parametrize(
    ("low", "high", "status", "said"),
    [
        (-0.05, 0.1, "passed", "not worse by more than the margin"),
        (-0.3, -0.06, "failed", "worse by more than the margin"),
        (-0.2, 0.1, "failed", "the interval reaches past it"),
        (-0.2, -0.01, "failed", "and is worse than the baseline"),
    ],
)
def test_non_inferiority_by_hand(low, high, status, said):
    found = decide(UP, MetricRule(margin=0.05), GateRules(), low, high)
    assert found[0] == status
    assert said in found[1]


def test_what_is_no_interval_is_refused():
    for low, high in ((0.2, 0.1), (math.nan, 0.1)):
        with pytest.raises(ValueError, match="is no interval"):
            decide(UP, MetricRule(margin=0.05), GateRules(), low, high)


def test_the_same_run_passes_and_says_what_it_did_not_gate(run, baseline):
    found = checked(run, baseline, systems=MULTIPARTY)
    assert found.passed
    assert verdict(found, "silence_preservation (all)").status == "passed"
    assert verdict(found, "items scored").status == "passed"
    one = verdict(found, "silence_preservation (all)")
    # What came out the same has no interval, and the answer says so: a width of 0 would be a promise.
    assert (one.difference, one.low, one.high) == (0, None, None)
    assert re.search(r"none of the \d+ windows in 3 clusters moved", one.reason)


def test_a_collapse_of_every_cluster_alike_fails_every_test(run, baseline):
    """Three clusters that all fall from 1 to 0 have no spread: no interval may let them pass."""
    for workspace, value in ((baseline, 1.0), (run, 0.0)):
        frame = required(workspace, "multiparty", "measurements", "twin")
        mine = pl.col("metric") == "silence_preservation"
        changed = frame.with_columns(pl.when(mine).then(value).otherwise(pl.col("value")).alias("value"))
        keep(workspace, "multiparty", "measurements", changed, "twin")
    for test in ("non_inferiority", "equivalence", "no_regression"):
        one = verdict(checked(run, baseline, GateRules(test=test), MULTIPARTY), "silence_preservation (all)")
        assert (one.status, one.difference) == ("failed", -1)
        assert "alike in all" in one.reason


def test_a_worse_run_fails_with_the_change_and_its_interval(run, baseline):
    worse(run)
    found = checked(run, baseline, systems=MULTIPARTY)
    assert not found.passed
    one = verdict(found, "silence_preservation (all)")
    assert one.status == "failed"
    assert "worse by more than the margin" in one.reason
    assert one.high < -0.05
    assert checked(run, baseline, GateRules(margins={"silence_preservation": MetricRule(margin=1)}), MULTIPARTY).passed


def test_a_better_run_passes_non_inferiority_and_fails_equivalence(run, baseline):
    worse(baseline)
    assert checked(run, baseline, systems=MULTIPARTY).passed
    assert not checked(run, baseline, GateRules(test="equivalence"), MULTIPARTY).passed


def test_what_cannot_be_told_fails_or_is_reported_by_rule(run, baseline):
    worse(run, share=0.3)
    assert verdict(checked(run, baseline, systems=MULTIPARTY), "silence_preservation (all)").status == "failed"
    lenient = checked(run, baseline, GateRules(not_shown="report"), MULTIPARTY)
    assert verdict(lenient, "silence_preservation (all)").status == "reported"
    assert checked(run, baseline, GateRules(test="no_regression"), MULTIPARTY).passed


def test_a_system_that_the_run_lacks_fails_or_is_reported_by_rule(run, baseline):
    for track in ("multiparty", "conversation"):
        run.store.delete(run.table_key((track, "measurements"), "early"))
    strict = checked(run, baseline)
    assert {(one.track, one.status) for one in strict.verdicts if one.system == "early"} == {
        ("multiparty", "failed"), ("conversation", "failed"),
    }  # fmt: skip
    lenient = checked(run, baseline, GateRules(missing_systems="report"))
    assert {one.status for one in lenient.verdicts if one.system == "early"} == {"reported"}


def test_a_system_that_is_new_is_reported(run, baseline):
    baseline.store.delete(baseline.table_key(("multiparty", "measurements"), "twin"))
    assert verdict(checked(run, baseline), "present").status == "reported"


def test_lost_rollouts_fail_although_every_value_that_is_left_is_as_good(run, baseline):
    rolled = required(run, "multiparty", "rollouts", "twin")
    lost = pl.col("item_id") == rolled["item_id"][0]
    outcome = pl.when(lost).then(pl.lit("transport_error")).otherwise(pl.col("outcome"))
    keep(run, "multiparty", "rollouts", rolled.with_columns(outcome.alias("outcome")), "twin")
    found = checked(run, baseline, systems=MULTIPARTY)
    assert verdict(found, "items scored").status == "failed"
    assert (
        f"{rolled.height - 1} of the baseline's {rolled.height} scored items" in verdict(found, "items scored").reason
    )


def test_windows_that_are_gone_fail(run, baseline):
    frame = required(run, "multiparty", "measurements", "twin")
    keep(run, "multiparty", "measurements", frame.filter(pl.col("item_id") != frame["item_id"][0]), "twin")
    assert verdict(checked(run, baseline, systems=MULTIPARTY), "windows shared").status == "failed"


def test_values_that_became_reasons_fail(run, baseline):
    frame = required(run, "multiparty", "measurements", "twin")
    mine = pl.col("metric") == "silence_preservation"
    gone = frame.with_columns(
        pl.when(mine).then(None).otherwise(pl.col("value")).alias("value"),
        pl.when(mine).then(pl.lit("not judged")).otherwise(pl.col("reason")).alias("reason"),
    )
    keep(run, "multiparty", "measurements", gone, "twin")
    one = verdict(checked(run, baseline, systems=MULTIPARTY), "silence_preservation (all)")
    assert one.status == "failed"
    assert one.reason.startswith("cannot be judged")


def test_one_cluster_in_the_baseline_is_reported_or_fails_by_rule(run, baseline):
    """The small conversation track is one conversation."""
    for rules, status in ((GateRules(), "reported"), (GateRules(too_few="fail"), "failed")):
        found = checked(run, baseline, rules, ["silent"])
        mine = [one for one in found.verdicts if one.check == "pause_silent (pause)"]
        assert [one.status for one in mine] == [status]
        assert "in 1 clusters, 2 in 2 are needed" in mine[0].reason


def test_one_cluster_left_in_the_run_fails(run, baseline):
    frame = required(run, "multiparty", "measurements", "twin")
    lost = (pl.col("metric") == "silence_preservation") & (pl.col("cluster") != frame["cluster"].min())
    gone = frame.with_columns(
        pl.when(lost).then(None).otherwise(pl.col("value")).alias("value"),
        pl.when(lost).then(pl.lit("not judged")).otherwise(pl.col("reason")).alias("reason"),
    )
    keep(run, "multiparty", "measurements", gone, "twin")
    one = verdict(checked(run, baseline, GateRules(min_shared=0.01), MULTIPARTY), "silence_preservation (all)")
    assert one.status == "failed"
    assert "cannot be judged" in one.reason


def test_another_version_of_a_metric_fails(run, baseline):
    frame = required(run, "multiparty", "measurements", "twin").with_columns(
        pl.lit(9, pl.Int64).alias("metric_version")
    )
    keep(run, "multiparty", "measurements", frame, "twin")
    one = verdict(checked(run, baseline, systems=MULTIPARTY), "silence_preservation (all)")
    assert one.status == "failed"
    assert "version 9 against 1 of the metric" in one.reason


def test_a_gate_that_gates_nothing_fails(run, baseline):
    kept = required(run, "multiparty", "measurements", "twin").with_columns(pl.lit("stranger").alias("system"))
    for track in ("multiparty", "conversation"):
        for system in ("early", "silent", "twin"):
            run.store.delete(run.table_key((track, "measurements"), system))
    keep(run, "multiparty", "measurements", kept, "stranger")
    found = checked(run, baseline, GateRules(missing_systems="report"))
    assert not found.passed
    assert any("no metric was gated" in one.reason for one in found.verdicts)


def test_without_a_margin_a_metric_is_reported(run, baseline):
    found = checked(run, baseline, GateRules(rate_margin=None), MULTIPARTY)
    assert verdict(found, "silence_preservation (all)").status == "reported"
    assert not any(one.check == "silence_preservation (all)" and one.status == "passed" for one in found.verdicts)


def test_names_that_are_not_there_are_refused(run, baseline):
    with pytest.raises(ValueError, match="margin for nothing, which is no metric"):
        checked(run, baseline, GateRules(margins={"nothing": MetricRule(margin=0.1)}))
    with pytest.raises(ValueError, match="no system 'nobody'"):
        checked(run, baseline, systems=["nobody"])


def test_junit_counts_what_the_gate_found_and_holds_any_text(run, baseline):
    worse(run)
    found = checked(run, baseline)
    odd = dataclasses.replace(found.verdicts[0], reason="a \x00 b <&> \ud800", status="failed")
    found = dataclasses.replace(found, verdicts=(odd, *found.verdicts[1:]))
    root = ET.fromstring(junit(found))
    cases = root.findall("testsuite/testcase")
    assert int(root.get("tests")) == len(cases) == len(found.verdicts)
    assert int(root.get("failures")) == len(root.findall("testsuite/testcase/failure")) == found.count("failed")
    assert int(root.get("skipped")) == len(root.findall("testsuite/testcase/skipped")) == found.count("reported")
    assert sum(int(suite.get("tests")) for suite in root.findall("testsuite")) == len(cases)
    names = [(case.get("classname"), case.get("name")) for case in cases]
    assert len(set(names)) == len(names)


def test_the_summary_begins_with_the_answer_and_has_a_row_for_each_check(run, baseline):
    worse(run)
    found = checked(run, baseline, systems=MULTIPARTY)
    text = summary(found)
    assert text.startswith("## duplex-bench gate: failed")
    rows = [line for line in text.splitlines() if line.startswith("| ") and not line.startswith("| |")]
    assert len(rows) == len(found.verdicts)
    assert rows[0].startswith("| **failed**")


def test_rules_are_read_from_toml_and_options_win(tmp_path):
    file = tmp_path / "gate.toml"
    file.write_text('test = "equivalence"\nmin_coverage = 0.8\n[margins]\ncosine = 0.1\n'
                    'turn_end_latency = {margin = 0.2, test = "no_regression"}\n')  # fmt: skip
    rules = read_rules(file, ["cosine=0.02", "pause_silent = 0.04"], "non_inferiority")
    assert (rules.test, rules.min_coverage) == ("non_inferiority", 0.8)
    assert rules.margins["cosine"] == MetricRule(margin=0.02)
    assert rules.margins["pause_silent"].margin == 0.04
    assert rules.margins["turn_end_latency"] == MetricRule(margin=0.2, test="no_regression")


@pytest.mark.parametrize(
    ("text", "margins", "said"),
    [
        ("tset = 'x'", [], "tset: Extra inputs"),
        ("test = 'x'", [], "test: Input should be"),
        ("[margins]\ncosine = -1", [], "greater than or equal to 0"),
        ("[margins]\ncosine = nan", [], "finite number"),
        ("margins = 3", [], "margins: Input should be"),
        ("not toml", [], "not TOML"),
        ("", ["cosine"], "give metric=number"),
        ("", ["cosine=much"], "give metric=number"),
    ],
)
def test_rules_that_cannot_be_used_are_named(tmp_path, text, margins, said):
    file = tmp_path / "gate.toml"
    file.write_text(text)
    with pytest.raises(GateRulesError, match=said):
        read_rules(file, margins)


def test_rules_that_are_not_there_are_named(tmp_path):
    with pytest.raises(GateRulesError, match="cannot be read"):
        read_rules(tmp_path / "none.toml")
