"""Settings of a card: what is wrong with them is named."""

from dataclasses import dataclass
from typing import Literal

import pytest

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.unit


@dataclass(frozen=True)
class Voice:
    model: str
    silence_ms: int = 500
    threshold: float = 0.5
    manual: bool = True
    detector: Literal["server_vad", "semantic_vad"] = "server_vad"
    key_env: tuple[str, ...] = ()
    limit_s: float | None = None


def test_values_of_a_card_become_the_dataclass():
    card = {"model": "m", "threshold": 1, "key_env": ["A", "B"], "detector": "semantic_vad", "limit_s": 2}
    assert settings_from(Voice, card, "voice") == Voice(
        "m", threshold=1, key_env=("A", "B"), detector="semantic_vad", limit_s=2
    )
    assert settings_from(Voice, {"model": "m"}, "voice") == Voice("m")


@pytest.mark.parametrize(
    ("card", "message"),
    [
        ({}, r"voice: settings \['model'\] are needed; known are \['detector', 'key_env'"),
        ({"model": "m", "silense_ms": 1}, r"voice: unknown settings \['silense_ms'\]; known are .*'silence_ms'"),
        ({"model": 7}, "setting model = 7: give a text"),
        ({"model": "m", "silence_ms": "500"}, "setting silence_ms = '500': give a whole number"),
        ({"model": "m", "silence_ms": 0.5}, "setting silence_ms = 0.5: give a whole number"),
        ({"model": "m", "silence_ms": True}, "setting silence_ms = True: give a whole number"),
        ({"model": "m", "threshold": "high"}, "give a number"),
        ({"model": "m", "threshold": False}, "give a number"),
        ({"model": "m", "manual": "yes"}, "give true or false"),
        ({"model": "m", "detector": "vad"}, "detector = 'vad': give 'server_vad' or 'semantic_vad'"),
        ({"model": "m", "key_env": "A"}, "give a list, each a text"),
        ({"model": "m", "key_env": [1]}, "give a list, each a text"),
        ({"model": "m", "limit_s": "1"}, "limit_s = '1'"),
    ],
)
def test_what_is_wrong_is_named(card, message):
    with pytest.raises(ValueError, match=message):
        settings_from(Voice, card, "voice")


def test_cards_of_the_package_have_settings_of_the_right_kind():
    """Adapters that load no weights are made from their card; those that do have theirs checked in their rooms."""
    from duplex_bench.systems.adapters.cascade.cascade import CascadeSettings

    cards = load_cards(None, plug_ins=False).cards
    cascades = [found.card for name, found in cards.items() if name.startswith("cascade-")]
    assert cascades
    for card in cascades:
        settings_from(CascadeSettings, card.settings, card.name)


def test_a_stand_in_is_of_the_type_that_it_stands_in_for():
    cards = [
        found.card for name, found in load_cards(None, plug_ins=False).cards.items() if name.startswith("loopback-")
    ]
    assert len(cards) > 5
    assert {card.name for card in cards if card.endpointer_dependent} == {
        card.name for card in cards if card.family == "hosted"
    }
