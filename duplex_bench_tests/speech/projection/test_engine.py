"""The projection says what it lacks, without torch and without weights."""

import importlib.util

import pytest

from duplex_bench.speech import engines
from duplex_bench.speech.projection.engine import ProjectionError, VoiceActivityProjection
from duplex_bench.speech.projection.settings import ProjectionSettings

pytestmark = pytest.mark.unit


def test_weights_that_are_not_there_are_named(tmp_path):
    with pytest.raises(ProjectionError, match=r"absent\.pt.*name a checkpoint"):
        engines.activity_projection(ProjectionSettings(str(tmp_path / "absent.pt")))


def test_a_machine_without_torch_is_told_what_to_install(tmp_path, monkeypatch):
    weights = tmp_path / "vap.pt"
    weights.write_bytes(b"anything")
    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "torch" else found(name, *more)
    )
    with pytest.raises(ProjectionError, match=r"pip install 'duplex-bench\[models\]'"):
        VoiceActivityProjection(ProjectionSettings(str(weights)))
