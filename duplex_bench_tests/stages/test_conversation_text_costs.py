import dataclasses

import polars as pl
import pytest

from duplex_bench.conversation.recall import RecallSettings
from duplex_bench.judging.model_judge import JudgeSettings
from duplex_bench.stages.conversation_text_costs import added_up, scaled
from duplex_bench.stages.text_costs import text_costs
from duplex_bench.stages.workspace import Workspace, open_workspace
from duplex_bench.storage.frames import write_frame
from duplex_bench.textmodels.batches import BatchSettings
from duplex_bench.textmodels.model import CostPlan
from duplex_bench.textmodels.settings import ModelSettings

pytestmark = pytest.mark.unit

MODEL = ModelSettings("openai", "gpt-4o", input_usd_per_million=2.0, output_usd_per_million=8.0)


@pytest.fixture
def workspace(tmp_path):
    plain = open_workspace("demo", tmp_path)
    conversation = dataclasses.replace(
        plain.profile.conversation, point_judge=MODEL, recall=RecallSettings(enabled=True, model=MODEL)
    )
    return Workspace(plain.data, dataclasses.replace(plain.profile, conversation=conversation))


def costs(workspace, systems=("a",)):
    return {cost.role: cost for cost in text_costs(workspace, systems)}


def test_before_anything_is_made_the_roles_say_what_they_wait_for(workspace):
    found = costs(workspace)
    assert set(found) == {"point judge", "recall probes", "text ceiling"}
    assert all(cost.plan is None and "can be counted once" in cost.note for cost in found.values())


def test_points_and_probes_are_bounded_by_labels_and_sessions(workspace):
    labels = pl.DataFrame({"kind": ["pause"] * 5 + ["turn"] * 7 + ["backchannel"] * 9})
    write_frame(workspace.store, workspace.table_key(("conversation", "labels"), None), labels)
    sessions = pl.DataFrame({"selected": [True, True, False], "duration_s": [420.0, 600.0, 900.0]})
    write_frame(workspace.store, workspace.table_key(("conversation", "lively_sessions"), None), sessions)
    found = costs(workspace)
    judge, probes = found["point judge"].plan, found["recall probes"].plan
    assert (judge.requests, judge.usd_low) == (12, 0.0)
    assert judge.usd_high > 12 * 2.0e-6 * 100
    assert probes.requests == 2 * 8
    assert 0 < probes.usd_low < probes.usd_high
    # A longer session costs more: its whole transcript is read for the identity prompts.
    one = pl.DataFrame({"selected": [True, True], "duration_s": [420.0, 420.0]})
    write_frame(workspace.store, workspace.table_key(("conversation", "lively_sessions"), None), one)
    assert costs(workspace)["recall probes"].plan.input_tokens_high < probes.input_tokens_high


def test_a_plan_of_nothing_costs_nothing_and_an_unknown_price_stays_unknown():
    assert added_up([]).usd_high == 0.0
    unknown = CostPlan(1, 0, 10, 20, 5, 9, None, None, "no cost estimate")
    assert added_up([unknown, added_up([])]).usd_high is None
    assert scaled(unknown, 0, 3).output_tokens_high == 27


def test_batches_halve_the_judges_range(workspace, tmp_path):
    from duplex_bench.records import tables
    from duplex_bench.records.audio import AudioSlice
    from duplex_bench.records.items import Reference, Stimulus, Window
    from duplex_bench.storage.serial import to_json

    live = AudioSlice("s", 0, 24_000, 24_000, "c")
    reference = Reference((Window("w", "request", 0.0, 5.0),), "fifteen")
    row = {"item_id": "i", "track": "multiparty", "cluster": "c", "condition": "explicit", "protocol": "multiparty",
           "stimulus_digest": "d", "stimulus": to_json(Stimulus("multiparty", live)), "reference": to_json(reference),
           "licence": "", "language": "en", "live_s": 1.0}  # fmt: skip
    write_frame(
        workspace.store, workspace.table_key(("multiparty", "items"), None),
        pl.DataFrame([row], schema=dict(tables.ITEMS)),
    )  # fmt: skip
    ranges = []
    for enabled in (False, True):
        judge = JudgeSettings("model", MODEL, batch=BatchSettings(enabled=enabled))
        chosen = Workspace(workspace.data, dataclasses.replace(workspace.profile, judge=judge))
        ranges.append(costs(chosen)["judge"].plan.usd_high)
    assert ranges[1] == pytest.approx(ranges[0] / 2)
