"""Checks in Dagster: what a stage's check finds is a failed check with its numbers, or a warning where it should."""

import dagster as dg
import polars as pl
import pytest

from duplex_bench.defs.conversation.checks import label_invariants
from duplex_bench.defs.evaluation.checks import evaluation_checks
from duplex_bench.defs.multiparty.checks import scenes_as_planned
from duplex_bench.records import tables

pytestmark = pytest.mark.dagster

LABELS = pl.DataFrame(
    [("s", "left", "turn", 0.0, 5.0), ("s", "left", "turn", 4.0, 9.0)],
    schema=["session_id", "speaker", "kind", "start_s", "end_s"],
    orient="row",
)


def named(name):
    return next(check for check in evaluation_checks("multiparty") for key in check.check_keys if key.name == name)


def test_overlapping_turns_fail_with_their_number():
    found = label_invariants(LABELS)
    assert not found.passed
    assert found.severity == dg.AssetCheckSeverity.ERROR
    assert found.metadata["overlapping_turns"].value == 1
    assert label_invariants(LABELS.head(1)).passed


def test_a_fault_of_a_scene_fails_and_is_named():
    sound, faulty = ('{"faults": []}', '{"faults": ["gap: 0.2 s after u03 instead of 0.4 s"]}')
    assert scenes_as_planned(pl.DataFrame({"item_id": ["a"], "scene": [sound]})).passed
    found = scenes_as_planned(pl.DataFrame({"item_id": ["a", "b"], "scene": [sound, faulty]}))
    assert not found.passed
    assert "b: gap" in found.metadata["first"].value


def test_a_measurement_with_neither_value_nor_reason_fails():
    row = dict.fromkeys(tables.MEASUREMENTS) | {"item_id": "one", "window_id": "w", "metric": "m"}
    found = named("measurements_add_up")(
        pl.DataFrame([row], schema=dict(tables.MEASUREMENTS)), pl.DataFrame(schema=dict(tables.ITEMS))
    )
    assert not found.passed
    assert found.metadata["value_and_reason"].value == 1


def test_too_few_verdicts_warn_and_do_not_fail_a_run():
    rows = [dict.fromkeys(tables.JUDGEMENTS) | {"item_id": "one"}]
    found = named("verdict_share")(pl.DataFrame(rows, schema=dict(tables.JUDGEMENTS)))
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_a_failed_check_is_recorded_for_its_partition():
    """Through Dagster: the asset's bad table, the check, and what the instance then knows."""
    systems = dg.StaticPartitionsDefinition(["one"])

    @dg.asset(key=["multiparty", "rollouts"], partitions_def=systems)
    def rollouts():
        row = dict.fromkeys(tables.ROLLOUTS) | {"item_id": "one", "outcome": "transport_error"}
        return pl.DataFrame([row], schema=dict(tables.ROLLOUTS))

    @dg.asset(key=["multiparty", "items"])
    def items():
        return pl.DataFrame([dict.fromkeys(tables.ITEMS) | {"item_id": "one"}], schema=dict(tables.ITEMS))

    @dg.asset_check(
        asset=rollouts, partitions_def=systems, additional_ins={"items": dg.AssetIn(["multiparty", "items"])}
    )
    def rollouts_complete(rollouts, items):
        return named("rollouts_complete")(rollouts, items)

    with dg.DagsterInstance.ephemeral() as instance:
        result = dg.materialize([items, rollouts, rollouts_complete], partition_key="one", instance=instance)
        (evaluation,) = result.get_asset_check_evaluations()
    assert (evaluation.passed, evaluation.metadata["lost"].value) == (False, 1)
