"""What the player plays and draws: one two-channel file for each rollout, and waveform peaks."""

import base64
import io
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import soundfile

from duplex_bench.audio import files
from duplex_bench.audio.resample import resample
from duplex_bench.records.audio import AudioSlice
from duplex_bench.storage.blobs import BlobStore, from_pcm16, to_pcm16
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.object_store import FolderStore

MEDIA = "media"
_PEAK_BLOCK_S = 10.0
PCM = npt.NDArray[np.int16]


@dataclass(frozen=True, slots=True)
class Media:
    """A file of the report (path relative to it), its length in seconds, and base64 peaks of both channels.

    ``heard`` is None where the build leaves out what systems heard.
    """

    path: str
    duration_s: float
    heard: str | None
    system: str | None


def peaks(samples: PCM, sample_rate_hz: int, per_s: int) -> str:
    """Extremes of a waveform as base64 of int8 pairs (low, high), ``per_s`` pairs a second.

    Args:
        samples: PCM16 (n,).
        sample_rate_hz: rate of the samples.
        per_s: pairs a second.

    Returns:
        base64 of int8 (2k,), full scale 127; k = ceil(n * per_s / rate). Empty audio gives an empty string.
    """
    return base64.b64encode(_extremes(samples, sample_rate_hz, per_s)).decode("ascii")


def _extremes(samples: PCM, sample_rate_hz: int, per_s: int) -> bytes:
    n = samples.shape[0]
    if n == 0:
        return b""
    count = -(-n * per_s // sample_rate_hz)
    starts = np.arange(count, dtype=np.int64) * sample_rate_hz // per_s
    low, high = np.minimum.reduceat(samples, starts), np.maximum.reduceat(samples, starts)
    pairs = np.stack([low, high], axis=1).astype(np.float64) * (127.0 / 32768.0)
    return np.rint(pairs).astype(np.int8).tobytes()


def make_media(
    heard: AudioSlice | None,
    listener_audio: str | None,
    *,
    blobs: BlobStore,
    folder: Path,
    earlier: Path | None,
    timeline_s: float,
    peaks_per_s: int,
) -> Media | None:
    """Write the player's file: left what the system heard, right what a listener heard from it; padded to one length.

    Where both name one blob it is a two-channel recording, and is played as it is, however long.

    Args:
        heard: the stimulus' live stream, or None to leave it out (the file is then mono: the system alone).
        listener_audio: blob digest of the system's audio, or None where there is none (it is then silence).
        blobs: where both lie.
        folder: the report being built; the file goes to its ``media/``.
        earlier: the report that is being replaced: a file of the same content is linked, not encoded again.
        timeline_s: length of the listener timeline.
        peaks_per_s: waveform resolution.

    Returns:
        The file and its peaks, or None when there is nothing to hear.

    Raises:
        KeyError: a blob is not stored.
    """
    if heard is None and listener_audio is None:
        return None
    if heard is not None and heard.source == listener_audio:
        return _as_recorded(heard, blobs=blobs, folder=folder, peaks_per_s=peaks_per_s)
    rate = heard.sample_rate_hz if heard else 0
    left: PCM | None = blobs.read_slice(heard) if heard else None
    right = np.zeros(0, np.int16)
    if listener_audio is not None:
        stored, stored_rate = blobs.read_audio(listener_audio)
        right, rate = _at_rate(stored[:, 0], stored_rate, rate or stored_rate), rate or stored_rate
    length = max(right.shape[0], 0 if left is None else left.shape[0], round(timeline_s * rate))
    right = _padded(right, length)
    channels = right[:, None] if left is None else np.stack([_padded(left, length), right], axis=1)
    name = digest_value("media/1", heard.content if heard else None, listener_audio, rate, length)[:24]
    path = f"{MEDIA}/{name}.flac"
    _place(channels, rate, folder / path, None if earlier is None else earlier / path)
    return Media(
        path=path,
        duration_s=length / rate,
        heard=None if left is None else peaks(left, rate, peaks_per_s),
        system=peaks(right, rate, peaks_per_s) if listener_audio is not None else None,
    )


def stored_media(listener_audio: str | None, blobs: BlobStore, folder: Path) -> Media | None:
    """The system's own audio as it is stored, linked into the report: nothing is decoded, so there are no peaks.

    Raises:
        KeyError: the blob is not stored.
    """
    if listener_audio is None:
        return None
    path = f"{MEDIA}/{listener_audio[:24]}.flac"
    _place_stored(listener_audio, blobs, folder / path)
    return Media(path=path, duration_s=0.0, heard=None, system=None)


def peaks_of(heard: AudioSlice, blobs: BlobStore, peaks_per_s: int) -> str:
    """``peaks`` of what a system heard, where no file of the report holds it."""
    return peaks(blobs.read_slice(heard), heard.sample_rate_hz, peaks_per_s)


def _place_stored(digest: str, blobs: BlobStore, target: Path) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(blobs.store, FolderStore):
        _link(blobs.store.path(blobs.key(digest, "flac")), target)
    else:
        target.write_bytes(blobs.get(digest, "flac"))


def _as_recorded(heard: AudioSlice, *, blobs: BlobStore, folder: Path, peaks_per_s: int) -> Media:
    path = f"{MEDIA}/{heard.source[:24]}.flac"
    target = folder / path
    _place_stored(heard.source, blobs, target)
    found: tuple[list[bytes], list[bytes]] = ([], [])
    # Blocks of whole seconds, so that peaks of blocks put together are those of the whole.
    for block in files.blocks(target, _PEAK_BLOCK_S):
        for channel, parts in enumerate(found):
            parts.append(_extremes(to_pcm16(block[:, channel]), heard.sample_rate_hz, peaks_per_s))
    left, right = (base64.b64encode(b"".join(parts)).decode("ascii") for parts in found)
    return Media(path=path, duration_s=heard.n_samples / heard.sample_rate_hz, heard=left, system=right)


def _at_rate(samples: PCM, from_hz: int, to_hz: int) -> PCM:
    return samples if from_hz == to_hz else to_pcm16(resample(from_pcm16(samples), from_hz, to_hz))


def _padded(samples: PCM, length: int) -> PCM:
    return np.pad(samples, (0, length - samples.shape[0]))


def _place(channels: PCM, sample_rate_hz: int, target: Path, earlier: Path | None) -> None:
    if target.exists():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if earlier is not None and earlier.is_file():
        _link(earlier, target)
        return
    buffer = io.BytesIO()
    soundfile.write(buffer, channels, sample_rate_hz, format="FLAC", subtype="PCM_16")
    target.write_bytes(buffer.getvalue())


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
