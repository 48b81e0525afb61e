"""The session contract of realtime systems: audio is pushed as time passes, events come when they come.

Runs inside foreign environments: standard library and numpy >= 1.24 only, Python >= 3.10.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from duplex_bench.contract.types import TransportError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from duplex_bench.contract.types import OpenRequest, SessionStats, Spec

    Samples = npt.NDArray[np.float32]

Detection = Literal["automatic", "manual"]
PushKind = Literal["audio", "text", "user_text", "flush", "begun", "done", "usage", "note"]


class RefusedError(ValueError):
    """The vendor refused what a second attempt would not change: key, model, region, quota, or a setting."""


class RateLimitedError(TransportError):
    """The vendor asks to come back later; ``retry_after_s`` if it said when."""

    def __init__(self, message: str, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


@dataclass(frozen=True)
class PushEvent:
    """One thing that a realtime system sent.

    Attributes:
        kind: audio, text (the system's words), user_text (what it heard), flush (a listener's player drops what was
            not yet played), begun and done (of a response), usage, or note (anything else worth keeping).
        response_id: Unit of playback and truncation. One response may hold several. Audio without one belongs to a
            track that never ends, silence included, and begins no response.
        pcm: Audio only: float32 (n,) in [-1, 1] at ``out_rate_hz``.
        text: For text and user_text.
        data: Plain JSON data for the event log; never a key, never audio.
    """

    kind: PushKind
    response_id: str | None = None
    pcm: Samples | None = None
    text: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


class PushSession(Protocol):
    """One conversation over one connection. ``push`` and ``reply_now`` belong to one task, ``receive`` to another."""

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect, configure, hand over prompt and history, and be ready for audio.

        Raises:
            UnsupportedError: The request or the detection is not offered.
            RefusedError: Key, model, region, quota or settings were refused.
            TransportError: No connection, or it was lost.
        """
        ...

    async def push(self, frame: Samples) -> None:
        """Send one frame, float32 (unit_in_samples,). Returns as soon as the transport took it."""
        ...

    async def reply_now(self) -> dict[str, Any]:
        """Manual detection: end the user's turn and ask for a reply; returns times and names for the event log."""
        ...

    async def receive(self) -> list[PushEvent]:
        """Wait for the next message and return what it says, which may be nothing.

        Raises:
            RefusedError: A message that ends the session and that a second attempt would not change.
            TransportError: The connection ended, or the session was ended by the vendor.
        """
        ...

    async def cut(self, response_id: str, heard_s: float) -> dict[str, Any]:
        """Tell the system how much of a response was heard before it was cut; returns data for the event log."""
        ...

    async def close(self) -> SessionStats:
        """End the connection; allowed at any time, a second call returns the same."""
        ...


@runtime_checkable
class PushSystem(Protocol):
    """Makes realtime sessions. ``detections`` says who may end the user's turn: the system, or the harness."""

    @property
    def spec(self) -> Spec:
        """Rates, frame length and capabilities; never in lockstep."""
        ...

    @property
    def detections(self) -> frozenset[Detection]:
        """What ``PushSession.open`` accepts."""
        ...

    @property
    def virtual_time(self) -> bool:
        """Whether it talks through memory alone, so that its sessions can run on virtual time."""
        ...

    def new_push_session(self) -> PushSession:
        """A fresh session that knows nothing of those before it."""
        ...
