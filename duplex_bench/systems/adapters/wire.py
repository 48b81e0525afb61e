"""Message connections to hosted systems: one socket library for all vendors, keys that never show, errors that say
what to do.
"""

import asyncio
import base64
import json
import logging
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, Protocol

import numpy as np

from duplex_bench.contract.push import RateLimitedError, RefusedError
from duplex_bench.contract.types import TransportError
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16

# The library writes headers to its debug log: it gets a logger that keeps nothing.
SILENT_LOGGER: Final = logging.getLogger("duplex_bench.wire")
SILENT_LOGGER.addHandler(logging.NullHandler())
SILENT_LOGGER.propagate = False
SILENT_LOGGER.setLevel(logging.CRITICAL)

_SHOWN_CHARS: Final = 300
PING_LIMIT_S: Final = 2.0
REMOVED: Final = "[removed]"


class WireClosedError(TransportError):
    """The connection ended; ``code`` and ``close_reason`` as in the WebSocket close frame."""

    def __init__(self, code: int, close_reason: str = "") -> None:
        super().__init__(f"the connection was closed, code {code}{': ' if close_reason else ''}{close_reason}")
        self.code = code
        self.close_reason = close_reason


@dataclass(frozen=True, slots=True)
class Secret:
    """A key that shows in no text made of it."""

    value: str = field(repr=False)

    def __str__(self) -> str:
        return REMOVED

    def __bool__(self) -> bool:
        return bool(self.value)

    def scrub(self, text: str) -> str:
        """``text`` without the key."""
        return text.replace(self.value, REMOVED) if self.value else text


class Wire(Protocol):
    """A connection that carries whole messages, text or binary, in order."""

    async def send(self, message: str | bytes) -> None:
        """Send one; raises WireClosedError."""
        ...

    async def receive(self) -> str | bytes:
        """Wait for one; raises WireClosedError."""
        ...

    async def round_trip_s(self) -> float | None:
        """Seconds to the other end and back, measured now; None if it did not answer in time."""
        ...

    async def close(self) -> None:
        """End the connection; a second call does nothing."""
        ...


@dataclass(frozen=True)
class Connector:
    """How a system is reached: a real socket, or memory (then on virtual time)."""

    connect: Callable[[str, Mapping[str, str], Secret], Awaitable[Wire]]
    virtual_time: bool = False


def key_from(names: tuple[str, ...]) -> Secret:
    """The first key that is set in the environment, in order of ``names``; empty if none is."""
    return Secret(next((os.environ[name] for name in names if os.environ.get(name)), ""))


async def open_websocket(url: str, headers: Mapping[str, str], key: Secret, *, verify: bool = True) -> Wire:
    """Connect a WebSocket; without ``verify`` a certificate that nobody vouches for is taken.

    Raises:
        RefusedError: The server refused key, model, region or quota.
        RateLimitedError: It asks to come back later.
        TransportError: No connection.
    """
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus, WebSocketException

    try:
        socket = await connect(
            url,
            additional_headers=dict(headers),
            max_size=None,
            open_timeout=30,
            # Some servers never answer a close: the socket is dropped then.
            close_timeout=2,
            compression=None,
            logger=SILENT_LOGGER,
            ssl=_tls(url, verify),
        )
    except InvalidStatus as error:
        body = (error.response.body or b"").decode("utf-8", "replace")[:_SHOWN_CHARS]
        retry = error.response.headers.get("retry-after", "")
        # The chain is cut: the library's error holds the request with its headers.
        raise refused_handshake(error.response.status_code, key.scrub(body), retry) from None
    except (WebSocketException, OSError) as error:
        raise TransportError(key.scrub(f"no connection: {type(error).__name__}: {error}")) from None
    return _Socket(socket, key)


def refused_handshake(status: int, body: str, retry_after: str = "") -> Exception:
    """What an HTTP status at the upgrade means, as an error with its remedy."""
    told = f"HTTP {status} at connection{': ' if body else ''}{body}"
    if status == 429 and "insufficient_quota" not in body:
        return RateLimitedError(told, float(retry_after) if retry_after.replace(".", "", 1).isdigit() else None)
    if status == 429:
        return RefusedError(f"{told}. The account has no quota left: add credit, then run again")
    if status in (401, 403) or (status == 400 and "key" in body.lower()):
        return RefusedError(f"{told}. The key was refused: check the variable named by the card, its rights and region")
    if status == 404:
        return RefusedError(f"{told}. The model or path is not known: set model in the card to one that is offered")
    if 400 <= status < 500:
        return RefusedError(told)
    return TransportError(told)


class _Socket:
    def __init__(self, socket: Any, key: Secret) -> None:
        self._socket = socket
        self._key = key

    async def send(self, message: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message)
        except ConnectionClosed as error:
            raise self._closed(error) from None

    async def receive(self) -> str | bytes:
        from websockets.exceptions import ConnectionClosed

        try:
            message: str | bytes = await self._socket.recv()
        except ConnectionClosed as error:
            raise self._closed(error) from None
        return message

    async def round_trip_s(self) -> float | None:
        from websockets.exceptions import ConnectionClosed

        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout(PING_LIMIT_S):
                await (await self._socket.ping())
        except (TimeoutError, ConnectionClosed):
            return None
        return loop.time() - began_s

    async def close(self) -> None:
        await self._socket.close()

    def _closed(self, error: Any) -> WireClosedError:
        frame = error.rcvd
        return WireClosedError(1006 if frame is None else frame.code, "" if frame is None else
                               self._key.scrub(frame.reason))  # fmt: skip


WEBSOCKET: Final = Connector(open_websocket)


def websockets(*, verify: bool) -> Connector:
    """Real sockets; without ``verify`` for servers that made their certificate themselves, which carry no key."""
    return Connector(partial(open_websocket, verify=verify))


def _tls(url: str, verify: bool) -> ssl.SSLContext | None:
    if not url.startswith("wss:"):
        return None
    context = ssl.create_default_context()
    if verify:
        return context
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def as_message(raw: str | bytes) -> dict[str, Any]:
    """A message as a JSON object.

    Raises:
        TransportError: It is none.
    """
    try:
        message = json.loads(raw)
    except ValueError:
        message = None
    if not isinstance(message, dict):
        shown = raw[:40]
        raise TransportError(f"the server sent something that is no JSON object: {shown!r}")
    return message


def encoded(frame: Samples) -> str:
    """Float audio as base64 of PCM16, little endian."""
    return base64.b64encode(to_pcm16(frame).astype("<i2").tobytes()).decode("ascii")


@dataclass
class PcmStream:
    """Base64 PCM16 deltas of one response as float audio; an odd byte waits for the next delta."""

    rest: bytes = b""
    samples: int = 0

    def take(self, delta: object) -> Samples:
        """The samples of one delta.

        Raises:
            TransportError: It is no base64.
        """
        try:
            data = self.rest + base64.b64decode(delta if isinstance(delta, str) else "?", validate=True)
        except ValueError:
            raise TransportError("the server sent audio that is no base64") from None
        whole = len(data) - len(data) % 2
        self.rest = data[whole:]
        samples = from_pcm16(np.frombuffer(data[:whole], dtype="<i2").astype(np.int16))
        self.samples += len(samples)
        return samples


async def waited(event: asyncio.Event, limit_s: float, what: str) -> float:
    """Wait for ``event``; how long it took.

    Raises:
        TransportError: It did not come within ``limit_s``.
    """
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    try:
        async with asyncio.timeout(limit_s):
            await event.wait()
    except TimeoutError:
        raise TransportError(f"no {what} within {limit_s:g} s") from None
    return loop.time() - began_s
