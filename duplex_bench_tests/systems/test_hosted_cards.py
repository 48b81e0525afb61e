"""Cards of hosted systems: what they are, and that a missing key passes a system over instead of failing a run."""

import polars as pl
import pytest
from pydantic import ValidationError

from duplex_bench.cli.run import choose
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.worker import load_factory
from duplex_bench.stages.profile import load_profile
from duplex_bench.stages.rollouts import rollouts, why_not
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.adapters.prices import usd_per_minute
from duplex_bench.systems.card import SystemCard, missing_env
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit

KEYS = ("OPENAI_API_KEY", "XAI_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
CARDS = {name: found.card for name, found in load_cards(None, plug_ins=False).cards.items()}
# Models behind servers of their own are realtime too: test_model_server_cards.py.
REALTIME = {name: card for name, card in CARDS.items() if card.driver == "realtime" and card.family == "hosted"}
VENDORS = {name: card for name, card in REALTIME.items() if card.provider}


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def test_every_hosted_system_of_the_paper_has_a_card():
    assert set(VENDORS) == {
        "gpt-realtime-300ms", "gpt-realtime-500ms", "gpt-realtime-semantic", "grok-voice", "gemini-live",
        "gemini-live-manual",
    }  # fmt: skip
    assert CARDS["gpt-realtime-semantic"].protocols == ("pause", "multiparty")


@pytest.mark.parametrize("name", list(REALTIME))
def test_a_realtime_card_makes_its_system_without_a_key_or_a_connection(name):
    card = REALTIME[name]
    settings = dict(card.settings)
    factory = load_factory(card.adapter)
    system = factory(settings, store=None) if card.uses_cache else factory(settings)
    assert isinstance(system, PushSystem)
    assert system.spec.unit_s == pytest.approx(0.02)
    assert not system.spec.lockstep
    if name in VENDORS:
        assert card.needs_env
        assert card.settings["model"] == card.model_id
        assert usd_per_minute(card.model_id) is not None
    else:
        assert card.on_request


def test_either_of_two_variables_will_do():
    card = CARDS["gemini-live"]
    assert missing_env(card, {}) == ("GOOGLE_API_KEY|GEMINI_API_KEY",)
    assert missing_env(card, {"GEMINI_API_KEY": ""}) == ("GOOGLE_API_KEY|GEMINI_API_KEY",)
    assert missing_env(card, {"GEMINI_API_KEY": "x"}) == missing_env(card, {"GOOGLE_API_KEY": "x"}) == ()


@pytest.mark.parametrize("name", ["", "lower", "A|", "A B", "1A"])
def test_a_variable_that_cannot_be_one_is_refused(name):
    with pytest.raises(ValidationError):
        SystemCard(name="x", title="x", family="hosted", adapter="m:create", licence="x", needs_env=(name,))


def test_what_is_needed_to_run_here_reruns_nothing():
    card = CARDS["gpt-realtime-500ms"]
    changed = card.model_copy(update={"needs_env": (), "on_request": True, "protocols": ("pause",)})
    assert changed.execution_digest() == card.execution_digest()


def test_a_run_takes_what_can_run_and_passes_over_the_rest(tmp_path, monkeypatch, capsys):
    chosen = choose(tmp_path, tmp_path, "demo", "all", [])
    assert "cascade-500ms" in chosen.cards
    assert not set(REALTIME) & set(chosen.cards)
    assert "gpt-realtime-300ms needs OPENAI_API_KEY" in " ".join(capsys.readouterr().err.split())
    monkeypatch.setenv("XAI_API_KEY", "x")
    assert set(REALTIME) & set(choose(tmp_path, tmp_path, "demo", "all", []).cards) == {"grok-voice"}


def test_a_system_that_is_named_but_cannot_run_is_an_error_with_its_remedy(tmp_path):
    with pytest.raises(ValueError, match="gpt-realtime-300ms needs OPENAI_API_KEY"):
        choose(tmp_path, tmp_path, "demo", "all", ["gpt-realtime-300ms"])
    both = choose(tmp_path, tmp_path, "demo", "all", ["gpt-realtime-300ms", "never-speak", "loopback-xai-500ms"])
    assert set(both.cards) == {"never-speak", "loopback-xai-500ms"}


def test_the_stage_itself_refuses_to_run_without_the_key(tmp_path):
    with pytest.raises(ValueError, match="set XAI_API_KEY in the environment"):
        rollouts(Workspace(tmp_path, load_profile("demo")), "conversation", pl.DataFrame(), CARDS["grok-voice"])


def test_a_protocol_that_a_card_does_not_name_is_not_applicable():
    semantic, manual = CARDS["gpt-realtime-semantic"], CARDS["gemini-live-manual"]
    assert why_not(semantic, "conversation", "pause") is None
    assert "turn_end" in why_not(semantic, "conversation", "turn_end")
    assert "multiparty" in why_not(manual, "multiparty", "multiparty")
