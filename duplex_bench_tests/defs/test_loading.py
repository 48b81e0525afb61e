"""The code location loads fast, without anything heavy, and whatever the user's cards look like."""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

HEAVY = ("torch", "librosa", "openai", "anthropic", "matplotlib", "boto3", "onnxruntime", "ctranslate2", "hibari")
# Of processor time: wall time would say how busy the machine is.
MOST_S = 3.0
LOAD = """
import json, sys, time
from duplex_bench import definitions
from duplex_bench.defs import partitions
checks = {check.name: check for found in definitions.defs.asset_checks for check in found.check_specs}
result = [found() for found in definitions.defs.asset_checks if found.check_keys and
          {key.name for key in found.check_keys} == {"cards_valid"}][0]
print(json.dumps({
    "seconds": time.process_time(),
    "modules": sorted(sys.modules),
    "systems": list(partitions.CARDS),
    "passed": result.passed,
    "told": result.metadata["errors"].text if hasattr(result.metadata["errors"], "text") else "",
}))
"""
CARD = """
name = "{name}"
title = "A user's system"
family = "policy"
adapter = "duplex_bench.systems.adapters.never_speak:create"
licence = "test"
"""


@pytest.fixture
def loaded(tmp_path):
    """Loads the code location in a process of its own, with the cards that lie in ``data/systems``."""
    folder = tmp_path / "data" / "systems"
    folder.mkdir(parents=True)

    def load(**cards):
        for name, text in cards.items():
            (folder / f"{name}.toml").write_text(text)
        environment = {**os.environ, "DUPLEX_BENCH_DATA": str(tmp_path / "data")}
        command = [sys.executable, "-c", LOAD]
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300, check=False
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return load


def test_loading_is_quick_and_light(loaded):
    found = loaded()
    assert not {name for name in HEAVY if name in found["modules"]}
    assert found["seconds"] < MOST_S
    assert found["passed"]


def test_a_bad_card_is_skipped_and_shown_and_a_good_one_is_a_partition(loaded):
    found = loaded(good=CARD.format(name="mine"), bad=CARD.format(name="Not A Name"), broken="name = ")
    assert "mine" in found["systems"]
    assert len(found["systems"]) > 1, "the shipped cards are still there"
    assert not found["passed"]
    assert "bad.toml" in found["told"]
    assert "broken.toml" in found["told"]
    assert "good.toml" not in found["told"]


def test_a_card_that_only_the_other_machine_has_is_named_with_the_place_where_it_lacks(tmp_path, monkeypatch):
    from duplex_bench.defs.systems import assets

    monkeypatch.setattr(assets, "DATA_FOLDER", str(tmp_path))
    assert assets.card_here("never-speak").name == "never-speak"
    with pytest.raises(ValueError, match=r"systems on .*no system 'mine'.*Every worker must see the same cards"):
        assets.card_here("mine")
    (tmp_path / "systems").mkdir()
    # Put there since this process has read the cards.
    (tmp_path / "systems" / "mine.toml").write_text(CARD.format(name="mine"))
    assert assets.card_here("mine").name == "mine"
