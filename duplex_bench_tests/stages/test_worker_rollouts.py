"""A system in a worker that dies, hangs, floods, or runs out of memory, each a real process under the whole stage."""

import sys
from collections import Counter

import numpy as np
import polars as pl
import pytest

from duplex_bench.contract.client import RemoteSystem
from duplex_bench.records.items import Stimulus
from duplex_bench.stages.rollouts import rollout_ledger, rollouts
from duplex_bench.storage.blobs import BlobStore, to_pcm16
from duplex_bench.storage.digests import stimulus_digest
from duplex_bench.storage.serial import to_json
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.process

RATE = 24_000
# What goes wrong is told to the system by the level of what it hears, the only thing that crosses.
LEVELS = {"well": 0.1, "dies": 0.2, "hangs": 0.3, "out of memory": 0.4, "floods": 0.5, "odd": 0.6}
SYSTEM = """
import os, sys, threading
from pathlib import Path
import numpy as np
from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit, refuse_unsupported

SPEC = Spec(24000, 24000, 4800, 4800, True, capabilities=frozenset({"seedable"}))

class Session:
    def __init__(self, settings):
        self.settings, self.units = settings, 0
    def open(self, request):
        refuse_unsupported(request, SPEC)
    def step(self, unit):
        checked_unit(unit, SPEC)
        self.units += 1
        level = round(float(np.abs(unit).max()), 1)
        if not Path(self.settings["repaired"]).exists():
            if level == 0.2:
                sys.stderr.write("CUDA error: device-side assert\\n")
                os._exit(7)
            if level == 0.3:
                threading.Event().wait()
            if level == 0.4:
                np.ones(10**9)
            if level == 0.5:
                for _ in range(400):
                    sys.stderr.write("x" * 100_000 + "\\n")
                os._exit(9)
            if level == 0.6:
                return [Out("audio", self.units - 1, pcm=unit[:100])]
        return [Out("audio", self.units - 1, pcm=np.full(4800, 0.3, dtype=np.float32))]
    def close(self):
        return SessionStats(units=self.units)

class System:
    spec = SPEC
    def __init__(self, settings):
        self.settings = settings
    def new_session(self):
        return Session(self.settings)

def create(settings):
    with open(settings["starts"], "a") as file:
        file.write("x")
    if settings.get("broken"):
        raise OSError("model.safetensors is not there")
    return System(settings)
"""


def card(tmp_path, **settings):
    (tmp_path / "faulty.py").write_text(SYSTEM)
    environment = {"kind": "python", "interpreter": sys.executable, "python_path": [str(tmp_path)],
                   "memory_limit_gb": 2.0, "step_timeout_s": 1.0}  # fmt: skip
    where = {"repaired": str(tmp_path / "repaired"), "starts": str(tmp_path / "starts")}
    return SystemCard(name="faulty", title="Faulty", family="full_duplex", licence="MIT", adapter="faulty:create",
                      settings={**where, **settings}, environment=environment)  # fmt: skip


def items(workspace):
    rows = []
    blobs = BlobStore(workspace.store)
    for name, level in LEVELS.items():
        samples = to_pcm16(np.full((RATE // 2, 1), level, dtype=np.float32))
        source = blobs.put_audio(samples, RATE)
        stimulus = Stimulus("multiparty", blobs.slice_of(source, samples, RATE, 0, len(samples)))
        rows.append({"item_id": name, "protocol": "multiparty", "stimulus_digest": stimulus_digest(stimulus),
                     "stimulus": to_json(stimulus), "live_s": 0.5})  # fmt: skip
    return pl.DataFrame(rows)


@pytest.fixture
def workspace(small_workspace, tmp_path):
    return small_workspace(tmp_path / "data")


@pytest.fixture
def patient_elsewhere(monkeypatch, tmp_path):
    """The card's time for a step is short, and holds where the system hangs alone: a machine may be busy."""
    asked = RemoteSystem.request

    def request(self, header, arrays, timeout_s):
        level = round(float(np.abs(arrays[0]).max()), 1) if header["kind"] == "step" else 0.0
        hangs = level == LEVELS["hangs"] and not (tmp_path / "repaired").exists()
        return asked(self, header, arrays, timeout_s if hangs else 240.0)

    monkeypatch.setattr(RemoteSystem, "request", request)


def by_item(frame):
    return {row["item_id"]: row for row in frame.iter_rows(named=True)}


def test_each_fault_ends_in_its_outcome_the_rest_goes_on_and_a_rerun_tries_just_these(
    workspace, tmp_path, patient_elsewhere
):
    table = items(workspace)
    first = by_item(rollouts(workspace, "multiparty", table, card(tmp_path)).frame)
    assert {name: row["outcome"] for name, row in first.items()} == {
        "well": "completed", "dies": "transport_error", "hangs": "transport_error", "out of memory": "transport_error",
        "floods": "transport_error", "odd": "refused",
    }  # fmt: skip
    reasons = {name: row["reason"] for name, row in first.items()}
    assert "ended with status 7: CUDA error: device-side assert" in reasons["dies"]
    assert "did not answer 'step' within 1 s" in reasons["hangs"]
    assert "step_timeout_s" in reasons["hangs"]
    assert "memory_limit_gb" in reasons["out of memory"]
    assert "MemoryError" in reasons["out of memory"]
    assert "MB before, which were dropped" in reasons["floods"]
    assert len(reasons["floods"]) < 6000
    assert "100" in reasons["odd"]
    assert first["well"]["attempts"] == 1
    assert first["dies"]["attempts"] == workspace.profile.rollout.attempts

    (tmp_path / "repaired").touch()
    again = rollouts(workspace, "multiparty", table, card(tmp_path))
    assert {row["outcome"] for row in again.frame.iter_rows(named=True)} == {"completed"}
    assert (again.counts["computed"], again.counts["reused"]) == (5, 1)


def test_a_system_that_cannot_be_made_is_tried_once_and_named_in_every_row(workspace, tmp_path):
    result = rollouts(workspace, "multiparty", items(workspace), card(tmp_path, broken=True))
    assert Counter(result.frame["outcome"]) == {"transport_error": len(LEVELS)}
    assert all("model.safetensors is not there" in reason for reason in result.frame["reason"])
    assert (tmp_path / "starts").read_text() == "x"
    assert not rollout_ledger(workspace, "multiparty", "faulty").finished()


def test_a_system_whose_environment_is_not_made_says_how_to_make_it(workspace, tmp_path):
    made = card(tmp_path)
    unmade = made.environment.model_copy(update={"interpreter": None, "lock": "x.txt", "lock_sha256": "a" * 64})
    with pytest.raises(ValueError, match="duplex-bench systems setup faulty"):
        rollouts(workspace, "multiparty", items(workspace), made.model_copy(update={"environment": unmade}))
