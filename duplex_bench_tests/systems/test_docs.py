"""The example of docs/adding-a-system.md is run as it is written."""

import dataclasses
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.contract import codec, messages
from duplex_bench.contract.types import CAPABILITIES, OpenRequest, Out, Spec
from duplex_bench.contract.worker import load_factory
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.systems.card import SystemCard, resolved
from duplex_bench.systems.conformance import check, examine
from duplex_bench.systems.environments import open_system
from duplex_bench.systems.registry import load_cards

pytestmark = pytest.mark.process

PAGE = Path(__file__).parents[2] / "docs" / "adding-a-system.md"
CONTRACT_PAGE = PAGE.with_name("session-contract.md")


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


VENDOR = """
import numpy as np

class Model:
    def reset(self, seed):
        self.seed, self.pushes, self.quiet, self.heard, self.left = seed, 0, 0, False, 0
        self.words = "hello"

    @property
    def is_speaking(self):
        return self.left > 0

    def push(self, pcm):
        assert len(pcm) == 640
        self.pushes += 1
        loud = np.abs(np.frombuffer(pcm, "<i2")).max() > 300
        self.quiet = 0 if loud else self.quiet + 1
        self.heard = self.heard or loud
        if self.heard and self.quiet == 35:
            self.heard, self.left = False, 10
        if self.pushes % 4 or not self.left:
            return None
        self.left -= 1
        return np.full(1920, 9000 + self.seed % 100, "<i2").tobytes()
"""


def test_the_example_around_a_model_of_ones_own_conforms_and_is_heard(tmp_path):
    (tmp_path / "vendor.py").write_text(VENDOR)
    (tmp_path / "around.py").write_text(_block("python", 1))
    card = SystemCard(
        name="around", title="A", family="full_duplex", adapter="around:create", licence="MIT",
        environment={"kind": "python", "interpreter": sys.executable, "python_path": [str(tmp_path)]},
    )  # fmt: skip
    live = np.zeros(16_000, dtype=np.float32)
    live[:8000] = 0.1
    with open_system(card, cache_folder=tmp_path / "cache") as system:
        assert examine(system).level == "optional"
        result = run(system, OpenRequest(7, "x"), live, 16_000, StreamPlan(2.0))
    # 0.5 s of sound, 0.7 s of silence; the reply to the 60th push comes with its end, and its 80 ms are whole.
    first = np.flatnonzero(result.listener)[0] / 24_000
    assert first == pytest.approx(1.2, abs=0.08)
    assert result.listener.max() == pytest.approx(9007 / 32768)


def test_the_page_of_the_contract_names_every_field_and_capability():
    named = set(re.findall(r"`([a-z_]+)`", CONTRACT_PAGE.read_text(encoding="utf-8")))
    fields = {field.name for kind in (Spec, Out) for field in dataclasses.fields(kind)}
    assert (fields - {"kind"}) | CAPABILITIES <= named


def test_the_messages_on_the_page_of_the_contract_are_messages():
    blocks = re.findall(r"```json\n(.*?)```", CONTRACT_PAGE.read_text(encoding="utf-8"), re.DOTALL)
    told = {header["kind"]: header for header in map(json.loads, blocks)}
    assert all(header["version"] == codec.VERSION and "arrays" in header for header in told.values())
    assert messages.unpack_spec(told["spec"]["spec"]).unit_in_samples == 320
    assert messages.unpack_request(told["open"]["request"], []).history[0].text == "Hello."
    (out,) = messages.unpack_outs(told["outs"]["outs"], [np.zeros(1920, dtype=np.float32)])
    assert out.response_id == "r1"
    assert messages.unpack_stats(told["closed"]["stats"]).units == 42
    assert set(told["error"]) == {"kind", "version", "arrays", "type", "message", "unsupported"}


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
