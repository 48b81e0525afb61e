"""Cards of models behind servers of their own: what they declare, and that a missing address passes a system over."""

import pytest

from duplex_bench.cli.run import choose
from duplex_bench.cli.serve import CARDS as SERVED
from duplex_bench.cli.serve import PATHS
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import CAPABILITIES
from duplex_bench.contract.worker import load_factory
from duplex_bench.systems.card import missing_env
from duplex_bench.systems.registry import load_cards
from duplex_bench.systems.serving.endpoints import SERVICES

pytestmark = pytest.mark.unit

CARDS = {name: found.card for name, found in load_cards(None, plug_ins=False).cards.items()}
# In the order of P1's tables, then the further servers of MiniCPM-o.
NAMES = ("minicpm-o", "flm-audio", "freeze-omni", "minicpm-o-demo", "minicpm-o-vllm")
UNITS_S = {"minicpm-o": 1.0, "minicpm-o-demo": 1.0, "minicpm-o-vllm": 0.1, "flm-audio": 0.08, "freeze-omni": 0.02}
IN_MEMORY = ("loopback-minicpm-o", "loopback-flm-audio", "loopback-freeze-omni")


@pytest.fixture(autouse=True)
def _no_addresses(monkeypatch):
    for card in CARDS.values():
        for names in card.needs_env:
            for name in names.split("|"):
                monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_makes_its_system_without_a_connection_and_says_what_it_cannot_do(name):
    card = CARDS[name]
    system = load_factory(card.adapter)(dict(card.settings))
    assert isinstance(system, PushSystem)
    assert system.spec.unit_s == pytest.approx(UNITS_S[name])
    assert system.detections == {"automatic"}
    assert not system.virtual_time
    assert card.family == "full_duplex"
    assert not card.endpointer_dependent
    assert set(card.omitted) <= CAPABILITIES - system.spec.capabilities
    assert {"voice_prompt", "force_history", "sampling", "seedable"} <= set(card.omitted)


@pytest.mark.parametrize("name", IN_MEMORY)
def test_the_servers_in_memory_are_run_only_when_named(name):
    card = CARDS[name]
    assert card.on_request
    assert not card.needs_env
    system = load_factory(card.adapter)({**card.settings, "voice_behind": "tone"}, store=None)
    assert system.virtual_time


def test_a_run_says_in_one_line_which_address_is_missing_and_takes_a_system_that_has_one(tmp_path, monkeypatch, capsys):
    chosen = choose(tmp_path, tmp_path, "demo", "all", [])
    assert not set(NAMES) & set(chosen.cards)
    said = [line for line in capsys.readouterr().err.splitlines() if "passed over" in line]
    assert len(said) == 1
    monkeypatch.setenv("DUPLEX_BENCH_FLM_AUDIO_URL", "ws://127.0.0.1:1")
    assert set(NAMES) & set(choose(tmp_path, tmp_path, "demo", "all", []).cards) == {"flm-audio"}
    with pytest.raises(ValueError, match="freeze-omni needs DUPLEX_BENCH_FREEZE_OMNI_URL"):
        choose(tmp_path, tmp_path, "demo", "all", ["freeze-omni"])


def test_vllm_omni_needs_a_voice_as_well():
    assert missing_env(CARDS["minicpm-o-vllm"], {"DUPLEX_BENCH_MINICPM_O_VLLM_URL": "x"}) == (
        "DUPLEX_BENCH_MINICPM_O_VOICE",
    )


def test_serve_names_a_path_for_every_protocol_and_a_card_for_every_model():
    assert set(SERVED) <= set(SERVICES)
    assert set(SERVED) <= set(PATHS)
    for variable, name in SERVED.values():
        assert CARDS[name].needs_env[0] == variable


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("flm-audio", {"prompt": "x"}),
        ("freeze-omni", {"rate": 16}),
        ("minicpm-o", {"dialect": "french"}),
        ("minicpm-o", {"overlap_policy": "always"}),
        ("minicpm-o", {"temperature": 1.0}),
    ],
)
def test_settings_that_make_no_sense_are_refused(name, settings):
    with pytest.raises(ValueError, match=r"flm-audio|freeze-omni|minicpm-o"):
        load_factory(CARDS[name].adapter)(settings)
