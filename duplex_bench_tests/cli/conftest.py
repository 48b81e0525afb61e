"""The command line as a user has it, in a folder of its own: small scripts, systems that cost nothing."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest

PROFILE = """
name = "small"
seed = 1
processes = 1

[multiparty.grammar]
n_pairs = 2
seed = 3

[multiparty.grammar.size]
silence_turns_mean = 5.0
n1_turns_mean = 1.0
n3_turns_mean = 1.0
elaborations_mean = 0.0

[conversation.generator]
n_sessions = 1

[statistics]
n_resamples = 50
"""
CARD = """
name = "{name}"
title = "{name}"
family = "policy"
adapter = "{adapter}"
epoch = {epoch}
tracks = ["multiparty"]
licence = "test"
notes = "{notes}"
[settings]
{settings}
"""
# The report measures voices and draws figures, which takes longer than all the rest: they have tests of their own.
WITHOUT_REPORT = """
from duplex_bench.cli import graph, main
graph.REPORT = ()
graph.OVER_ALL = ("statistics", "comparisons")
main.main()
"""


@pytest.fixture(autouse=True)
def environment_as_before():
    """Commands name store and profile in the environment of their process, which here goes on to the next test."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@dataclass
class Checkout:
    """A folder with a profile, cards and outputs, and the commands that are run in it."""

    root: Path
    started: list[subprocess.Popen] = field(default_factory=list)

    @property
    def store(self):
        return self.root / "data" / "store"

    def card(self, name, adapter="duplex_bench.systems.adapters.never_speak:create", *, epoch=0, notes="", **settings):
        folder = self.root / "data" / "systems"
        folder.mkdir(parents=True, exist_ok=True)
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in settings.items())
        text = CARD.format(name=name, adapter=adapter, epoch=epoch, notes=notes, settings=lines)
        (folder / f"{name}.toml").write_text(text)

    def start(self, *arguments, code=WITHOUT_REPORT):
        """A command in a process group of its own."""
        environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "adapters"), "COLUMNS": "200"}
        environment = {key: value for key, value in environment.items() if not key.startswith("DUPLEX_BENCH_")}
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments], cwd=self.root, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        self.started.append(process)
        return process

    def run(self, *arguments, code=WITHOUT_REPORT, timeout_s=600):
        process = self.start(*arguments, code=code)
        out, err = process.communicate(timeout=timeout_s)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def benchmark(self, *systems):
        chosen = [option for name in systems for option in ("--system", name)]
        return ("run", "--profile", "small.toml", "--track", "multiparty", *chosen)

    def table(self, name, system=None):
        parts = [name, system] if system else [name]
        return pl.read_parquet(self.store / "tables" / "small" / "multiparty" / f"{'/'.join(parts)}.parquet")

    def finished(self, stage, system):
        """Keys that a ledger calls finished."""
        from duplex_bench.storage.ledger import ItemLedger
        from duplex_bench.storage.object_store import FolderStore

        return set(ItemLedger(FolderStore(self.store), f"multiparty/{stage}/{system}").finished())


@pytest.fixture
def called(monkeypatch, tmp_path, capsys):
    """Runs a command through the entry point, in an empty folder; (exit code, stdout, stderr as one line)."""
    from duplex_bench.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    for name in ("DUPLEX_BENCH_PROFILE", "DUPLEX_BENCH_DATA", "DUPLEX_BENCH_LIMIT"):
        monkeypatch.delenv(name, raising=False)

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["duplex-bench", *map(str, arguments)])
        try:
            main.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        told = capsys.readouterr()
        return code, told.out, " ".join(told.err.split())

    return call


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    found = Checkout(tmp_path_factory.mktemp("checkout"))
    (found.root / "small.toml").write_text(PROFILE)
    done = found.run("init")
    assert done.returncode == 0, done.stderr
    yield found
    for process in found.started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
