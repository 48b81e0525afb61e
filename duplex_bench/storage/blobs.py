"""Content-addressed audio and event logs, on top of an object store."""

import io
from typing import Literal

import numpy as np
import numpy.typing as npt
import soundfile

from duplex_bench.records.audio import AudioSlice
from duplex_bench.storage.digests import digest_bytes, digest_pcm16
from duplex_bench.storage.object_store import ObjectStore

PCM16_SCALE = 32768.0


def to_pcm16(samples: npt.NDArray[np.floating]) -> npt.NDArray[np.int16]:
    """Float samples in [-1, 1] as PCM16; beyond full scale they are clipped."""
    scaled = np.rint(np.asarray(samples, dtype=np.float64) * PCM16_SCALE)
    return np.clip(scaled, -PCM16_SCALE, PCM16_SCALE - 1).astype(np.int16)


def from_pcm16(samples: npt.NDArray[np.int16]) -> npt.NDArray[np.float32]:
    """PCM16 as float32 in [-1, 1)."""
    return (samples.astype(np.float32) / np.float32(PCM16_SCALE)).astype(np.float32)


class BlobDamagedError(ValueError):
    """A stored blob's bytes are not those that its name says."""


class BlobStore:
    """Blobs named by the SHA-256 of their bytes: ``blobs/<aa>/<digest>.<kind>``. Writing twice costs one look-up."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store

    def key(self, digest: str, kind: str) -> str:
        """Object key of a blob."""
        return f"blobs/{digest[:2]}/{digest}.{kind}"

    def put(self, data: bytes, kind: str) -> str:
        """Store bytes and return their digest."""
        digest = digest_bytes(data)
        self.store.put_if_absent(self.key(digest, kind), data)
        return digest

    def get(self, digest: str, kind: str) -> bytes:
        """The bytes of a blob.

        Raises:
            KeyError: it is not stored.
            BlobDamagedError: what is stored is not what was written.
        """
        data = self.store.get(self.key(digest, kind))
        if digest_bytes(data) != digest:
            raise BlobDamagedError(f"{self.key(digest, kind)} is damaged in the store: delete it and run again")
        return data

    def put_audio(
        self, samples: npt.NDArray[np.int16], sample_rate_hz: int, kind: Literal["flac", "wav"] = "flac"
    ) -> str:
        """Store PCM16 audio, (n,) or (n, channels), losslessly, and return the digest of the file."""
        buffer = io.BytesIO()
        soundfile.write(buffer, samples, sample_rate_hz, format=kind.upper(), subtype="PCM_16")
        return self.put(buffer.getvalue(), kind)

    def read_audio(self, digest: str, kind: Literal["flac", "wav"] = "flac") -> tuple[npt.NDArray[np.int16], int]:
        """PCM16 samples (n, channels) and rate of a stored recording."""
        samples, rate = soundfile.read(io.BytesIO(self.get(digest, kind)), dtype="int16", always_2d=True)
        return samples, int(rate)

    def slice_of(
        self,
        source: str,
        samples: npt.NDArray[np.int16],
        sample_rate_hz: int,
        start: int,
        stop: int,
        channel: int = 0,
    ) -> AudioSlice:
        """A reference to ``[start, stop)`` of a stored recording whose samples (n, channels) are at hand."""
        part = samples[start:stop, channel]
        return AudioSlice(source, start, stop, sample_rate_hz, digest_pcm16(part, sample_rate_hz), channel)

    def read_slice(self, part: AudioSlice) -> npt.NDArray[np.int16]:
        """PCM16 samples (n,) of a slice."""
        with soundfile.SoundFile(io.BytesIO(self.get(part.source, "flac"))) as stream:
            stream.seek(part.start_sample)
            samples = stream.read(part.n_samples, dtype="int16", always_2d=True)
        channel: npt.NDArray[np.int16] = samples[:, part.channel]
        return channel
