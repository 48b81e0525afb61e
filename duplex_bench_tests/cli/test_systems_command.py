"""``duplex-bench systems``: one's own system from nothing to a level, another language, an installed package."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from duplex_bench.cli.main import app
from duplex_bench.contract.types import OpenRequest
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.stages.cards import card_named
from duplex_bench.stages.conformance import level_text, stored_examination
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.systems.environments import open_system

pytestmark = pytest.mark.process

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
NODE = shutil.which("node")
needs_node = pytest.mark.skipif(NODE is None, reason="Node.js is not on this machine: the example in it was not run")
PACKAGE = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"
[project]
name = "dummy-systems"
version = "1"
[project.entry-points."duplex_bench.systems"]
dummy = "dummy_systems:cards"
[tool.setuptools.package-data]
dummy_systems = ["*.toml"]
"""
CODE = """
from pathlib import Path
from duplex_bench.systems.adapters.never_speak import create as quiet

def cards():
    return [Path(__file__).parent / "quiet.toml"]

def create(settings):
    return quiet(settings)
"""
QUIET_CARD = """
name = "dummy-quiet"
title = "Of an installed package"
family = "policy"
adapter = "dummy_systems:create"
licence = "test"
"""


def systems(tmp_path, *arguments):
    return CliRunner().invoke(app, ["systems", *arguments, "--data", str(tmp_path)], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def parrot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own")
    assert systems(folder, "new", "my-parrot").exit_code == 0
    return folder


@pytest.fixture
def turn():
    generator = np.random.default_rng(3)
    audio = np.zeros(24_000 * 4, dtype=np.float32)
    audio[12_000:36_000] = generator.standard_normal(24_000) * 0.1
    return audio


def spoken_by(folder, name, live):
    card = card_named(folder / "systems", name)
    with open_system(card, cache_folder=folder / "cache") as system:
        return run(system, OpenRequest(1, "x"), live, 24_000, StreamPlan(2.0))


def test_what_new_writes_is_short_and_passes_the_suite(parrot):
    code = (parrot / "systems" / "my_parrot.py").read_text()
    assert len(code.splitlines()) < 100
    told = systems(parrot, "check", "my-parrot", "--json")
    assert told.exit_code == 0, told.output
    results = json.loads(told.output)["examination"]["results"]
    assert {result["status"] for result in results} == {"kept", "not_applicable"}


def test_the_level_is_kept_until_the_execution_changes(parrot):
    store = FolderStore(parrot / "store")
    card = card_named(parrot / "systems", "my-parrot")
    systems(parrot, "check", "my-parrot")
    assert level_text(stored_examination(card, store)) == "optional"
    assert level_text(stored_examination(card.model_copy(update={"licence": "other"}), store)) == "optional"
    assert level_text(stored_examination(card.model_copy(update={"adapter_version": "2"}), store)) == "not checked"


def test_a_system_that_breaks_the_contract_ends_with_1_and_says_what(parrot, tmp_path):
    folder = tmp_path / "systems"
    shutil.copytree(parrot / "systems", folder)
    code = folder / "my_parrot.py"
    code.write_text(code.read_text().replace("SessionStats(units=self.units)", "SessionStats(units=1)"))
    told = systems(tmp_path, "check", "my-parrot")
    assert told.exit_code == 1
    assert "breaks the contract" in told.output
    assert "close reports 1 units" in told.output


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("../out", "is no name for a system"),
        ("My System", "is no name for a system"),
        ("never-speak", "a system never-speak exists"),
        ("my-parrot", "a system my-parrot exists"),
    ],
)
def test_new_refuses_names_and_never_writes_over_what_is_there(parrot, name, told):
    before = {path: path.read_bytes() for path in (parrot / "systems").iterdir()}
    refused = systems(parrot, "new", name)
    assert isinstance(refused.exception, ValueError)
    assert told in str(refused.exception)
    assert {path: path.read_bytes() for path in (parrot / "systems").iterdir()} == before


def test_new_takes_the_python_of_the_model_and_refuses_one_that_cannot_serve(tmp_path):
    refused = systems(tmp_path, "new", "mine", "--python", str(tmp_path / "nowhere"))
    assert "--python: " in str(refused.exception)
    assert not (tmp_path / "systems").exists()
    python = tmp_path / "my ünv" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    assert systems(tmp_path, "new", "mine", "--python", str(python)).exit_code == 0
    assert card_named(tmp_path / "systems", "mine").environment.interpreter == str(python)


def test_check_says_what_the_level_means_and_what_comes_next(parrot):
    told = " ".join(systems(parrot, "check", "my-parrot").output.split())
    assert "my-parrot reaches the level optional: no rule is broken, which is the highest" in told
    assert "next: duplex-bench run --system my-parrot --limit 2" in told


def test_one_fault_that_breaks_many_rules_is_written_once(parrot, tmp_path):
    shutil.copytree(parrot / "systems", tmp_path / "systems")
    code = tmp_path / "systems" / "my_parrot.py"
    code.write_text(code.read_text().replace("return SessionStats(units=self.units)", "return None"))
    told = systems(tmp_path, "check", "my-parrot").output
    assert told.count("close returned None: return SessionStats") == 1
    assert "as 'outputs keep the spec'" in told


def test_check_of_a_name_that_a_shipped_card_has_tells_of_the_other_file(parrot, tmp_path):
    (tmp_path / "systems").mkdir()
    (tmp_path / "systems" / "never-speak.toml").write_text(QUIET_CARD.replace("dummy-quiet", "never-speak"))
    told = systems(tmp_path, "check", "never-speak").output
    assert "name 'never-speak' is taken by" in " ".join(told.split())


def test_a_system_is_not_named_like_a_module_that_exists(tmp_path):
    assert systems(tmp_path, "new", "json").exit_code == 0
    assert (tmp_path / "systems" / "json_system.py").is_file()


def test_check_refuses_what_is_unknown_without_key_or_not_agreed_to(tmp_path, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert "no system 'nobody'" in str(systems(tmp_path, "check", "nobody").exception)
    assert "set OPENAI_API_KEY" in str(systems(tmp_path, "check", "gpt-realtime-500ms").exception)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert "--paid" in str(systems(tmp_path, "check", "gpt-realtime-500ms").exception)


def test_the_bare_command_lists(tmp_path):
    told = systems(tmp_path)
    assert told.exit_code == 0
    assert "never-speak" in told.output


@needs_node
def test_the_example_in_another_language_conforms_and_does_what_the_python_one_does(parrot, turn):
    for path in (EXAMPLES / "node-parrot").iterdir():
        shutil.copy(path, parrot / "systems")
    told = systems(parrot, "check", "node-parrot")
    assert told.exit_code == 0, told.output
    here, there = spoken_by(parrot, "my-parrot", turn), spoken_by(parrot, "node-parrot", turn)
    assert here.listener.any()
    assert here.listener.tobytes() == there.listener.tobytes()


@needs_node
def test_the_process_in_another_language_ends_with_its_system(parrot):
    for path in (EXAMPLES / "node-parrot").iterdir():
        shutil.copy(path, parrot / "systems")
    with open_system(card_named(parrot / "systems", "node-parrot"), cache_folder=parrot / "cache") as system:
        pid = system.worker_pid
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_cards_of_an_installed_package_are_found(tmp_path):
    source, site = tmp_path / "source", tmp_path / "site"
    package = source / "dummy_systems"
    package.mkdir(parents=True)
    (source / "pyproject.toml").write_text(PACKAGE)
    (package / "__init__.py").write_text(CODE)
    (package / "quiet.toml").write_text(QUIET_CARD)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    subprocess.run([*pip, "--no-build-isolation", "--target", site, source], check=True, capture_output=True)
    # In a process of its own: what is installed is looked up once a process.
    told = subprocess.run(
        [sys.executable, "-m", "duplex_bench.cli.main", "systems", "check", "dummy-quiet", "--data", tmp_path / "data"],
        env={**os.environ, "PYTHONPATH": str(site)}, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    assert "dummy-quiet reaches the level" in told.stdout
