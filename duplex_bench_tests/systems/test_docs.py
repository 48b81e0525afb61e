"""The example of docs/adding-a-system.md is run as it is written."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.contract.worker import load_factory
from duplex_bench.systems.card import SystemCard, resolved
from duplex_bench.systems.conformance import check, examine
from duplex_bench.systems.environments import open_system
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.process

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-system.md"


def _block(language, number=0):
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[number]


def test_the_example_conforms(tmp_path):
    (tmp_path / "echo.py").write_text(_block("python"))
    (tmp_path / "echo.toml").write_text(_block("toml").replace('"python3"', f'"{sys.executable}"'))
    registry = load_cards(tmp_path, plug_ins=False)
    assert registry.errors == ()
    found = registry.cards["echo"]
    with open_system(resolved(found.card, found.folder), cache_folder=tmp_path / "cache") as system:
        assert check(system) == []
    assert len(_block("python").splitlines()) < 100


def test_the_page_names_every_key_of_a_card():
    text = PAGE.read_text(encoding="utf-8")
    table = set(re.findall(r"`\[?(\w+)\]?`", text))
    assert set(SystemCard.model_fields) <= table


LEVELS_PAGE = PAGE.with_name("conformance.md")
CARDS = {name: found.card for name, found in load_cards(None, plug_ins=False).cards.items()}


def _levels():
    """Level by card, as the tables of the page have it."""
    levels = {}
    for line in LEVELS_PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        level = next((cell for cell in cells[1:3] if cell in ("must", "should", "optional")), None)
        if line.startswith("| `") and level:
            levels |= dict.fromkeys(re.findall(r"`([\w-]+)`", cells[0]), level)
    return levels


def test_the_page_of_levels_has_every_card():
    untried = set(re.findall(r"`([\w-]+)`", LEVELS_PAGE.read_text(encoding="utf-8").partition("## Not tried")[2]))
    assert set(_levels()) | (untried & set(CARDS)) == set(CARDS)


@pytest.mark.parametrize("name", sorted(name for name, card in CARDS.items() if "protocol" in card.settings))
def test_cards_of_our_servers_in_memory_reach_the_level_on_the_page(name):
    system = load_factory(CARDS[name].adapter)({**CARDS[name].settings, "voice_behind": "tone"}, store=None)
    spoken = np.random.default_rng(2).standard_normal(system.spec.in_rate_hz).astype(np.float32) * np.float32(0.1)
    assert examine(system, spoken).level == _levels()[name]
