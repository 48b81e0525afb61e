import numpy as np
import pytest

from duplex_bench.contract.types import OpenRequest, SessionStats, Spec, checked_unit, refuse_unsupported
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.object_store import FolderStore


class ScriptedSystem:
    """Calls ``behave(call, unit)`` for each unit and returns its outputs; remembers what it was told and fed."""

    def __init__(self, spec: Spec, behave) -> None:
        self.spec = spec
        self.behave = behave
        self.requests: list[OpenRequest] = []
        self.fed: list[np.ndarray] = []
        self.closed = 0

    def new_session(self):
        return _Session(self)


class _Session:
    def __init__(self, system: ScriptedSystem) -> None:
        self.system = system
        self.calls = 0

    def open(self, request: OpenRequest) -> None:
        refuse_unsupported(request, self.system.spec)
        self.system.requests.append(request)
        self.system.fed.clear()

    def step(self, unit):
        checked_unit(unit, self.system.spec)
        self.system.fed.append(unit.copy())
        self.calls += 1
        return self.system.behave(self.calls - 1, unit)

    def close(self) -> SessionStats:
        self.system.closed += 1
        return SessionStats(units=self.calls)


@pytest.fixture
def scripted():
    return ScriptedSystem


@pytest.fixture
def blobs(tmp_path):
    return BlobStore(FolderStore(tmp_path / "blobs"))
