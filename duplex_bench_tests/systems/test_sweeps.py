"""Generated cards differ from their base in the endpointer alone, and end turns sooner or later."""

import tomllib

import numpy as np
import pytest
from typer.testing import CliRunner

from duplex_bench.cli.main import app
from duplex_bench.contract.types import OpenRequest
from duplex_bench.rollout import realtime
from duplex_bench.rollout.plan import ProtocolSettings, plan_for
from duplex_bench.systems.card import Environment, SystemCard
from duplex_bench.systems.environments import open_system
from duplex_bench.systems.registry import load_cards
from duplex_bench.systems.sweeps import SILENCES_MS, SweepError, card_toml, sweep_cards

pytestmark = pytest.mark.unit

SHIPPED = {name: found.card for name, found in load_cards(None, plug_ins=False).cards.items()}
SWEPT = ("cascade-300ms", "cascade-semantic", "gpt-realtime-300ms", "gpt-realtime-semantic", "grok-voice",
         "gemini-live", "loopback-openai-500ms", "loopback-gemini-500ms", "openai-compatible")  # fmt: skip


@pytest.mark.parametrize("name", SWEPT)
def test_cards_are_read_as_written_and_differ_in_the_endpointer_alone(name):
    base = SHIPPED[name]
    made = sweep_cards(base)
    assert len({card.name for card in made}) == len(made) >= len(SILENCES_MS)
    endpointer = {
        "endpointer",
        "silence_s",
        "silence_ms",
        "detector",
        "eagerness",
        "cap_s",
        "check_after_s",
        "threshold",
    }
    for card in made:
        assert SystemCard.model_validate(tomllib.loads(card_toml(card))) == card
        assert {k: v for k, v in card.settings.items() if k not in endpointer} == {
            k: v for k, v in base.settings.items() if k not in endpointer
        }
        assert (card.provider, card.needs_env, card.licence) == (base.provider, base.needs_env, base.licence)
        assert card.on_request
    orders = [card.sweep.at for card in made if card.sweep.name.endswith("-silence")]
    assert orders == sorted(orders)
    assert len({card.execution_digest() for card in made}) == len(made)


def test_semantic_detection_is_swept_only_where_it_is_offered():
    kinds = {name: {card.sweep.label for card in sweep_cards(SHIPPED[name]) if "semantic" in card.sweep.name}
             for name in SWEPT}  # fmt: skip
    every = {"semantic, low", "semantic, medium", "semantic, high"}
    assert kinds["cascade-300ms"] == kinds["gpt-realtime-300ms"] == kinds["loopback-openai-500ms"] == every
    assert kinds["grok-voice"] == kinds["gemini-live"] == kinds["loopback-gemini-500ms"] == set()


def test_what_has_no_endpointer_is_refused():
    with pytest.raises(SweepError, match="no endpointer"):
        sweep_cards(SHIPPED["never-speak"])
    with pytest.raises(SweepError, match="silences are 20 to"):
        sweep_cards(SHIPPED["cascade-300ms"], [5])
    apart = SHIPPED["cascade-300ms"].model_copy(
        update={"environment": Environment(kind="python", interpreter="python3")}
    )
    with pytest.raises(SweepError, match="by hand"):
        sweep_cards(apart)


def test_a_longer_silence_answers_later_by_as_much():
    turn = np.concatenate([np.full(12_000, 0.1), np.zeros(240)]).astype(np.float32)
    plan = plan_for("turn_end", ProtocolSettings(turn_end_trigger="endpointer"))
    starts = {}
    for card in sweep_cards(SHIPPED["loopback-openai-500ms"], [200, 700]):
        if card.sweep.name.endswith("-silence"):
            toned = card.model_copy(update={"settings": {**card.settings, "voice_behind": "tone"}})
            with open_system(toned) as system:
                result = realtime.run(system, OpenRequest(1, "x"), turn, 24_000, plan)
            starts[card.sweep.at] = np.flatnonzero(np.abs(result.listener) > 0.01)[0] / 24_000
    assert starts[700.0] - starts[200.0] == pytest.approx(0.5, abs=0.03)


def test_the_command_writes_cards_that_the_registry_reads(tmp_path):
    told = CliRunner().invoke(
        app, ["systems", "sweep", "cascade-500ms", "--silences", "100,2000", "--data", str(tmp_path)]
    )
    assert told.exit_code == 0, told.output
    found = load_cards(tmp_path / "systems", plug_ins=False)
    assert found.errors == ()
    assert {"cascade-sweep-silence-0100ms", "cascade-sweep-silence-2000ms", "cascade-sweep-semantic-high"} <= set(
        found.cards
    )
    refused = CliRunner().invoke(
        app, ["systems", "sweep", "cascade-500ms", "--silences", "fast", "--data", str(tmp_path)]
    )
    assert "whole milliseconds" in str(refused.exception)
