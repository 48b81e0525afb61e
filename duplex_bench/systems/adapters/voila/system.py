"""Voila's autonomous model as a system: 40 ms in, 40 ms out, in lockstep (docs/systems/voila.md).

Model frame k is sampled before user frame k is read: it lies beside it, and can answer nothing later than frame k - 1.
"""

from __future__ import annotations

import importlib
import os
import sys
import time
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from duplex_bench.contract.card_settings import settings_from
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
from duplex_bench.systems.adapters.voila import tiny
from duplex_bench.systems.adapters.voila.codec import FRAME_SAMPLES, RATE_HZ, WindowCodec
from duplex_bench.systems.adapters.voila.history import written
from duplex_bench.systems.adapters.voila.loop import PROMPT, Ids, Sampling, Sequence

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]

SPEC = Spec(
    in_rate_hz=RATE_HZ,
    out_rate_hz=RATE_HZ,
    unit_in_samples=FRAME_SAMPLES,
    unit_out_samples=FRAME_SAMPLES,
    lockstep=True,
    capabilities=frozenset({"text_prompt", "force_history", "word_times", "sampling", "seedable"}),
)
_SPEAKER_NUMBERS = 256


@dataclass(frozen=True)
class VoilaSettings:
    """What a card may set.

    Attributes:
        model: Folder or cached hub name of the weights, or ``tiny`` for random ones.
        codec: Folder or cached hub name of the codec.
        repository: Folder of the vendor's code; the variable ``DUPLEX_BENCH_VOILA_REPO`` by default.
        speaker: A ``.npy`` file of 256 numbers that lend the voice; ``DUPLEX_BENCH_VOILA_SPEAKER`` by default.
        device, dtype, attention: As torch and transformers name them.
        window_frames: Frames of 40 ms that the codec looks back (ours).
        most_words: Text positions that may come before a frame of audio (ours).
        same_turn_s: Words of a history no further apart than this are one stretch of speech: the floor is marked as
            given up behind it (ours).
        threads: Of torch on the CPU.
    """

    model: str
    codec: str = "maitrix-org/Voila-Tokenizer"
    repository: str = ""
    speaker: str = ""
    device: str = "cuda"
    dtype: str = "bfloat16"
    attention: str = "sdpa"
    window_frames: int = 50
    most_words: int = 200
    same_turn_s: float = 1.0
    threads: int = 1

    def __post_init__(self) -> None:
        if min(self.window_frames, self.most_words, self.threads) < 1:
            raise ValueError("voila: window_frames, most_words and threads are at least 1")
        if not self.same_turn_s >= 0:
            raise ValueError(f"voila: same_turn_s {self.same_turn_s}: give 0 or more seconds")


class Voila:
    """A ``System``; sessions are independent of each other but for torch's generator, which each seeds."""

    spec = SPEC

    def __init__(self, settings: VoilaSettings) -> None:
        import torch

        torch.set_num_threads(settings.threads)
        self.settings = settings
        self.torch = torch
        if settings.model == tiny.TINY:
            self.model, self.codec, self.tokenizer = tiny.model(), tiny.codec(), tiny.Tokenizer()
            self.speaker = torch.zeros(1, 1, _SPEAKER_NUMBERS)
        else:
            self.model, self.codec, self.tokenizer = _loaded(settings)
            self.speaker = torch.from_numpy(_speaker(settings)).to(settings.device)[None, None]
        self.ids = Ids.of(self.tokenizer)
        self.owner: VoilaSession | None = None

    def new_session(self) -> VoilaSession:
        """A session; the one before it must not be stepped any more once this one is open."""
        return VoilaSession(self)


class VoilaSession:
    """See ``Session``."""

    def __init__(self, system: Voila) -> None:
        self._system = system
        self._codec = WindowCodec(system.codec, system.settings.window_frames)
        self._sequence: Sequence | None = None
        self._units = 0
        self._warnings: list[str] = []
        self._stats: SessionStats | None = None

    def open(self, request: OpenRequest) -> None:
        """Seed, write the prompt, force the history.

        Raises:
            UnsupportedError: A voice, a history of another form, unknown sampling options.
        """
        system = self._system
        refuse_unsupported(request, SPEC)
        if len(request.history) > 1:
            raise UnsupportedError("a history is forced as one part with both channels")
        known = {field.name for field in fields(Sampling)}
        unknown = sorted(set(request.sampling) - known)
        if unknown:
            raise UnsupportedError(f"sampling has {', '.join(sorted(known))}; unknown: {', '.join(unknown)}")
        sampling = replace(Sampling(), **request.sampling)  # type: ignore[arg-type]
        system.owner = self
        system.torch.manual_seed(request.seed % 2**63)
        sequence = Sequence(system.model, system.ids, sampling, system.settings.most_words)
        prompt = system.tokenizer.encode(PROMPT, add_special_tokens=False)
        told = system.tokenizer.encode(request.prompt.text or "", add_special_tokens=False)
        positions = [sequence.same(token) for token in (*prompt[:-1], *told, prompt[-1], system.ids.human)]
        if request.history:
            positions += self._history(request.history[0], sequence)
        sequence.begin(positions, system.speaker)
        self._sequence = sequence

    def step(self, unit: Samples) -> list[Out]:
        """The model's frame and what it wrote before it; then the user's frame is read."""
        system, sequence = self._system, self._sequence
        checked_unit(unit, SPEC)
        if sequence is None or self._stats is not None or system.owner is not self:
            raise ValueError("this session is not open: another was opened since, or it was closed")
        number = self._units
        self._units += 1
        started = time.perf_counter()
        words, own = sequence.next_frame()
        sequence.hear(self._codec.code(unit.copy()), own)
        pcm = self._codec.speak(own)
        cost_ms = (time.perf_counter() - started) * 1000
        return [*self._written(words, number), Out("audio", number, pcm=pcm, cost_ms=cost_ms)]

    def close(self) -> SessionStats:
        """Frames fed; warns where the model ran beyond the positions it was made for."""
        if self._stats is None:
            positions = 0 if self._sequence is None else self._sequence.positions
            limit = getattr(self._system.model.config, "max_position_embeddings", None)
            if limit is not None and positions > limit:
                self._warnings.append(f"ran to position {positions}, beyond the {limit} that the model was made for")
            self._stats = SessionStats(self._units, 0, None, tuple(self._warnings), {"positions": positions})
        return self._stats

    def _written(self, tokens: list[int], number: int) -> list[Out]:
        ids = self._system.ids
        outs: list[Out] = []
        for token in tokens:
            if token == ids.voila:
                outs.append(Out("state", number, state="speak"))
            elif token == ids.end:
                outs.append(Out("state", number, state="end_of_turn"))
            else:
                text = self._system.tokenizer.decode([token])
                outs += [Out("text", number, text=text)] if text else []
        return outs

    def _history(self, part: HistoryPart, sequence: Sequence) -> list[list[int]]:
        """Positions of both channels, with the words before the frame in which each begins, and marks of the floor."""
        if part.user_pcm is None or part.assistant_pcm is None:
            raise UnsupportedError("a history is forced with both channels")
        lacking = -len(part.user_pcm) % FRAME_SAMPLES
        # The end is what touches the stream: what lacks to a whole frame is silence before the start.
        user, own = (np.pad(pcm, (lacking, 0)) for pcm in (part.user_pcm, part.assistant_pcm))
        heard, said = self._codec.codes_of(user), self._codec.codes_of(own)
        self._codec.remember(user, said)
        n_frames = heard.shape[1]
        before_s = lacking / RATE_HZ
        spoken = [(text, start_s + before_s, end_s + before_s) for text, start_s, end_s in part.words]
        told = written(spoken, n_frames, self._system.settings.same_turn_s)
        positions: list[list[int]] = []
        for frame in range(n_frames):
            if frame in told.stops and sequence.speaking:
                positions.append(sequence.same(self._system.ids.end))
                sequence.speaking = False
            if frame in told.starts and not sequence.speaking:
                positions.append(sequence.same(self._system.ids.voila))
                sequence.speaking = True
            for word in told.words.get(frame, ()):
                tokens = self._system.tokenizer.encode(f" {word}", add_special_tokens=False)
                positions += [sequence.same(token) for token in tokens]
            positions.append(sequence.frames(heard[:, frame], said[:, frame]))
        return positions


def _loaded(settings: VoilaSettings) -> tuple[Any, Any, Any]:
    import torch
    from transformers import AutoTokenizer, EncodecModel

    folder = settings.repository or os.environ.get("DUPLEX_BENCH_VOILA_REPO", "")
    if not (Path(folder) / "model.py").is_file():
        raise ValueError(
            f"voila: no model.py in {folder or 'no folder'}: set DUPLEX_BENCH_VOILA_REPO to a checkout of the "
            "vendor's code"
        )
    sys.path.insert(0, folder)
    vendor = importlib.import_module("model").VoilaAutonomousModel
    dtype = getattr(torch, settings.dtype, None)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"voila: dtype {settings.dtype!r} is none of torch: say bfloat16, float16 or float32")
    model = vendor.from_pretrained(
        settings.model, attn_implementation=settings.attention, torch_dtype=dtype, use_cache=True
    )
    codec = EncodecModel.from_pretrained(settings.codec)
    tokenizer = AutoTokenizer.from_pretrained(settings.model)
    return model.to(settings.device).eval(), codec.to(settings.device).eval(), tokenizer


def _speaker(settings: VoilaSettings) -> npt.NDArray[np.float32]:
    path = settings.speaker or os.environ.get("DUPLEX_BENCH_VOILA_SPEAKER", "")
    if not Path(path).is_file():
        raise ValueError(f"voila: no speaker vector {path!r}: set DUPLEX_BENCH_VOILA_SPEAKER to a .npy of 256 numbers")
    vector: npt.NDArray[np.float32] = np.load(path, allow_pickle=False).reshape(-1).astype(np.float32)
    if vector.shape != (_SPEAKER_NUMBERS,) or not np.isfinite(vector).all():
        raise ValueError(
            f"voila: the speaker vector {path} holds {vector.shape[0]} numbers, {_SPEAKER_NUMBERS} are due"
        )
    return vector


def create(settings: Mapping[str, Any]) -> Voila:
    """Voila; raises ValueError for settings that make no sense or files that are not there."""
    return Voila(settings_from(VoilaSettings, settings, "voila"))
