"""Sessions with a vendor: the budget is held before the first, and what was paid is noted after the last."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from duplex_bench.records.items import HistoryTurn, Stimulus
from duplex_bench.stages import rollouts as stage
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, to_pcm16
from duplex_bench.storage.digests import stimulus_digest
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.systems.adapters import openai_session
from duplex_bench.systems.adapters.prices import usd_per_minute
from duplex_bench.systems.registry import load_cards
from duplex_bench.textmodels.errors import BudgetError
from duplex_bench.textmodels.spend import SpendLedger

pytestmark = pytest.mark.unit

RATE = 24_000


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    monkeypatch.setattr(stage, "pool", lambda *_: None)
    return Workspace(tmp_path, load_profile("demo"))


def with_budget(workspace, usd):
    profile = workspace.profile
    return replace(workspace, profile=replace(profile, rollout=replace(profile.rollout, budget_usd=usd)))


@pytest.fixture
def items(workspace):
    blobs = BlobStore(workspace.store)
    rows = []
    for number in range(3):
        sound = np.concatenate([np.full(RATE, 0.1 + number / 100), np.zeros(RATE)])
        samples = to_pcm16(sound)[:, None]
        stimulus = Stimulus(
            "turn_end", blobs.slice_of(blobs.put_audio(samples[:, 0], RATE), samples, RATE, 0, len(sound))
        )
        rows.append(
            {"item_id": f"i{number}", "protocol": "turn_end", "stimulus_digest": stimulus_digest(stimulus),
             "stimulus": to_json(stimulus), "live_s": 2.0}
        )  # fmt: skip
    return pl.DataFrame(rows)


@pytest.fixture
def card():
    """A system in memory that a vendor would be paid for."""
    found = load_cards(None, plug_ins=False).cards["loopback-openai-500ms"].card
    settings = {**found.settings, "voice_behind": "tone", "model": "gpt-realtime-2025-08-28"}
    return found.model_copy(
        update={"settings": settings, "provider": "openai", "model_id": "gpt-realtime-2025-08-28", "uses_cache": True}
    )


def test_what_was_paid_is_noted_once_for_each_session(workspace, items, card):
    run = stage.rollouts(workspace, "conversation", items, card).frame
    assert run["outcome"].to_list() == ["completed"] * 3
    calls = list(SpendLedger(workspace.store).calls())
    assert {call.call for call in calls} == set(run["rollout_key"])
    assert all(call.usd > 0 and call.subject == card.name and call.output_tokens > 0 for call in calls)
    stage.rollouts(workspace, "conversation", items, card)
    assert len(list(SpendLedger(workspace.store).calls())) == 3


def test_a_budget_that_could_be_passed_stops_the_run_before_the_first_session(workspace, items, card):
    with pytest.raises(BudgetError, match=r"budget of 0\.1 USD"):
        stage.rollouts(with_budget(workspace, 0.1), "conversation", items, card)
    assert list(SpendLedger(workspace.store).calls()) == []
    assert stage.rollout_ledger(workspace, "conversation", card.name).finished() == {}


def test_within_a_budget_only_what_was_really_paid_counts_afterwards(workspace, items, card):
    rich = with_budget(workspace, 5.0)
    stage.rollouts(rich, "conversation", items, card)
    spent = SpendLedger(workspace.store).counted_usd()
    assert 0 < spent < 0.1
    assert spent == pytest.approx(sum(call.usd for call in SpendLedger(workspace.store).calls()))


def test_a_model_without_a_known_price_cannot_be_held_to_a_budget(workspace, items, card):
    unknown = card.model_copy(update={"model_id": "some-other-model"})
    with pytest.raises(BudgetError, match="price is not known"):
        stage.rollouts(with_budget(workspace, 5.0), "conversation", items, unknown)


def test_systems_of_this_machine_are_held_to_no_budget(workspace, items, card):
    local = card.model_copy(update={"provider": ""})
    stage.rollouts(with_budget(workspace, 0.0), "conversation", items, local)
    assert list(SpendLedger(workspace.store).calls()) == []


def test_a_session_that_does_not_say_what_it_used_counts_as_the_upper_end_of_the_range(
    workspace, items, card, monkeypatch
):
    monkeypatch.setattr(openai_session, "cost_usd", lambda model, usage: None)
    run = stage.rollouts(workspace, "conversation", items, card).frame
    paid = {call.call: call.usd for call in SpendLedger(workspace.store).calls()}
    most = usd_per_minute(card.model_id)[1]
    assert paid == pytest.approx({row["rollout_key"]: row["timeline_s"] / 60 * most for row in run.to_dicts()})


def test_turns_of_history_are_set_aside_where_the_vendor_charges_for_each(workspace, items, card):
    turns = tuple(HistoryTurn("user", f"word {n}", float(n), n + 0.5) for n in range(100))
    row = items.row(0, named=True)
    stimulus = replace(from_json(Stimulus, row["stimulus"]), history=turns)
    with_history = pl.DataFrame([{**row, "stimulus": to_json(stimulus), "stimulus_digest": stimulus_digest(stimulus)}])
    grok = card.model_copy(update={"model_id": "grok-voice-latest"})
    # 32 s at twice the price of a minute are 0.09 dollars, 100 turns are 0.40.
    with pytest.raises(BudgetError, match=r"up to 0\.48"):
        stage.rollouts(with_budget(workspace, 0.3), "conversation", with_history, grok)
