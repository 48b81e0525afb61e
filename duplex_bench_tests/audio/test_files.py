import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex_bench.audio.files import AudioFileError, blocks, find_warnings, probe, read, write_atomic

pytestmark = pytest.mark.unit

NOISE = np.random.default_rng(1).uniform(-0.5, 0.5, (4000, 2)).astype(np.float32)


@pytest.fixture
def stereo(tmp_path: Path) -> Path:
    path = tmp_path / "stereo.wav"
    write_atomic(path, NOISE, 8000)
    return path


def test_what_is_written_is_read(stereo: Path) -> None:
    samples, rate = read(stereo)
    assert rate == 8000
    assert samples.dtype == np.float32
    np.testing.assert_allclose(samples, NOISE, atol=0.5001 / 32768)
    info = probe(stereo)
    assert (info.sample_rate_hz, info.channels, info.n_samples, info.subtype) == (8000, 2, 4000, "PCM_16")
    assert info.duration_s == 0.5


def test_pcm16_survives_unchanged(tmp_path: Path) -> None:
    pcm = np.array([-32768, -1, 0, 1, 32767], dtype=np.int16)
    write_atomic(tmp_path / "a.flac", pcm, 16000)
    samples, _ = read(tmp_path / "a.flac")
    write_atomic(tmp_path / "b.flac", samples[:, 0], 16000)
    np.testing.assert_array_equal(soundfile.read(tmp_path / "b.flac", dtype="int16")[0], pcm)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["a.flac", "b.flac"]


def test_blocks_join_to_the_whole(stereo: Path) -> None:
    parts = list(blocks(stereo, 0.07))
    assert {len(part) for part in parts[:-1]} == {560}
    np.testing.assert_array_equal(np.concatenate(parts), read(stereo)[0])


def make_missing(path: Path) -> None:
    pass


def make_zero_bytes(path: Path) -> None:
    path.write_bytes(b"")


def make_header_only(path: Path) -> None:
    """A WAV of extended format (fmt of 18 bytes, fact, data) that was closed before any sample came."""
    chunks = b"fmt " + struct.pack("<IHHIIHHH", 18, 3, 1, 48000, 192000, 4, 32, 0) + b"fact" + struct.pack("<II", 4, 0)
    path.write_bytes(b"RIFF" + struct.pack("<I", 50) + b"WAVE" + chunks + b"data" + struct.pack("<I", 0))


def make_corrupt(path: Path) -> None:
    path.write_bytes(b"this is no audio at all" * 20)


def make_cut_short(path: Path) -> None:
    write_atomic(path, NOISE, 8000)
    path.write_bytes(path.read_bytes()[:5000])


def make_nan(path: Path) -> None:
    samples = NOISE.copy()
    samples[1234, 1] = np.nan
    soundfile.write(path, samples, 8000, subtype="FLOAT")


def make_infinite(path: Path) -> None:
    samples = NOISE.copy()
    samples[1234, 0] = -np.inf
    soundfile.write(path, samples, 8000, subtype="FLOAT")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (make_missing, "no such file"),
        (make_zero_bytes, "0 bytes"),
        (make_header_only, r"no samples.*58 bytes"),
        (make_corrupt, "cannot be read as audio"),
        (make_cut_short, "cut short"),
        (make_nan, "sample 1234 is NaN"),
        (make_infinite, "sample 1234 is NaN or infinite"),
    ],
)
def test_bad_files_are_named_with_problem_and_remedy(tmp_path: Path, make, message: str) -> None:
    path = tmp_path / "user.wav"
    make(path)
    for use in (lambda: read(path), lambda: list(blocks(path, 0.1))):
        with pytest.raises(AudioFileError, match=message) as caught:
            use()
        assert str(path) in str(caught.value)
        assert ";" in str(caught.value)


def test_a_cut_flac_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.flac"
    write_atomic(path, NOISE, 8000)
    path.write_bytes(path.read_bytes()[:6000])
    with pytest.raises(AudioFileError, match=r"cut short|breaks off"):
        read(path)
    with pytest.raises(AudioFileError, match=r"cut short|breaks off"):
        list(blocks(path, 0.1))


def test_wrong_channels_and_too_long(stereo: Path) -> None:
    with pytest.raises(AudioFileError, match=r"has 2 channels; give a file with 1 channel$"):
        read(stereo, channels=1)
    with pytest.raises(AudioFileError, match=r"0\.5 s, more than 0\.4 s"):
        read(stereo, max_duration_s=0.4)
    assert read(stereo, channels=2, max_duration_s=0.5)[1] == 8000


def test_warnings() -> None:
    clipped = np.clip(NOISE * 4, -1, 1)
    assert [(w.kind, w.value > 0.1) for w in find_warnings(clipped, 24000)] == [("clipped", True)]
    assert [(w.kind, w.value) for w in find_warnings(NOISE, 8000)] == [("narrow_band", 8000.0)]
    one_peak = np.zeros(48000, np.float32)
    one_peak[7] = 1.0
    assert find_warnings(one_peak, 24000) == []


@pytest.mark.parametrize(
    ("name", "samples", "message"),
    [
        ("a.wav", np.array([1.2]), "beyond full scale"),
        ("a.wav", np.array([np.nan]), "NaN"),
        ("a.mp3", np.zeros(3), "neither"),
    ],
)
def test_what_cannot_be_written_leaves_nothing(tmp_path: Path, name: str, samples: np.ndarray, message: str) -> None:
    with pytest.raises(AudioFileError, match=message):
        write_atomic(tmp_path / name, samples, 8000)
    assert list(tmp_path.iterdir()) == []


def test_a_wav_written_to_a_pipe_has_no_length_and_is_read(stereo: Path) -> None:
    data = stereo.read_bytes()
    stereo.write_bytes(data[:4] + b"\xff\xff\xff\xff" + data[8:])
    assert len(read(stereo)[0]) == 4000
