"""The network and its engine on random weights: ``make test-models``.

What is proved: that tensors of the published names give the numbers of the vendor's blocks, that long recordings are
cut as said, and that other files are refused. What is not: anything about how the released weights project.
"""

import io
import pickle

import numpy as np
import pytest

from duplex_bench.speech.projection.classes import FUTURE_BINS, NOW_BINS, first_speakers_share
from duplex_bench.speech.projection.engine import ProjectionError, VoiceActivityProjection
from duplex_bench.speech.projection.settings import ProjectionSettings

pytestmark = pytest.mark.models

RATE_HZ = 16_000


@pytest.fixture
def project(checkpoint):
    """Projects at the model's rate."""

    def run(samples, **settings):
        return VoiceActivityProjection(ProjectionSettings(str(checkpoint), **settings)).project(samples, RATE_HZ)

    return run


@pytest.fixture
def recording():
    """7.3 s of two people who take turns, as noise."""
    rng = np.random.default_rng(3)
    at_s = np.arange(round(7.3 * RATE_HZ)) / RATE_HZ
    loud = np.stack([at_s % 2 < 1.1, at_s % 2 > 0.9], axis=1)
    return (rng.normal(0, 0.1, loud.shape) * loud + rng.normal(0, 0.001, loud.shape)).astype(np.float32)


def test_the_numbers_are_those_of_the_vendors_blocks(golden, golden_tensors):
    import torch

    from duplex_bench.speech.projection.network import VapNetwork

    sound = torch.from_numpy(golden["waveform"].astype(np.float32) / 32768)
    with torch.inference_mode():
        found = VapNetwork(golden_tensors)(sound).numpy()
    assert found.shape == golden["probabilities"].shape == (24, 256)
    assert found == pytest.approx(golden["probabilities"], abs=1e-5)
    # The small constant of the shares is added elsewhere there.
    assert first_speakers_share(found, NOW_BINS) == pytest.approx(golden["now"][:, 0], abs=1e-4)
    assert first_speakers_share(found, FUTURE_BINS) == pytest.approx(golden["future"][:, 0], abs=1e-4)


def test_there_are_fifty_frames_a_second_at_any_rate(checkpoint, recording):
    engine = VoiceActivityProjection(ProjectionSettings(str(checkpoint)))
    for rate in (RATE_HZ, 24_000):
        floor = engine.project(recording, rate)
        assert floor.frame_rate_hz == 50.0
        assert len(floor.now) == len(floor.future) == len(recording) * 50 // rate
    assert np.all((floor.now > 0) & (floor.now < 1))
    assert engine.project(recording[:0], RATE_HZ).now.shape == (0,)


def test_a_long_recording_is_cut_into_stretches_with_their_context(project, recording):
    cut = project(recording, context_s=2.0, step_s=1.0)
    whole = project(recording, context_s=20.0, step_s=5.0)
    assert len(cut.now) == len(whole.now) == 365
    # The first stretch is heard from the start in both; a later one as if the recording began two seconds before it.
    assert cut.now[:150] == pytest.approx(whole.now[:150], abs=1e-5)
    alone = project(recording[RATE_HZ * 3 : RATE_HZ * 6], context_s=2.0, step_s=1.0)
    assert cut.now[250:300] == pytest.approx(alone.now[100:150], abs=1e-5)
    assert cut.now[200:] != pytest.approx(whole.now[200:], abs=1e-3)


def test_what_is_said_later_does_not_move_an_earlier_frame(project, recording):
    changed = recording.copy()
    changed[RATE_HZ * 4 :] = 0.0
    before, after = project(recording), project(changed)
    # The convolutions of the encoder look 15 ms ahead.
    assert before.now[:199] == pytest.approx(after.now[:199], abs=1e-6)
    assert before.now[205:] != pytest.approx(after.now[205:], abs=1e-6)


def test_the_same_sound_gives_the_same_bytes(project, recording):
    assert project(recording).now.tobytes() == project(recording).now.tobytes()


def test_older_checkpoints_are_read(golden_tensors, tmp_path, project, recording):
    import torch

    older = {
        "net." + name.replace("vap_head.", "vap_head.projection_head."): one for name, one in golden_tensors.items()
    }
    path = tmp_path / "older.ckpt"
    torch.save({"state_dict": older, "epoch": 9}, path)
    found = VoiceActivityProjection(ProjectionSettings(str(path))).project(recording, RATE_HZ)
    assert found.now == pytest.approx(project(recording).now, abs=1e-7)


def test_the_id_follows_the_weights(checkpoint, golden_tensors, tmp_path):
    import torch

    other = tmp_path / "other.pt"
    torch.save({**golden_tensors, "vap_head.bias": golden_tensors["vap_head.bias"] + 1}, other)
    ids = {VoiceActivityProjection(ProjectionSettings(str(path))).engine_id for path in (checkpoint, other)}
    assert len(ids) == 2
    assert all("torch==" in one and "context=20" in one for one in ids)


@pytest.mark.parametrize("change", ["missing", "unknown", "shape"])
def test_tensors_of_another_network_are_refused(change, golden_tensors, tmp_path, recording):
    import torch

    tensors = dict(golden_tensors)
    if change == "missing":
        del tensors["ar.layers.1.mha_cross.query.weight"]
    elif change == "unknown":
        tensors["encoder2.downsample.1.weight"] = torch.zeros(3)
    else:
        tensors["vap_head.weight"] = torch.zeros(256, 7)
    path = tmp_path / "wrong.pt"
    torch.save(tensors, path)
    told = {"missing": "mha_cross.query", "unknown": "encoder2", "shape": "do not fit"}[change]
    with pytest.raises(ValueError, match=told):
        VoiceActivityProjection(ProjectionSettings(str(path))).project(recording, RATE_HZ)


class Stranger:
    """An object that a checkpoint must not bring along."""


def test_a_file_that_could_run_code_is_not_loaded(golden_tensors, tmp_path, recording):
    import torch

    for name, content in (("objects.ckpt", {"state_dict": golden_tensors, "hparams": Stranger()}), ("list.pt", [1, 2])):
        path = tmp_path / name
        torch.save(content, path)
        with pytest.raises(ProjectionError, match=name):
            VoiceActivityProjection(ProjectionSettings(str(path))).project(recording, RATE_HZ)
    path = tmp_path / "text.pt"
    path.write_bytes(b"no checkpoint at all")
    with pytest.raises(ProjectionError, match=r"text\.pt"):
        VoiceActivityProjection(ProjectionSettings(str(path))).project(recording, RATE_HZ)
    buffer = io.BytesIO(pickle.dumps({"a": 1}))
    path.write_bytes(buffer.getvalue())
    with pytest.raises(ProjectionError):
        VoiceActivityProjection(ProjectionSettings(str(path))).project(recording, RATE_HZ)


@pytest.mark.parametrize("shape", [(100,), (100, 1), (100, 3)])
def test_sound_of_other_than_two_people_is_refused(shape, project):
    with pytest.raises(ValueError, match="two channels"):
        project(np.zeros(shape, dtype=np.float32))


def test_samples_that_are_no_numbers_are_refused(project, recording):
    recording[5, 1] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        project(recording)
