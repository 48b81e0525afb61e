"""Socket.IO 5 over Engine.IO 4 on one WebSocket: as much of it as events, text and binary, need in either direction.

A packet is one text message: a digit of Engine.IO, for messages a digit of Socket.IO, then JSON; binary parts follow as
messages of their own, in the place of numbered placeholders.
"""

import json
from dataclasses import dataclass, field
from typing import Any, Final

from duplex_bench.contract.types import TransportError

PATH: Final = "/socket.io/"
QUERY: Final = "?EIO=4&transport=websocket"
OPEN, CLOSE, PING, PONG, MESSAGE = "0", "1", "2", "3", "4"
CONNECT, DISCONNECT, EVENT, ACK, CONNECT_ERROR, BINARY_EVENT = "0", "1", "2", "3", "4", "5"


@dataclass(frozen=True, slots=True)
class Event:
    """An event with its arguments; binary ones are bytes."""

    name: str
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Control:
    """A packet that is no event: its digits and what JSON it brought."""

    kind: str
    data: Any = None


def encoded_event(event: Event) -> list[str | bytes]:
    """The messages of one event: text, and one for each binary argument."""
    parts = [argument for argument in event.arguments if isinstance(argument, bytes)]
    numbers = iter(range(len(parts)))
    plain = [
        {"_placeholder": True, "num": next(numbers)} if isinstance(argument, bytes) else argument
        for argument in event.arguments
    ]
    body = json.dumps([event.name, *plain], separators=(",", ":"))
    if not parts:
        return [MESSAGE + EVENT + body]
    return [f"{MESSAGE}{BINARY_EVENT}{len(parts)}-{body}", *parts]


@dataclass
class PacketReader:
    """Puts events together from messages."""

    _waiting: list[Any] = field(default_factory=list)
    _parts: list[bytes] = field(default_factory=list)
    _wanted: int = 0

    def take(self, message: str | bytes) -> Event | Control | None:
        """What is complete with ``message``; None if binary parts are still to come.

        Raises:
            TransportError: It is no packet.
        """
        if isinstance(message, bytes):
            return self._binary(message)
        if self._wanted:
            raise TransportError("the server sent text where the binary part of an event is due")
        kind, rest = message[:1], message[1:]
        if kind in (OPEN, CLOSE, PING, PONG):
            return Control(kind, _json(rest) if kind == OPEN else None)
        if kind != MESSAGE or not rest:
            raise TransportError(f"the server sent something that is no Socket.IO packet: {message[:40]!r}")
        return self._message(rest[0], rest[1:])

    def _message(self, kind: str, body: str) -> Event | Control | None:
        if kind in (CONNECT, DISCONNECT, CONNECT_ERROR):
            return Control(MESSAGE + kind, _json(body) if body else None)
        if kind not in (EVENT, BINARY_EVENT):
            return Control(MESSAGE + kind)
        if kind == BINARY_EVENT:
            count, dash, body = body.partition("-")
            if not dash or not count.isdigit():
                raise TransportError(f"the server sent a broken binary event: {count[:20]!r}")
            self._wanted = int(count)
        found = _json(body[body.find("[") :] if "[" in body else body)
        if not isinstance(found, list) or not found or not isinstance(found[0], str):
            raise TransportError(f"the server sent an event without a name: {body[:40]!r}")
        self._waiting, self._parts = found, []
        return None if self._wanted else self._event()

    def _binary(self, part: bytes) -> Event | None:
        if not self._wanted:
            raise TransportError(f"the server sent {len(part)} bytes that belong to no event")
        self._parts.append(part)
        return self._event() if len(self._parts) == self._wanted else None

    def _event(self) -> Event:
        arguments = []
        for argument in self._waiting[1:]:
            if isinstance(argument, dict) and argument.get("_placeholder") is True:
                number = argument.get("num")
                if not isinstance(number, int) or not 0 <= number < len(self._parts):
                    raise TransportError(f"the server's event names part {number!r} of {len(self._parts)}")
                argument = self._parts[number]
            arguments.append(argument)
        self._wanted = 0
        return Event(self._waiting[0], tuple(arguments))


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise TransportError(f"the server sent a packet that holds no JSON: {text[:40]!r}") from None
