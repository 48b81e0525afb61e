"""The example of docs/adding-a-system.md is run as it is written."""

import re
import sys
from pathlib import Path

import pytest

from duplex_bench.systems.card import SystemCard, resolved
from duplex_bench.systems.conformance import check
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
