"""The projection's flags through the stage: each recording is projected once, and without weights that is said."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.reporting.inputs import StandIn
from duplex_bench.speech import engines
from duplex_bench.speech.projection.engine import ProjectionError
from duplex_bench.speech.projection.settings import FloorProjection, ProjectionSettings
from duplex_bench.stages import conversation, projection
from duplex_bench.stages.review_source import RunMaterial
from duplex_bench.stages.stand_ins import stand_ins_of
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit


class LeftKeepsTheFloor:
    """Gives the left speaker everything, always."""

    def __init__(self, engine_id="left/1"):
        self.engine_id = engine_id
        self.heard = []

    def project(self, samples, sample_rate_hz):
        self.heard.append(samples.shape)
        n_frames = len(samples) * 50 // sample_rate_hz
        return FloorProjection(50.0, np.ones(n_frames, dtype=np.float32), np.ones(n_frames, dtype=np.float32))


@pytest.fixture
def labelled(quick_engines, small_workspace, tmp_path):
    """A workspace with the tables that flags are made of."""
    plain = small_workspace(tmp_path)
    sessions = conversation.lively_sessions(plain).frame
    filled = conversation.gap_fill(plain, sessions).frame
    return plain, conversation.engine_labels(plain, sessions, filled).frame, filled, sessions


def with_weights(workspace, path="weights.pt"):
    speech = replace(workspace.profile.speech, projection=ProjectionSettings(path))
    return Workspace(workspace.data, replace(workspace.profile, speech=speech))


def test_without_weights_there_are_no_such_flags_and_everybody_is_told(labelled):
    workspace, labels, filled, sessions = labelled
    result = conversation.review_flags(workspace, labels, filled, sessions)
    assert not result.frame["flag"].str.starts_with("projection").any()
    assert result.counts["projection"] == "none"
    assert result.note == projection.NO_PROJECTION
    assert any(one.role == "doubtful labels" and isinstance(one, StandIn) for one in stand_ins_of(workspace.profile))
    named = with_weights(workspace)
    assert not any(one.role == "doubtful labels" for one in stand_ins_of(named.profile))


def test_the_review_page_is_told_too(labelled):
    workspace, labels, filled, sessions = labelled
    flags = conversation.review_flags(workspace, labels, filled, sessions).frame
    tables = {"lively_sessions": sessions, "gap_fill": filled, "engine_labels": labels, "review_flags": flags}
    for given in (workspace, with_weights(workspace)):
        for name, frame in tables.items():
            write_frame(given.store, given.table_key(("conversation", name), None), frame)
        (entry,) = RunMaterial(given).sessions()
        told = RunMaterial(given).session(entry.session_id).flags_note
        assert told == ("" if given.profile.speech.projection.weights else projection.NOT_LOOKED_AT)


def test_every_turn_of_the_left_and_no_other_is_doubted(labelled, monkeypatch):
    workspace, labels, filled, sessions = labelled
    engine = LeftKeepsTheFloor()
    monkeypatch.setattr(engines, "activity_projection", lambda _settings: engine)
    named = with_weights(workspace)
    result = conversation.review_flags(named, labels, filled, sessions)
    duration_s = sessions["duration_s"][0]
    ended = labels.filter((labels["kind"] == "turn") & (labels["end_s"] < duration_s - 0.3))
    short = labels.filter((labels["kind"] == "backchannel") & (labels["speaker"] == "left"))
    found = result.frame.filter(result.frame["flag"] == "projection_keeps_floor")
    assert found.height == ended.filter(ended["speaker"] == "left").height > 0
    assert set(result.frame.filter(result.frame["flag"].str.starts_with("projection"))["speaker"]) == {"left"}
    assert result.frame.filter(result.frame["flag"] == "projection_hands_over").height == short.height
    assert (result.note, result.counts["projection"]) == ("", "left/1")
    assert [shape[1] for shape in engine.heard] == [2]


def test_a_recording_is_projected_once_by_one_engine(labelled, monkeypatch):
    workspace, labels, filled, sessions = labelled
    engine = LeftKeepsTheFloor()
    monkeypatch.setattr(engines, "activity_projection", lambda _settings: engine)
    named = with_weights(workspace)
    first = conversation.review_flags(named, labels, filled, sessions)
    again = conversation.review_flags(named, labels, filled, sessions)
    assert len(engine.heard) == 1
    assert again.frame.equals(first.frame)
    assert (first.counts["projected_now"], again.counts["projected_now"]) == (1, 0)
    monkeypatch.setattr(engines, "activity_projection", lambda _settings: LeftKeepsTheFloor("left/2"))
    assert conversation.review_flags(named, labels, filled, sessions).counts["projected_now"] == 1


def test_named_weights_that_are_not_there_stop_the_stage(labelled):
    workspace, labels, filled, sessions = labelled
    with pytest.raises(ProjectionError, match="nowhere"):
        conversation.review_flags(with_weights(workspace, "nowhere.pt"), labels, filled, sessions)


def test_a_session_that_cannot_be_projected_is_not_passed_over(labelled, monkeypatch):
    workspace, labels, filled, sessions = labelled
    engine = LeftKeepsTheFloor()
    monkeypatch.setattr(engine, "project", lambda *_: (_ for _ in ()).throw(ValueError("tensors do not fit")))
    monkeypatch.setattr(engines, "activity_projection", lambda _settings: engine)
    with pytest.raises(ValueError, match="do not fit"):
        conversation.review_flags(with_weights(workspace), labels, filled, sessions)


@pytest.mark.models
def test_a_network_in_torch_flags_through_the_stage(labelled, tmp_path):
    torch = pytest.importorskip("torch")
    workspace, labels, filled, sessions = labelled
    with np.load(Path(__file__).parents[1] / "speech" / "projection" / "vap_golden.npz") as stored:
        tensors = {name.removeprefix("tensor:"): torch.from_numpy(stored[name]) for name in stored if ":" in name}
    # A head that hears only that the left speaker will go on.
    number = 0b0000_1111
    tensors["vap_head.bias"][number] = 50.0
    torch.save(tensors, tmp_path / "left.pt")
    found = conversation.review_flags(with_weights(workspace, str(tmp_path / "left.pt")), labels, filled, sessions)
    doubted = found.frame.filter(found.frame["flag"].str.starts_with("projection"))
    assert doubted.height > 0
    assert set(doubted["speaker"]) == {"left"}
    assert str(found.counts["projection"]).startswith("vap/1 weights@")
