"""Moshi, stepped frame by frame in its own environment with the vendor's package.

The model hears and speaks one frame of 80 ms a step. Its first step is lost on every row (it returns nothing and what
it was fed is dropped), so one frame of silence primes it. From then on step c returns the model's frame c: beside the
user's frame c in the timeline it was trained on. A user frame changes the seven acoustic codes of the frame returned
with it, and text and the semantic code from the next on.

A history is forced: at step c the text token and the semantic code of frame c + 1 are set and the acoustic codes of
frame c, since those are delayed by one; the user's codes are given undelayed.
"""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.contract.types import (
    HistoryPart,
    OpenRequest,
    Out,
    SessionStats,
    Spec,
    UnsupportedError,
    checked_unit,
    refuse_unsupported,
)
from duplex_bench.systems.adapters.mimi_models import grid, tiny
from duplex_bench.systems.adapters.mimi_models.checkpoint import Loaded, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]

# Padding, and the controls that end or begin a text: none is a word.
_SILENT_TOKENS = frozenset({grid.END_OF_PAD, 1, 2, grid.PAD})
_WARM_UP_FRAMES = 4
_SAMPLING = ("use_sampling", "temp", "temp_text", "top_k", "top_k_text")


@dataclass(frozen=True)
class MoshiSettings:
    """What a card may set; sampling as the package's own defaults.

    Attributes:
        model: Folder of a checkpoint, name of a hub repository in the local cache, or ``tiny`` for random weights.
        device, dtype: As torch names them; dtype is the language model's.
        use_sampling: False for the likeliest token each time.
        temp, top_k: Of audio codes.
        temp_text, top_k_text: Of text tokens.
        threads: Of torch on the CPU; one makes results the same everywhere.
        history: ``force`` a history through the model, or ``none``: not offered.
    """

    model: str
    device: str = "cuda"
    dtype: str = "bfloat16"
    use_sampling: bool = True
    temp: float = 0.8
    temp_text: float = 0.7
    top_k: int = 250
    top_k_text: int = 25
    threads: int = 1
    history: str = "force"

    @classmethod
    def from_card(cls, settings: Mapping[str, Any]) -> MoshiSettings:
        """Checked; raises ValueError that names what is unknown, missing or makes no sense."""
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(settings) - known)
        if unknown or "model" not in settings:
            raise ValueError(f"moshi: settings are {sorted(known)}, model is needed; unknown: {unknown or 'none'}")
        made = cls(**settings)
        if made.history not in ("force", "none"):
            raise ValueError(f"moshi: history is force or none, got {made.history!r}")
        if min(made.temp, made.temp_text) < 0 or min(made.top_k, made.top_k_text, made.threads) < 1:
            raise ValueError("moshi: temperatures cannot be negative, top_k, top_k_text and threads are at least 1")
        return made


class Moshi:
    """A ``System``. One state on the device: a session's ``open`` takes it over from the one before."""

    def __init__(self, settings: MoshiSettings) -> None:
        # Compiling costs minutes and gains nothing where frames are small.
        os.environ.setdefault("NO_TORCH_COMPILE", "1")
        import torch
        from moshi.models import LMGen

        torch.set_num_threads(settings.threads)
        self.settings = settings
        self.torch = torch
        self.loaded = _loaded(settings)
        self.forced = _Forced()
        self.generator = LMGen(
            self.loaded.lm,
            on_text_hook=self.forced.set_text,
            on_audio_hook=self.forced.set_audio,
            **{**{name: getattr(settings, name) for name in _SAMPLING}, **_fixed(self.loaded.generation)},
        )
        capabilities = {"sampling", "seedable"} | ({"force_history"} if settings.history == "force" else set())
        self.spec = Spec(
            in_rate_hz=grid.RATE_HZ,
            out_rate_hz=grid.RATE_HZ,
            unit_in_samples=grid.FRAME_SAMPLES,
            unit_out_samples=grid.FRAME_SAMPLES,
            lockstep=True,
            prime_units=1,
            context_s=self.loaded.context_frames * grid.FRAME_S,
            capabilities=frozenset(capabilities),
        )
        self.owner: MoshiSession | None = None
        with torch.no_grad():
            self.loaded.mimi.streaming_forever(1)
            self.generator.streaming_forever(1)
            for _ in range(_WARM_UP_FRAMES):
                self.step(np.zeros(grid.FRAME_SAMPLES, dtype=np.float32))

    def new_session(self) -> MoshiSession:
        """A session; the one before it must not be stepped any more once this one is open."""
        return MoshiSession(self)

    def reset(self, seed: int, sampling: Mapping[str, Any]) -> None:
        """A fresh state, with its own seed: the package draws from torch's global generator."""
        for name in _SAMPLING:
            setattr(self.generator, name, sampling.get(name, getattr(self.settings, name)))
        self.torch.manual_seed(seed % 2**63)
        self.loaded.mimi.reset_streaming()
        self.generator.reset_streaming()
        self.forced.clear()

    def codes_of(self, frames: Samples) -> Any:
        """Codes of frames (n, 1920) as int64 (8, n), from a fresh codec; its state is reset before and after."""
        mimi = self.loaded.mimi
        mimi.reset_streaming()
        with self.torch.no_grad():
            codes = [mimi.encode(self._tensor(frame)) for frame in frames]
        mimi.reset_streaming()
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

    def piece(self, token: int) -> str:
        """The text of a token; empty for padding."""
        if token in _SILENT_TOKENS:
            return ""
        return str(self.loaded.tokenizer.id_to_piece(token)).replace("\u2581", " ")

    def encode(self, word: str) -> list[int]:
        """Token ids of a word."""
        return [int(token) for token in self.loaded.tokenizer.encode(word)]

    def _tensor(self, frame: Samples) -> Any:
        return self.torch.from_numpy(np.ascontiguousarray(frame)).to(self.settings.device)[None, None]


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


class MoshiSession:
    """See ``Session``."""

    def __init__(self, system: Moshi) -> None:
        self._system = system
        self._units = 0
        self._empty = 0
        self._frames = 0
        self._is_primed = False
        self._is_open = False
        self._warnings: list[str] = []
        self._stats: SessionStats | None = None

    def open(self, request: OpenRequest) -> None:
        """Seed, reset, force the history.

        Raises:
            UnsupportedError: A prompt, a history of another form or beyond the context, unknown sampling options.
        """
        system = self._system
        refuse_unsupported(request, system.spec)
        unknown = sorted(set(request.sampling) - set(_SAMPLING))
        if unknown:
            raise UnsupportedError(f"sampling has {', '.join(_SAMPLING)}; unknown: {', '.join(unknown)}")
        system.owner = self
        system.reset(request.seed, request.sampling)
        if request.history:
            if len(request.history) != 1:
                raise UnsupportedError("a history is forced as one part with both channels")
            self._force(request.history[0])
        self._is_open = True

    def step(self, unit: Samples) -> list[Out]:
        """One frame in, and once primed one frame out, with the text that the model thought with it."""
        system = self._system
        checked_unit(unit, system.spec)
        if not self._is_open or self._stats is not None or system.owner is not self:
            raise ValueError("this session is not open: another was opened since, or it was closed")
        number = self._units
        self._units += 1
        if self._is_primed:
            # A forced history has its own priming frame before it: the stream follows it without a gap.
            self._is_primed = False
            self._empty += 1
            return []
        started = time.perf_counter()
        made = system.step(unit)
        self._frames += 1
        if made is None:
            self._empty += 1
            return []
        tokens, pcm = made
        cost_ms = (time.perf_counter() - started) * 1000
        outs = [Out("audio", number, pcm=pcm, cost_ms=cost_ms)]
        piece = system.piece(tokens[0])
        if piece:
            outs.append(Out("text", number, text=piece))
        return outs

    def close(self) -> SessionStats:
        """Frames fed and used; warns where the model ran beyond its context."""
        if self._stats is None:
            used_s = self._frames * grid.FRAME_S
            context_s = self._system.spec.context_s or used_s
            if used_s > context_s:
                self._warnings.append(
                    f"ran {used_s - context_s:.1f} s beyond the model's context of {context_s:.0f} s: the oldest "
                    "audio fell out"
                )
            self._stats = SessionStats(self._units, self._empty, used_s, tuple(self._warnings))
        return self._stats

    def _force(self, part: HistoryPart) -> None:
        system = self._system
        user, assistant, before_s = grid.whole_frames(part)
        n_frames = len(user)
        if n_frames + 1 >= system.loaded.context_frames:
            raise UnsupportedError(
                f"a history of {n_frames * grid.FRAME_S:.0f} s does not fit the context of "
                f"{system.spec.context_s:.0f} s: give its end"
            )
        spoken = [(text, start_s + before_s, end_s + before_s) for text, start_s, end_s in part.words]
        text, lost = grid.text_row(spoken, n_frames, system.encode)
        if lost:
            self._warnings.append(f"{lost} tokens of the history's last words found no frame before it ended")
        codes = system.codes_of(assistant)
        silence = np.zeros(grid.FRAME_SAMPLES, dtype=np.float32)
        forced = system.forced
        for call in range(n_frames + 1):
            # Frame 0 is the priming one; history frame k is the model's frame k + 1.
            forced.text = int(text[call]) if call < n_frames else None
            forced.semantic = codes[0, call] if call < n_frames else None
            forced.acoustic = codes[1:, call - 1] if call else None
            made = system.step(user[call - 1] if call else silence)
            if call:
                _check_forced(made, call - 1, int(text[call - 1]), codes[:, call - 1])
        forced.clear()
        self._frames = n_frames + 1
        self._is_primed = True


def _check_forced(made: tuple[list[int], Samples] | None, frame: int, text: int, codes: Any) -> None:
    wanted = [text, *(int(code) for code in codes)]
    if made is None or made[0] != wanted:
        raise RuntimeError(
            f"history frame {frame} came back as {made and made[0]}, not as the {wanted} it was forced to: "
            "this version of moshi places tokens in another way"
        )


def _fixed(generation: Mapping[str, Any]) -> dict[str, Any]:
    # A checkpoint may demand what is no matter of taste, such as guidance; sampling is the card's.
    return {name: value for name, value in generation.items() if name not in _SAMPLING}


def _loaded(settings: MoshiSettings) -> Loaded:
    if settings.model != tiny.TINY:
        return load(settings.model, settings.device, settings.dtype)
    with tempfile.TemporaryDirectory(prefix="duplex-moshi-") as folder:
        tiny.write(Path(folder))
        return load(folder, settings.device, settings.dtype)


def create(settings: Mapping[str, Any]) -> Moshi:
    """Moshi; raises ValueError for settings that make no sense, CheckpointError where its files are missing."""
    return Moshi(MoshiSettings.from_card(settings))
