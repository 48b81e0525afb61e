"""The session contract: what a system under test is, is given, and gives back.

Runs inside foreign environments: standard library and numpy >= 1.24 only, Python >= 3.10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]

OutKind = Literal["audio", "text", "state", "flush", "error"]
State = Literal["listen", "speak", "end_of_turn", "pad"]
Capability = Literal[
    "text_prompt", "voice_prompt", "force_history", "word_times", "audio_history", "text_history", "sampling",
    "seedable",
]  # fmt: skip

OUT_KINDS: frozenset[str] = frozenset(get_args(OutKind))
STATES: frozenset[str] = frozenset(get_args(State))
CAPABILITIES: frozenset[str] = frozenset(get_args(Capability))
_WHOLE = (
    "in_rate_hz", "out_rate_hz", "unit_in_samples", "unit_out_samples", "prime_units", "flush_units",
    "model_shift_units",
)  # fmt: skip


class UnsupportedError(ValueError):
    """The system was handed something that it cannot take (a prompt, a history, a partial unit). Never ignored."""


class TransportError(ConnectionError):
    """The worker of a system died, hung, or closed the connection."""


class RemoteSystemError(RuntimeError):
    """The system itself raised an error inside its worker; the message names the type and text of that error."""


class InvalidOutputError(ValueError):
    """The system gave back something that its spec or the contract rules out; refused, never repaired."""


# What the code of a system may raise: anything. Its packages have exceptions of their own, which nobody can list, and
# one that passes through ends a worker, or the batch. BaseExceptions (Ctrl-C, exit) do pass through.
SYSTEM_ERRORS: tuple[type[Exception], ...] = (Exception,)


@dataclass(frozen=True)
class Spec:
    """What a system is, fixed before any session.

    Attributes:
        in_rate_hz: Rate of the audio it hears.
        out_rate_hz: Rate of the audio it speaks.
        unit_in_samples: Samples of one input unit at ``in_rate_hz``; ``step`` takes exactly so many.
        unit_out_samples: Samples of each audio output at ``out_rate_hz``, or None if they vary.
        lockstep: One output frame belongs to each input unit. Such outputs are placed by model time
            (``unit + model_shift_units``), others by when they become available, through a player.
        prime_units: Units of silence fed before the stream; their outputs are hidden, the clock starts after them.
        flush_units: Units of silence fed after the stream, so that outputs that lag it still come.
        model_shift_units: Lockstep only. The frame returned for input unit u is the model's frame u + shift.
        context_s: Seconds of audio the model can attend to, or None if not limited or not known.
        capabilities: Which of ``CAPABILITIES`` the system has. Others raise when handed to ``open``.
    """

    in_rate_hz: int
    out_rate_hz: int
    unit_in_samples: int
    unit_out_samples: int | None = None
    lockstep: bool = False
    prime_units: int = 0
    flush_units: int = 0
    model_shift_units: int = 0
    context_s: float | None = None
    capabilities: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in _WHOLE:
            value = getattr(self, name)
            if (isinstance(value, bool) or not isinstance(value, int)) and (name, value) != ("unit_out_samples", None):
                raise ValueError(f"spec: {name} is a whole number, got {value!r}")
        if not isinstance(self.lockstep, bool):
            raise ValueError(f"spec: lockstep is True or False, got {self.lockstep!r}")
        given: Any = self.capabilities
        if isinstance(given, str):
            raise ValueError(f"spec: capabilities is a set of names, got {given!r}: write frozenset({{{given!r}}})")
        context_s = self.context_s
        if context_s is not None and (not isinstance(context_s, (int, float)) or not 0 < context_s < math.inf):
            raise ValueError(f"spec: context_s is a number of seconds, or None, got {context_s!r}")
        object.__setattr__(self, "capabilities", frozenset(self.capabilities))
        if min(self.in_rate_hz, self.out_rate_hz, self.unit_in_samples) <= 0:
            raise ValueError("spec: in_rate_hz, out_rate_hz and unit_in_samples must be positive")
        if self.unit_out_samples is not None and self.unit_out_samples <= 0:
            raise ValueError("spec: unit_out_samples must be positive, or None if outputs vary in length")
        if min(self.prime_units, self.flush_units) < 0:
            raise ValueError("spec: prime_units and flush_units cannot be negative")
        if self.model_shift_units and not self.lockstep:
            raise ValueError("spec: model_shift_units means nothing without lockstep; leave it 0")
        unknown = self.capabilities - CAPABILITIES
        if unknown:
            raise ValueError(f"spec: unknown capabilities {sorted(unknown)}; known are {sorted(CAPABILITIES)}")

    @property
    def unit_s(self) -> float:
        """Duration of one input unit in seconds."""
        return self.unit_in_samples / self.in_rate_hz


@dataclass(frozen=True)
class Prompt:
    """Who the system is to be: ``text`` in words, ``voice`` as the name of a voice it offers."""

    text: str | None = None
    voice: str | None = None

    def __bool__(self) -> bool:
        return self.text is not None or self.voice is not None


@dataclass(frozen=True)
class HistoryPart:
    """A stretch of the conversation before the stream; seconds on the history's own clock.

    ``user_pcm`` and ``assistant_pcm`` are float32 (n,) at the system's ``in_rate_hz``, of equal length where both
    are given (teacher forcing, capability ``force_history``). ``words`` are (text, start_s, end_s) of the assistant:
    of each word where the system takes ``word_times`` and they are known, else of each completed turn.
    """

    role: Literal["user", "assistant", "both"]
    text: str
    start_s: float
    end_s: float
    user_pcm: Samples | None = None
    assistant_pcm: Samples | None = None
    words: tuple[tuple[str, float, float], ...] = ()


@dataclass(frozen=True)
class OpenRequest:
    """All that a session is told before the stream.

    ``stimulus_id`` is an opaque digest: systems key their own logs by it and learn nothing from it.
    """

    seed: int
    stimulus_id: str
    prompt: Prompt = Prompt()
    history: tuple[HistoryPart, ...] = ()
    sampling: dict[str, float | int | str | bool] = field(default_factory=dict)


@dataclass(frozen=True)
class Out:
    """One thing that a system gives back for a unit it was fed.

    Attributes:
        kind: audio, text, state, flush (drop what was not yet played), or error.
        unit: Index of the input unit that caused it, counted from the first call of ``step`` (priming included).
        pcm: Audio only: float32 (n,) in [-1, 1] at ``out_rate_hz``.
        text: Words for text, the message for error.
        state: One of ``STATES``.
        response_id: Which response it belongs to; late audio of a flushed response is dropped by it.
        model_time_s: Start in model time on the stream's clock, None to let the driver derive it from the unit.
        available_s: When it became available on the stream's clock; None for the end of the unit.
        cost_ms: Compute it took; recorded, and applied to nothing unless a latency model is declared.
    """

    kind: OutKind
    unit: int
    pcm: Samples | None = None
    text: str | None = None
    state: State | None = None
    response_id: str | None = None
    model_time_s: float | None = None
    available_s: float | None = None
    cost_ms: float = 0.0


@dataclass(frozen=True)
class SessionStats:
    """What a session says of itself when closed: units fed, steps without output, context used, warnings."""

    units: int = 0
    empty_steps: int = 0
    context_used_s: float | None = None
    warnings: tuple[str, ...] = ()
    extra: dict[str, Any] = field(default_factory=dict)


class Session(Protocol):
    """One conversation. Used by one thread, opened once, closed once; ``close`` is allowed at any time."""

    def open(self, request: OpenRequest) -> None:
        """Warm up, seed, reset, take prompt and history, and leave the clock at unit 0.

        Raises:
            UnsupportedError: The request holds something that the spec does not offer.
        """
        ...

    def step(self, unit: Samples) -> list[Out]:
        """Take exactly one unit, float32 (unit_in_samples,), and return what it caused. Never waits on a clock.

        Raises:
            UnsupportedError: The unit has another length.
        """
        ...

    def close(self) -> SessionStats:
        """End the session and free what it held; a second call returns the same."""
        ...


class System(Protocol):
    """Makes sessions. Loading of weights belongs in its construction, state of a conversation in the session."""

    @property
    def spec(self) -> Spec:
        """What the system is; does not change."""
        ...

    def new_session(self) -> Session:
        """A fresh session that knows nothing of those before it."""
        ...


def refuse_unsupported(request: OpenRequest, spec: Spec) -> None:
    """Raise for whatever ``request`` holds that ``spec`` does not offer: call it first in ``open``.

    Raises:
        UnsupportedError: Names everything that is not supported.
    """
    history = request.history
    asked = {
        "text_prompt": request.prompt.text is not None,
        "voice_prompt": request.prompt.voice is not None,
        "force_history": any(part.assistant_pcm is not None for part in history),
        "audio_history": any(part.user_pcm is not None and part.assistant_pcm is None for part in history),
        "text_history": any(part.user_pcm is None and part.assistant_pcm is None for part in history),
        "sampling": bool(request.sampling),
    }
    missing = sorted(name for name, is_asked in asked.items() if is_asked and name not in spec.capabilities)
    if missing:
        raise UnsupportedError(
            f"this system cannot take {', '.join(missing)}: leave it out, or add the capability to its spec"
        )


def checked_unit(unit: Samples, spec: Spec) -> Samples:
    """``unit`` if it is one whole unit of finite float32 audio: call it first in ``step``.

    Raises:
        UnsupportedError: Another shape or dtype, or NaN or infinity.
    """
    import numpy as np

    if unit.shape != (spec.unit_in_samples,) or unit.dtype != np.float32:
        raise UnsupportedError(
            f"a unit is float32 ({spec.unit_in_samples},), got {unit.dtype} {unit.shape}: pad the last one with zeros"
        )
    if not np.isfinite(unit).all():
        raise UnsupportedError("a unit holds NaN or infinity")
    return unit
