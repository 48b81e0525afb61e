"""Audio files: probing, reading whole or in blocks, and writing whole or not at all."""

import io
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import soundfile

from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.storage.object_store import FolderStore

Audio = npt.NDArray[np.float32]

_FULL_SCALE: Final = 32766.5 / 32768
# Peak-normalised speech touches full scale now and then; a flat top does so for a share of all samples (ours).
_CLIPPED_SHARE: Final = 1e-3
_NARROW_BAND_HZ: Final = 8000
# A WAV written to a pipe carries one of these in place of a length that was not yet known.
_UNKNOWN_LENGTHS: Final = {0, 0xFFFFFFFF}


class AudioFileError(ValueError):
    """An audio file cannot be used; the message names the file, what is wrong, and the remedy."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")
        self.path = path


@dataclass(frozen=True, slots=True)
class AudioInfo:
    """What a file's header says. ``n_samples`` counts per channel; ``subtype`` is libsndfile's name, e.g. PCM_16."""

    sample_rate_hz: int
    channels: int
    n_samples: int
    subtype: str

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return self.n_samples / self.sample_rate_hz


@dataclass(frozen=True, slots=True)
class AudioWarning:
    """Audio that can be used, with less trust: ``value`` is a share of samples (clipped) or a rate in Hz."""

    kind: Literal["clipped", "narrow_band"]
    value: float
    message: str


def probe(path: Path) -> AudioInfo:
    """Rate, channels, length and sample format of a file, without reading its samples.

    Raises:
        AudioFileError: missing, not audio, cut short, or without samples.
    """
    with _opened(path) as stream:
        return _info(stream, Path(path))


def read(path: Path, *, channels: int | None = None, max_duration_s: float | None = None) -> tuple[Audio, int]:
    """All samples of a file.

    Args:
        path: WAV, FLAC, OGG or another format that libsndfile reads.
        channels: number of channels the caller can use; None takes any.
        max_duration_s: refuse longer files, which would not fit in memory.

    Returns:
        float32 (n, channels) with full scale 1.0, and the rate in Hz.

    Raises:
        AudioFileError: as ``probe``; or NaN or infinite samples, another number of channels, too long.
    """
    path = Path(path)
    with _opened(path) as stream:
        info = _info(stream, path)
        if channels is not None and info.channels != channels:
            raise AudioFileError(
                path, f"has {_count(info.channels, 'channel')}", f"give a file with {_count(channels, 'channel')}"
            )
        if max_duration_s is not None and info.duration_s > max_duration_s:
            raise AudioFileError(
                path, f"lasts {info.duration_s:.1f} s, more than {max_duration_s:g} s", "cut it, or read it in blocks"
            )
        samples = _next_block(stream, path, info.n_samples, 0)
        if len(samples) != info.n_samples:
            raise _cut_short(path)
    return samples, info.sample_rate_hz


def blocks(path: Path, block_s: float = 10.0) -> Iterator[Audio]:
    """Consecutive blocks of a file, for recordings of hours: float32 (m, channels), all but the last ``block_s`` long.

    Raises:
        AudioFileError: as ``read``, at the block where it is found.
    """
    path = Path(path)
    if not block_s > 0:
        raise ValueError(f"block_s {block_s}: give more than 0 seconds")
    with _opened(path) as stream:
        info = _info(stream, path)
        size = max(1, round(block_s * info.sample_rate_hz))
        done = 0
        while done < info.n_samples:
            block = _next_block(stream, path, size, done)
            if len(block) == 0:
                raise _cut_short(path)
            yield block
            done += len(block)


def find_warnings(samples: npt.NDArray[Any], sample_rate_hz: int) -> list[AudioWarning]:
    """What makes usable float audio (n,) or (n, channels) less trustworthy: clipping, telephone band."""
    return warnings_of(n_at_full_scale(samples) / max(samples.size, 1), sample_rate_hz)


def n_at_full_scale(samples: npt.NDArray[Any]) -> int:
    """How many samples of float audio touch full scale: counted block by block in recordings of hours."""
    return int((np.abs(samples) >= _FULL_SCALE).sum())


def warnings_of(share_at_full_scale: float, sample_rate_hz: int) -> list[AudioWarning]:
    """As ``find_warnings``, from the share of samples at full scale."""
    warnings = []
    if share_at_full_scale >= _CLIPPED_SHARE:
        message = f"{share_at_full_scale:.1%} of the samples are at full scale: clipped"
        warnings.append(AudioWarning("clipped", share_at_full_scale, message))
    if sample_rate_hz <= _NARROW_BAND_HZ:
        message = f"{sample_rate_hz} Hz audio holds only the telephone band: words are recognised less well"
        warnings.append(AudioWarning("narrow_band", float(sample_rate_hz), message))
    return warnings


def write_atomic(path: Path, samples: npt.NDArray[Any], sample_rate_hz: int) -> None:
    """Write a PCM16 file, whole or not at all; the suffix names the format (.wav or .flac).

    Args:
        path: target; its folder is made.
        samples: (n,) or (n, channels), float with full scale 1.0, or int16 which is written as it is.
        sample_rate_hz: samples a second.

    Raises:
        AudioFileError: not finite, beyond full scale, or another suffix.
        StorageFullError: no space left; nothing half-written stays.
    """
    path = Path(path)
    if path.suffix.lower() not in {".wav", ".flac"}:
        raise AudioFileError(path, "is neither .wav nor .flac", "name it so")
    if samples.dtype != np.int16:
        if not np.isfinite(samples).all():
            raise AudioFileError(path, "samples are NaN or infinite", "repair the audio before writing it")
        peak = float(np.abs(samples).max(initial=0.0))
        if peak > 1.0:
            raise AudioFileError(path, f"peak {peak:.3f} is beyond full scale", "normalise before writing")
        samples = to_pcm16(samples)
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, sample_rate_hz, format=path.suffix[1:].upper(), subtype="PCM_16")
    FolderStore(path.parent).put(path.name, buffer.getvalue())


def _opened(path: Path) -> Any:
    path = Path(path)
    if path.is_dir():
        raise AudioFileError(path, "is a folder", "name a recording in it")
    if not path.is_file():
        raise AudioFileError(path, "no such file", "check the name")
    if path.stat().st_size == 0:
        raise AudioFileError(path, "is empty (0 bytes)", "export or download it again")
    _refuse_cut_wav(path)
    try:
        return soundfile.SoundFile(path)
    except soundfile.LibsndfileError as error:
        raise AudioFileError(path, f"cannot be read as audio ({error})", "export it again as WAV or FLAC") from error


def _refuse_cut_wav(path: Path) -> None:
    """Libsndfile reads a WAV of which the end is missing as a shorter one: a half copy must not pass for a whole."""
    with path.open("rb") as stream:
        header = stream.read(12)
    if len(header) < 12 or header[:4] != b"RIFF" or header[8:12] != b"WAVE":
        return
    (promised,) = struct.unpack("<I", header[4:8])
    # One byte of slack: an odd last chunk may lack its padding.
    if promised not in _UNKNOWN_LENGTHS and promised + 8 > path.stat().st_size + 1:
        raise _cut_short(path)


def _info(stream: Any, path: Path) -> AudioInfo:
    if stream.frames == 0:
        size = path.stat().st_size
        raise AudioFileError(path, f"holds no samples (only a header, {size} bytes)", "export or download it again")
    return AudioInfo(int(stream.samplerate), int(stream.channels), int(stream.frames), str(stream.subtype))


def _next_block(stream: Any, path: Path, size: int, offset: int) -> Audio:
    try:
        block: Audio = stream.read(size, dtype="float32", always_2d=True)
    except soundfile.LibsndfileError as error:
        raise AudioFileError(path, f"breaks off after sample {offset} ({error})", "export it again") from error
    bad = ~np.isfinite(block).all(axis=1)
    if bad.any():
        first = offset + int(np.flatnonzero(bad)[0])
        raise AudioFileError(path, f"sample {first} is NaN or infinite", "repair it or export it again as PCM")
    return block


def _cut_short(path: Path) -> AudioFileError:
    return AudioFileError(path, "ends before its header says (cut short)", "copy or download it again")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
