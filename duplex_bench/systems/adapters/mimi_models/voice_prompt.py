"""PersonaPlex's voices: what the model read while it was shown a voice, to be read again (docs/systems/personaplex.md).

A voice file holds ``embeddings`` (n, 1, 1, dim), the input of positions 0 to n - 1, and ``cache`` (1, 17, columns), the
ring of tokens around position n in the vendor's generator: column p modulo the number of columns holds position p.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duplex_bench.contract.types import UnsupportedError
from duplex_bench.systems.adapters.mimi_models.stepper import N_CODES, ForcedFrames

if TYPE_CHECKING:
    from duplex_bench.systems.adapters.mimi_models.stepper import Stepper

_ROWS = 1 + 2 * N_CODES


@dataclass(frozen=True)
class Voice:
    """A voice file as tensors on the device."""

    embeddings: Any
    cache: Any

    def __len__(self) -> int:
        return len(self.embeddings)


def load_voice(folder: Path, name: str, stepper: Stepper) -> Voice:
    """Read the file ``name`` of ``folder``.

    Raises:
        UnsupportedError: No such voice, a recording, or a file that is none of the vendor's.
    """
    path = folder / name
    # A name comes with a session: it may not lead out of the folder.
    if Path(name).name != name or not path.is_file():
        known = ", ".join(sorted(entry.name for entry in folder.glob("*.pt"))) or "none"
        raise UnsupportedError(f"no voice {name!r} in the folder of voices; there are: {known}")
    if path.suffix != ".pt":
        raise UnsupportedError(
            f"voice {name} is a recording: it has to be brought to -24 LUFS first, which this environment cannot: "
            "save it as a .pt with the vendor's --save-voice-prompt-embeddings"
        )
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
