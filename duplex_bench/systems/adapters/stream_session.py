"""What the sessions of self-hosted servers share: where the server is, sending and receiving, what they cannot do."""

import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from duplex_bench.contract.push import Detection, PushEvent, PushSession, RefusedError
from duplex_bench.contract.types import (
    OpenRequest,
    SessionStats,
    Spec,
    TransportError,
    UnsupportedError,
    refuse_unsupported,
)
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.wire import Connector, Secret, Wire, WireClosedError, as_message

if TYPE_CHECKING:
    from collections.abc import Callable

NO_KEY: Final = Secret("")
AUTOMATIC: Final[frozenset[Detection]] = frozenset({"automatic"})
Settings = TypeVar("Settings")


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server is: ``url``, unless the variable ``env`` is set."""

    env: str
    url: str = ""

    def found(self) -> str:
        """The address.

        Raises:
            RefusedError: There is none.
        """
        url = os.environ.get(self.env) or self.url
        if not url:
            raise RefusedError(f"no address of the server: set {self.env}, such as ws://127.0.0.1:8998")
        return url.replace("http", "ws", 1) if url.startswith("http") else url


class ServedModel:
    """A ``PushSystem`` over a server of a model that takes the floor by itself.

    Args:
        spec: Of the system.
        connector: How the server is reached.
        new_session: Makes a session over a connection of its own.
    """

    detections: frozenset[Detection] = AUTOMATIC

    def __init__(self, spec: Spec, connector: Connector, new_session: "Callable[[], PushSession]") -> None:
        self.spec = spec
        self.connector = connector
        self._new_session = new_session

    @property
    def virtual_time(self) -> bool:
        """Whether its server lives in this process's memory."""
        return self.connector.virtual_time

    def new_push_session(self) -> PushSession:
        """A session over a connection of its own."""
        return self._new_session()


class StreamSession:
    """Base of a ``PushSession`` over one connection to a model that takes the floor by itself.

    Args:
        spec: Of the system.
        connector: How the server is reached.
        address: Where.
    """

    cannot_be_told = "the protocol has no message for what was heard"

    def __init__(self, spec: Spec, connector: Connector, address: Address) -> None:
        self.spec = spec
        self._connector = connector
        self._address = address
        self._wire: Wire | None = None
        self._early: list[PushEvent] = []
        self._frames = 0
        self._warnings: list[str] = []
        self._round_trips_s: list[float | None] = []
        self._closed = False

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect and be ready for audio; protocols define it."""
        raise NotImplementedError

    async def push(self, frame: Samples) -> None:
        """Send one frame; protocols define it."""
        raise NotImplementedError

    async def reply_now(self) -> dict[str, Any]:
        """Not offered: the model itself decides when to speak."""
        raise UnsupportedError("this system decides itself when to speak: a reply cannot be requested")

    async def cut(self, response_id: str, heard_s: float) -> dict[str, Any]:
        """What the server is told of what was heard; by default nothing, and the log says so."""
        return {"item_id": response_id, "heard_ms": int(heard_s * 1000), "reported": False,
                "reason": self.cannot_be_told}  # fmt: skip

    async def receive(self) -> list[PushEvent]:
        """What the next message says."""
        if self._early:
            early, self._early = self._early, []
            return early
        return self.read(await self.next_raw())

    async def close(self) -> SessionStats:
        """End the connection; a second call returns the same."""
        if self._wire is not None and not self._closed:
            self._closed = True
            self._round_trips_s.append(await self._wire.round_trip_s())
            await self.say_goodbye()
            await self._wire.close()
        return SessionStats(
            units=self._frames,
            warnings=tuple(self._warnings),
            extra={**self.told_at_close(), "round_trip_s": self._round_trips_s},
        )

    def read(self, raw: str | bytes) -> list[PushEvent]:
        """What one message says; protocols define it."""
        raise NotImplementedError

    async def say_goodbye(self) -> None:
        """The last message before the connection is closed, where the protocol has one."""

    def told_at_close(self) -> dict[str, Any]:
        """Numbers for the event log."""
        return {}

    def check(self, request: OpenRequest, detection: Detection) -> None:
        """Refuse what the system cannot take."""
        refuse_unsupported(request, self.spec)
        if detection != "automatic":
            raise UnsupportedError("this system decides itself when to speak: detection cannot be off")

    async def connect(self, url: str) -> None:
        """Connect and measure the round trip."""
        try:
            self._wire = await self._connector.connect(url, {}, NO_KEY)
        except TransportError as error:
            if "CERTIFICATE_VERIFY_FAILED" not in str(error):
                raise
            raise RefusedError(
                f"{error}. If the server made its certificate itself, set verify_certificate = false in the card"
            ) from None
        self._round_trips_s.append(await self._wire.round_trip_s())

    async def send(self, message: str | bytes) -> None:
        """Send one message as it is."""
        if self._wire is None:
            raise TransportError("the session is not open")
        try:
            await self._wire.send(message)
        except WireClosedError as error:
            raise self.meant(error) from None

    async def send_json(self, message: dict[str, Any]) -> None:
        """Send one message as JSON."""
        await self.send(json.dumps(message))

    async def next_raw(self) -> str | bytes:
        """The next message."""
        if self._wire is None:
            raise TransportError("the session is not open")
        try:
            return await self._wire.receive()
        except WireClosedError as error:
            raise self.meant(error) from None

    async def next_json(self) -> dict[str, Any]:
        """The next message as a JSON object."""
        return as_message(await self.next_raw())

    def meant(self, error: WireClosedError) -> Exception:
        """What a closed connection means; protocols with close codes of their own define it."""
        return error
