"""Moshi, stepped frame by frame in its own environment with the vendor's package.

The model hears and speaks one frame of 80 ms a step. Its first step is lost on every row (it returns nothing and what
it was fed is dropped), so one frame of silence primes it. From then on step c returns the model's frame c: beside the
user's frame c in the timeline it was trained on. A user frame changes the seven acoustic codes of the frame returned
with it, and text and the semantic code from the next on.

A history is forced: at step c the text token and the semantic code of frame c + 1 are set and the acoustic codes of
frame c, since those are delayed by one; the user's codes are given undelayed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.types import OpenRequest, Spec
from duplex_bench.systems.adapters.mimi_models import grid, tiny
from duplex_bench.systems.adapters.mimi_models.checkpoint import Loaded, load
from duplex_bench.systems.adapters.mimi_models.session import Begun, FrameSession, held, sampling_of
from duplex_bench.systems.adapters.mimi_models.stepper import N_CODES, ForcedFrames, Stepper, quiet_compiler

if TYPE_CHECKING:
    from collections.abc import Mapping


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

    def __post_init__(self) -> None:
        if self.history not in ("force", "none"):
            raise ValueError(f"moshi: history is force or none, got {self.history!r}")
        if min(self.temp, self.temp_text) < 0 or min(self.top_k, self.top_k_text, self.threads) < 1:
            raise ValueError("moshi: temperatures cannot be negative, top_k, top_k_text and threads are at least 1")


class Moshi:
    """A ``System``. One state on the device: a session's ``open`` takes it over from the one before."""

    def __init__(self, settings: MoshiSettings) -> None:
        quiet_compiler()
        self.stepper = Stepper(_loaded(settings), settings.device, sampling_of(settings), settings.threads)
        forces = {"force_history", "word_times"} if settings.history == "force" else set()
        self.spec = Spec(
            in_rate_hz=grid.RATE_HZ,
            out_rate_hz=grid.RATE_HZ,
            unit_in_samples=grid.FRAME_SAMPLES,
            unit_out_samples=grid.FRAME_SAMPLES,
            lockstep=True,
            prime_units=1,
            context_s=self.stepper.loaded.context_frames * grid.FRAME_S,
            capabilities=frozenset({"sampling", "seedable", *forces}),
        )
        self.owner: FrameSession | None = None

    def new_session(self) -> FrameSession:
        """A session; the one before it must not be stepped any more once this one is open."""
        return FrameSession(self)

    def begin(self, request: OpenRequest) -> Begun:
        """Force the history: frame 0 is the priming one, history frame k is the model's frame k + 1."""
        if not request.history:
            return Begun()
        stepper = self.stepper
        talk = held(request.history[0], stepper, 1)
        codes = stepper.codes_of(talk.own)
        silence = np.zeros((1, grid.FRAME_SAMPLES), dtype=np.float32)
        heard = stepper.heard(np.concatenate([silence, talk.user]))
        own = stepper.torch.cat([codes.new_zeros(N_CODES, 1), codes], dim=1)
        stepper.force(ForcedFrames([grid.PAD, *talk.text.tolist()], own, heard))
        return Begun(len(talk.text) + 1, True, talk.warnings)


def _loaded(settings: MoshiSettings) -> Loaded:
    return tiny.loaded(settings.model, tiny.write, lambda model: load(model, settings.device, settings.dtype))


def create(settings: Mapping[str, Any]) -> Moshi:
    """Moshi; raises ValueError for settings that make no sense, CheckpointError where its files are missing."""
    return Moshi(settings_from(MoshiSettings, settings, "moshi"))
