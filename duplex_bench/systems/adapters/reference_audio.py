"""A recording that lends a model its voice, in the forms in which servers want it."""

import base64
import io
from pathlib import Path
from typing import Final

import numpy as np

from duplex_bench.audio import files
from duplex_bench.audio.resample import resample
from duplex_bench.contract.push import RefusedError
from duplex_bench.rollout.playback import Samples

RATE_HZ: Final = 16_000
MOST_S: Final = 60.0


def load(path: str) -> Samples:
    """A recording as float32 (n,) at 16 kHz; channels are averaged.

    Raises:
        RefusedError: It cannot be read, or is longer than a minute.
    """
    try:
        samples, rate_hz = files.read(Path(path).expanduser(), max_duration_s=MOST_S)
    except (ValueError, OSError) as error:
        raise RefusedError(f"the recording of the model's voice cannot be used: {error}") from None
    mono = samples.mean(axis=1) if samples.ndim == 2 else samples
    return resample(np.asarray(mono, dtype=np.float32), rate_hz, RATE_HZ)


def as_wav(samples: Samples) -> str:
    """Base64 of a WAV file of PCM16 at 16 kHz."""
    import soundfile

    buffer = io.BytesIO()
    soundfile.write(buffer, samples, RATE_HZ, format="WAV", subtype="PCM_16")
    return base64.b64encode(buffer.getvalue()).decode("ascii")


def as_floats(samples: Samples) -> str:
    """Base64 of float32, little endian."""
    return base64.b64encode(samples.astype("<f4").tobytes()).decode("ascii")


def from_floats(data: object) -> Samples | None:
    """Audio from base64 of float32, little endian; None if it is none."""
    try:
        raw = base64.b64decode(data if isinstance(data, str) else "?", validate=True)
    except ValueError:
        return None
    if len(raw) % 4:
        return None
    samples = np.frombuffer(raw, dtype="<f4").astype(np.float32)
    return samples if np.isfinite(samples).all() else None
