"""A session of a model that is stepped frame by frame: whichever it is, it takes what came before and goes on."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

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
from duplex_bench.systems.adapters.mimi_models import grid
from duplex_bench.systems.adapters.mimi_models.stepper import SAMPLING, Stepper

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Begun:
    """What a session begins with.

    Attributes:
        frames: Fed before the stream.
        is_primed: The stream's own priming unit is not fed: forced frames stand before it.
        warnings: For its statistics.
    """

    frames: int = 0
    is_primed: bool = False
    warnings: tuple[str, ...] = ()


class Stepped(Protocol):
    """The system behind a session. One state on the device: ``open`` takes it over from the session before."""

    spec: Spec
    stepper: Stepper
    owner: FrameSession | None

    def begin(self, request: OpenRequest) -> Begun:
        """Force prompts and history, after the reset."""
        ...


class FrameSession:
    """See ``Session``."""

    def __init__(self, system: Stepped) -> None:
        self._system = system
        self._units = 0
        self._empty = 0
        self._begun = Begun()
        self._frames = 0
        self._is_open = False
        self._stats: SessionStats | None = None

    def open(self, request: OpenRequest) -> None:
        """Seed, reset, force prompts and history.

        Raises:
            UnsupportedError: What the spec does not offer, a history of another form or beyond the context, unknown
                sampling options.
        """
        system = self._system
        refuse_unsupported(request, system.spec)
        unknown = sorted(set(request.sampling) - set(SAMPLING))
        if unknown:
            raise UnsupportedError(f"sampling has {', '.join(SAMPLING)}; unknown: {', '.join(unknown)}")
        if len(request.history) > 1:
            raise UnsupportedError("a history is forced as one part with both channels")
        system.owner = self
        system.stepper.reset(request.seed, request.sampling)
        self._begun = system.begin(request)
        self._frames = self._begun.frames
        self._is_open = True

    def step(self, unit: Samples) -> list[Out]:
        """One frame in, and once primed one frame out, with the text that the model thought with it."""
        system = self._system
        checked_unit(unit, system.spec)
        if not self._is_open or self._stats is not None or system.owner is not self:
            raise ValueError("this session is not open: another was opened since, or it was closed")
        number = self._units
        self._units += 1
        if self._begun.is_primed and number < system.spec.prime_units:
            # What was forced has its own priming frame before it: the stream follows it without a gap.
            self._empty += 1
            return []
        started = time.perf_counter()
        made = system.stepper.step(unit)
        self._frames += 1
        if made is None:
            self._empty += 1
            return []
        tokens, pcm = made
        cost_ms = (time.perf_counter() - started) * 1000
        outs = [Out("audio", number, pcm=pcm, cost_ms=cost_ms)]
        piece = system.stepper.piece(tokens[0])
        if piece:
            outs.append(Out("text", number, text=piece))
        return outs

    def close(self) -> SessionStats:
        """Frames fed and used; warns where the model ran beyond its context."""
        if self._stats is None:
            used_s = self._frames * grid.FRAME_S
            context_s = self._system.spec.context_s or used_s
            warnings = self._begun.warnings
            if used_s > context_s:
                warnings += (
                    f"ran {used_s - context_s:.1f} s beyond the model's context of {context_s:.0f} s: the oldest "
                    "audio fell out",
                )
            self._stats = SessionStats(self._units, self._empty, used_s, warnings)
        return self._stats


@dataclass(frozen=True)
class HeldTalk:
    """A history on frames: audio of both sides, float32 (n, 1920), and the text row of the model's own."""

    user: Samples
    own: Samples
    text: npt.NDArray[np.int64]
    warnings: tuple[str, ...]


def held(part: HistoryPart, stepper: Stepper, n_before: int) -> HeldTalk:
    """A history as frames that the model can be forced through.

    Args:
        part: Both channels and the words.
        stepper: Whose context and tokenizer count.
        n_before: Frames that stand before it.

    Raises:
        UnsupportedError: It does not fit the context.
        ValueError: One of the channels is missing, or they differ in length.
    """
    user, own, before_s = grid.whole_frames(part)
    n_frames = len(user)
    context = stepper.loaded.context_frames
    if n_frames + n_before >= context:
        raise UnsupportedError(
            f"a history of {n_frames * grid.FRAME_S:.0f} s does not fit the context of {context * grid.FRAME_S:.0f} s: "
            "give its end"
        )
    spoken = [(text, start_s + before_s, end_s + before_s) for text, start_s, end_s in part.words]
    text, lost = grid.text_row(spoken, n_frames, stepper.encode)
    warnings = (f"{lost} tokens of the history's last words found no frame before it ended",) if lost else ()
    return HeldTalk(user, own, text, warnings)


def sampling_of(settings: Any) -> dict[str, Any]:
    """The sampling options of a card's settings."""
    return {name: getattr(settings, name) for name in SAMPLING}
