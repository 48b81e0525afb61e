"""PersonaPlex's voices (docs/systems/personaplex.md).

A recording is brought to -24 LUFS and shown frame by frame. A file of the vendor's is what the model read while it was
shown a voice, to be read again.

A voice file holds ``embeddings`` (n, 1, 1, dim), the input of positions 0 to n - 1, and ``cache`` (1, 17, columns), the
ring of tokens around position n in the vendor's generator: column p modulo the number of columns holds position p.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.contract.types import UnsupportedError
from duplex_bench.systems.adapters.mimi_models import grid
from duplex_bench.systems.adapters.mimi_models.loudness import at_loudness
from duplex_bench.systems.adapters.mimi_models.stepper import N_CODES, ForcedFrames

if TYPE_CHECKING:
    from duplex_bench.systems.adapters.mimi_models.stepper import Stepper

# The vendor's level of a recording.
LUFS = -24.0
# Ours: the vendor's voices last seconds, and each second takes the context of one.
LONGEST_S = 60.0
_ROWS = 1 + 2 * N_CODES


@dataclass(frozen=True)
class Voice:
    """A voice file as tensors on the device."""

    embeddings: Any
    cache: Any

    def __len__(self) -> int:
        return len(self.embeddings)


@dataclass(frozen=True)
class Recording:
    """A recorded voice: the model's codes of its frames, int64 (8, n)."""

    codes: Any

    def __len__(self) -> int:
        return int(self.codes.shape[1])


def load_voice(folder: Path, name: str, stepper: Stepper) -> Voice | Recording:
    """Read the file ``name`` of ``folder``: one of the vendor's (``.pt``), or a recording.

    Raises:
        UnsupportedError: No such voice, or a file that is neither.
    """
    path = folder / name
    # A name comes with a session: it may not lead out of the folder.
    if Path(name).name != name or not path.is_file():
        known = ", ".join(sorted(entry.name for entry in folder.iterdir() if entry.is_file())) or "none"
        raise UnsupportedError(f"no voice {name!r} in the folder of voices; there are: {known}")
    return _read_again(path, stepper) if path.suffix == ".pt" else _recorded(path, stepper)


def _recorded(path: Path, stepper: Stepper) -> Recording:
    """A recording as frames of the codec, from its start, the last one filled up with silence (as the vendor's)."""
    import sphn

    try:
        pcm, rate_hz = sphn.read(str(path))
        pcm = sphn.resample(pcm, src_sample_rate=rate_hz, dst_sample_rate=grid.RATE_HZ)
        if pcm.shape[0] != 1:
            raise ValueError(f"it has {pcm.shape[0]} channels, and a voice has one")
        if pcm.shape[1] > LONGEST_S * grid.RATE_HZ:
            raise ValueError(f"it lasts {pcm.shape[1] / grid.RATE_HZ:.0f} s, and at most {LONGEST_S:.0f} s are taken")
        loud = at_loudness(pcm[0], grid.RATE_HZ, LUFS)
    except (OSError, ValueError) as error:
        raise UnsupportedError(f"voice {path.name} cannot be used: {error}") from error
    frames = np.zeros((-(-len(loud) // grid.FRAME_SAMPLES), grid.FRAME_SAMPLES), dtype=np.float32)
    frames.reshape(-1)[: len(loud)] = loud
    return Recording(stepper.codes_of(frames))


def shown_frames(voice: Voice | Recording, heard: Any, stepper: Stepper) -> ForcedFrames:
    """The frames that a preamble begins with, after a reset.

    Args:
        voice: As it was loaded.
        heard: Codes of what the user is heard to do meanwhile, int64 (8, 1).
        stepper: The model, which reads a vendor's voice here and now.

    Returns:
        All frames of a recording; of a vendor's voice the last one, which is in the ring and not yet read.
    """
    if isinstance(voice, Voice):
        return replay(voice, stepper)
    n = len(voice)
    return ForcedFrames([grid.PAD] * n, voice.codes, heard.expand(-1, n))


def _read_again(path: Path, stepper: Stepper) -> Voice:
    name = path.name
    torch = stepper.torch
    try:
        state = torch.load(path, map_location=stepper.device, weights_only=True)
    except (OSError, EOFError, RuntimeError, ValueError, pickle.UnpicklingError) as error:
        raise UnsupportedError(f"voice {name} cannot be read: {type(error).__name__}: {error}") from error
    embeddings, cache = (state.get(key) for key in ("embeddings", "cache")) if isinstance(state, dict) else (None, None)
    dim, needed = stepper.loaded.lm.dim, stepper.generator.max_delay + 2
    if (
        not isinstance(embeddings, torch.Tensor)
        or not isinstance(cache, torch.Tensor)
        or embeddings.dim() != 4
        or tuple(embeddings.shape[1:]) != (1, 1, dim)
        or len(embeddings) <= stepper.generator.max_delay
        or tuple(cache.shape[:2]) != (1, _ROWS)
        or cache.shape[2] < needed
    ):
        raise UnsupportedError(
            f"voice {name} is not made for this model: embeddings (n, 1, 1, {dim}) and a cache (1, {_ROWS}, "
            f"{needed} or more) are wanted"
        )
    return Voice(embeddings.to(stepper.loaded.lm.dtype), cache.long())


def replay(voice: Voice, stepper: Stepper) -> ForcedFrames:
    """Let the model read a voice, straight after a reset.

    Returns:
        The frame that is next to be heard: the voice's last, of which tokens are in the ring and not yet read.
    """
    torch, generator, n = stepper.torch, stepper.generator, len(voice)
    with torch.no_grad():
        for embedding in voice.embeddings:
            stepper.loaded.lm.transformer(embedding)
    state = generator._streaming_state
    here, after = (voice.cache[:, :, position % voice.cache.shape[2]] for position in (n, n + 1))
    state.cache[:, :, n % state.cache.shape[2]] = here
    state.offsets.fill_(n)
    state.offset_cpu = n
    # Codes that the model delays stand one position later.
    delays = generator.delays_cuda[None, :]
    frame = torch.where(delays > 0, after, here)[0]
    return ForcedFrames([int(frame[0])], frame[1 : 1 + N_CODES, None], frame[1 + N_CODES :, None])
