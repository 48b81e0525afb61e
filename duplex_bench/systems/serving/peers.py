"""The server's end of a connection, whatever carries it, and the memory that carries one on virtual time."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from duplex_bench.systems.adapters.wire import Connector, Secret, Wire, WireClosedError, refused_handshake


class PeerGoneError(ConnectionError):
    """The client left."""


class CloseConnection(Exception):  # noqa: N818 - it is an order, not an error
    """Raised inside a conversation to close its connection; code 0 drops it without a close frame."""

    def __init__(self, code: int, reason: str = "") -> None:
        super().__init__(f"close {code} {reason}")
        self.code = code
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer instead of a connection."""

    status: int
    body: str = ""
    retry_after: str = ""


class Peer(Protocol):
    """A client, as a conversation sees it."""

    async def send(self, message: str | bytes) -> None:
        """Send one message; raises PeerGoneError."""
        ...

    async def receive(self) -> str | bytes:
        """Wait for one message; raises PeerGoneError."""
        ...


class Endpoint(Protocol):
    """A protocol, served to any number of peers."""

    def refusal(self, target: str, headers: Mapping[str, str]) -> Refusal | None:
        """Why a connection to ``target`` (path and query) is refused, or None."""
        ...

    async def converse(self, peer: Peer, target: str, headers: Mapping[str, str]) -> None:
        """Serve one connection until the peer leaves; raises CloseConnection to end it."""
        ...


@dataclass
class _MemoryPipe:
    to_server: "asyncio.Queue[str | bytes | WireClosedError]" = field(default_factory=asyncio.Queue)
    to_client: "asyncio.Queue[str | bytes | WireClosedError]" = field(default_factory=asyncio.Queue)
    closed: WireClosedError | None = None


class _ClientEnd:
    def __init__(self, pipe: _MemoryPipe, server: "asyncio.Task[None]") -> None:
        self._pipe = pipe
        self._server = server

    async def send(self, message: str | bytes) -> None:
        if self._pipe.closed is not None:
            raise self._pipe.closed
        self._pipe.to_server.put_nowait(message)

    async def receive(self) -> str | bytes:
        message = await self._pipe.to_client.get()
        if isinstance(message, WireClosedError):
            self._pipe.to_client.put_nowait(message)
            raise message
        return message

    async def round_trip_s(self) -> float | None:
        return None if self._pipe.closed is not None else 0.0

    async def close(self) -> None:
        self._pipe.closed = self._pipe.closed or WireClosedError(1000)
        self._pipe.to_server.put_nowait(self._pipe.closed)
        await asyncio.wait({self._server}, timeout=1.0)
        self._server.cancel()
        await asyncio.gather(self._server, return_exceptions=True)


class _ServerEnd:
    def __init__(self, pipe: _MemoryPipe) -> None:
        self._pipe = pipe

    async def send(self, message: str | bytes) -> None:
        if self._pipe.closed is not None:
            raise PeerGoneError
        self._pipe.to_client.put_nowait(message)

    async def receive(self) -> str | bytes:
        message = await self._pipe.to_server.get()
        if isinstance(message, WireClosedError):
            raise PeerGoneError
        return message


def memory_connector(endpoint: Endpoint) -> Connector:
    """Connections to ``endpoint`` inside this process: for sessions on virtual time."""

    async def connect(url: str, headers: Mapping[str, str], key: Secret) -> Wire:
        target = url.split("://", 1)[-1]
        target = target[target.index("/") :] if "/" in target else "/"
        lower = {name.lower(): value for name, value in headers.items()}
        refusal = endpoint.refusal(target, lower)
        if refusal is not None:
            raise refused_handshake(refusal.status, key.scrub(refusal.body), refusal.retry_after)
        pipe = _MemoryPipe()

        async def serve() -> None:
            code, reason = 1000, ""
            try:
                await endpoint.converse(_ServerEnd(pipe), target, lower)
            except CloseConnection as order:
                code, reason = order.code or 1006, order.reason
            except PeerGoneError:
                pass
            finally:
                pipe.closed = pipe.closed or WireClosedError(code, key.scrub(reason))
                pipe.to_client.put_nowait(pipe.closed)

        return _ClientEnd(pipe, asyncio.create_task(serve()))

    return Connector(connect, virtual_time=True)
