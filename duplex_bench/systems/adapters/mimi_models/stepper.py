"""The vendor's generator and codec, one frame a call, and frames that they are forced through.

At call c the model hears user frame c, and makes text and semantic code of frame c + 1 and acoustic codes of frame c:
those are delayed by one. Call 0 is lost on every row and returns nothing; call c returns frame c.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.systems.adapters.mimi_models import grid

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from duplex_bench.systems.adapters.mimi_models.checkpoint import Loaded

    Samples = npt.NDArray[np.float32]

SAMPLING = ("use_sampling", "temp", "temp_text", "top_k", "top_k_text")
N_CODES = 8
# Padding, and the controls that end or begin a text: none is a word.
_SILENT_TOKENS = frozenset({grid.END_OF_PAD, 1, 2, grid.PAD})
_WARM_UP_FRAMES = 4


@dataclass(frozen=True)
class ForcedFrames:
    """Frames of a conversation that was held, the first of which is only heard.

    Attributes:
        text: Token of each frame.
        own: The model's codes, int64 (8, n), undelayed.
        heard: The user's codes, int64 (8, n), undelayed.
    """

    text: Sequence[int]
    own: Any
    heard: Any

    def __len__(self) -> int:
        return len(self.text)


class Stepper:
    """One state on the device, which sessions take over from each other.

    Args:
        loaded: Codec, language model that makes the eight codes of its own side, tokenizer.
        device: As torch names it.
        sampling: Defaults for every name of ``SAMPLING``.
        threads: Of torch on the CPU.
    """

    def __init__(self, loaded: Loaded, device: str, sampling: Mapping[str, Any], threads: int) -> None:
        import torch
        from moshi.models import LMGen

        torch.set_num_threads(threads)
        self.torch = torch
        self.loaded = loaded
        self.device = device
        self.sampling = dict(sampling)
        self.forced = _Forced()
        # A checkpoint may demand what is no matter of taste, such as guidance; sampling is the card's.
        demanded = {name: value for name, value in loaded.generation.items() if name not in SAMPLING}
        self.generator = LMGen(
            loaded.lm, on_text_hook=self.forced.set_text, on_audio_hook=self.forced.set_audio,
            **self.sampling, **demanded,
        )  # fmt: skip
        with torch.no_grad():
            loaded.mimi.streaming_forever(1)
            self.generator.streaming_forever(1)
            for _ in range(_WARM_UP_FRAMES):
                self.step(np.zeros(grid.FRAME_SAMPLES, dtype=np.float32))

    def reset(self, seed: int, sampling: Mapping[str, Any]) -> None:
        """A fresh state, with its own seed: the package draws from torch's global generator."""
        for name in SAMPLING:
            setattr(self.generator, name, sampling.get(name, self.sampling[name]))
        self.torch.manual_seed(seed % 2**63)
        self.loaded.mimi.reset_streaming()
        self.generator.reset_streaming()
        self.forced.clear()

    def codes_of(self, frames: Samples) -> Any:
        """Codes of frames (n, 1920) as int64 (8, n), from a fresh codec; its state is reset before and after."""
        self.loaded.mimi.reset_streaming()
        codes = self.heard(frames)
        self.loaded.mimi.reset_streaming()
        return codes

    def heard(self, frames: Samples) -> Any:
        """Codes of frames (n, 1920) as int64 (8, n): what the stream goes on from."""
        with self.torch.no_grad():
            codes = [self.loaded.mimi.encode(self._tensor(frame)) for frame in frames]
        return self.torch.cat(codes, dim=-1)[0]

    def step(self, frame: Samples) -> tuple[list[int], Samples] | None:
        """Feed a frame; the tokens (text, then eight codes) and audio of the frame that comes back, if one does."""
        with self.torch.no_grad():
            tokens = self.generator.step(self.loaded.mimi.encode(self._tensor(frame)))
            if tokens is None:
                return None
            pcm = self.loaded.mimi.decode(tokens[:, 1:])
        samples = pcm[0, 0].float().cpu().numpy().clip(-1.0, 1.0).astype(np.float32)
        return [int(token) for token in tokens[0, :, 0]], samples

    def force(self, frames: ForcedFrames, spoken_from: int = 1) -> None:
        """Take the model through ``frames``; the frame after them is its own.

        Args:
            frames: What was said and heard; of the first one only what was heard and the acoustic codes count.
            spoken_from: The first frame whose sound the decoder speaks, unheard: what comes next goes on from it.

        Raises:
            RuntimeError: A frame came back as something else.
        """
        last = len(frames) - 1
        for call in range(last + 1):
            is_end = call == last
            self.forced.text = None if is_end else int(frames.text[call + 1])
            self.forced.semantic = None if is_end else frames.own[0, call + 1]
            self.forced.acoustic = frames.own[1:, call]
            with self.torch.no_grad():
                tokens = self.generator.step(frames.heard[None, :, call : call + 1])
                if tokens is not None and call >= spoken_from:
                    self.loaded.mimi.decode(tokens[:, 1:])
            if call:
                _check_forced(tokens, call, int(frames.text[call]), frames.own[:, call])
        self.forced.clear()

    def piece(self, token: int) -> str:
        """The text of a token; empty for padding."""
        if token in _SILENT_TOKENS:
            return ""
        return str(self.loaded.tokenizer.id_to_piece(token)).replace("\u2581", " ")

    def encode(self, text: str) -> list[int]:
        """Token ids of a text."""
        return [int(token) for token in self.loaded.tokenizer.encode(text)]

    def _tensor(self, frame: Samples) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(frame)).to(self.device)[None, None]


class _Forced:
    """What the next step's tokens are overwritten with, in place, by the package's own hooks."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.text: int | None = None
        self.semantic: Any = None
        self.acoustic: Any = None

    def set_text(self, token: Any) -> None:
        """Called with the sampled text token, int64 (1,)."""
        if self.text is not None:
            token.fill_(self.text)

    def set_audio(self, codes: Any) -> None:
        """Called with the sampled codes, int64 (1, 8)."""
        if self.semantic is not None:
            codes[:, 0] = self.semantic
        if self.acoustic is not None:
            codes[:, 1:] = self.acoustic


def quiet_compiler() -> None:
    """Keep the package from compiling, before it is imported: it costs minutes and gains nothing on small frames."""
    os.environ.setdefault("NO_TORCH_COMPILE", "1")


def _check_forced(tokens: Any, frame: int, text: int, codes: Any) -> None:
    wanted = [text, *(int(code) for code in codes)]
    made = None if tokens is None else [int(token) for token in tokens[0, :, 0]]
    if made != wanted:
        raise RuntimeError(
            f"forced frame {frame} came back as {made}, not as the {wanted} it was forced to: this version of moshi "
            "places tokens in another way"
        )
