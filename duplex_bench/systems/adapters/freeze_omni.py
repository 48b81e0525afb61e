"""Freeze-Omni over its own demo server, by Socket.IO (docs/systems/freeze-omni.md).

The server hands out at most one piece of speech for each piece of audio that it is sent, and a piece may be seconds
long: what a listener hears follows from the player. ``stop_tts`` says that the player drops what it holds.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.push import Detection, PushEvent, RateLimitedError
from duplex_bench.contract.types import OpenRequest, Spec, TransportError, checked_unit
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.systems.adapters import socketio
from duplex_bench.systems.adapters.socketio import Control, Event
from duplex_bench.systems.adapters.stream_session import Address, ServedModel, StreamSession
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector, websockets

ADDRESS_ENV: Final = "DUPLEX_BENCH_FREEZE_OMNI_URL"
SPEC: Final = Spec(
    in_rate_hz=16_000,
    out_rate_hz=24_000,
    unit_in_samples=320,
    capabilities=frozenset({"text_prompt"}),
)
_CANNOT_BE_TOLD: Final = "the server remembers what it generated, heard or not"


@dataclass(frozen=True, slots=True)
class FreezeSettings:
    """What a card may set.

    Attributes:
        url: Address of the server, overridden by the variable.
        verify_certificate: False for a server that made its certificate itself (its flag ``--ssl``).
    """

    url: str = ""
    verify_certificate: bool = True


class FreezeSession(StreamSession):
    """See ``PushSession``. A response ends where the server says that speech is to stop."""

    cannot_be_told = _CANNOT_BE_TOLD

    def __init__(self, connector: Connector, address: Address) -> None:
        super().__init__(SPEC, connector, address)
        self._packets = socketio.PacketReader()
        self._responses = 1
        self._begun = False
        self._pieces = 0

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect, say who the model is to be, start a recording: only then the prompt takes effect."""
        self.check(request, detection)
        await self.connect(f"{self._address.found().rstrip('/')}{socketio.PATH}{socketio.QUERY}")
        await self._until(lambda packet: isinstance(packet, Control) and packet.kind == socketio.OPEN)
        await self.send(socketio.MESSAGE + socketio.CONNECT)
        await self._until(lambda packet: isinstance(packet, Control) and packet.kind == "40")
        if request.prompt.text is not None:
            await self._emit(Event("prompt_text", (request.prompt.text,)))
            await self._until(lambda packet: isinstance(packet, Event) and packet.name == "prompt_success")
        await self._emit(Event("recording-started"))
        # The server empties the player before it listens.
        await self._until(lambda packet: isinstance(packet, Event) and packet.name == "stop_tts")

    async def push(self, frame: Samples) -> None:
        """Send one frame: bytes of PCM16 as a list of integers, inside JSON, inside JSON."""
        self._frames += 1
        data = list(to_pcm16(checked_unit(frame, SPEC)).astype("<i2").tobytes())
        told = json.dumps({"sample_rate": SPEC.in_rate_hz, "audio": data}, separators=(",", ":"))
        await self._emit(Event("audio", (told,)))

    async def receive(self) -> list[PushEvent]:
        """What the next message says; pings are answered."""
        if self._early:
            early, self._early = self._early, []
            return early
        return await self._said(self._packets.take(await self.next_raw()))

    async def say_goodbye(self) -> None:
        """Leave, so that the server frees the place at once."""
        try:
            await self.send(socketio.MESSAGE + socketio.DISCONNECT)
        except TransportError as error:
            self._warnings.append(f"the connection was gone before it was closed: {error}")

    def told_at_close(self) -> dict[str, Any]:
        """How many pieces of speech came."""
        return {"pieces": self._pieces}

    async def _emit(self, event: Event) -> None:
        for message in socketio.encoded_event(event):
            await self.send(message)

    async def _until(self, wanted: Any) -> None:
        while True:
            packet = self._packets.take(await self.next_raw())
            if wanted(packet):
                return
            self._early += await self._said(packet)

    async def _said(self, packet: Event | Control | None) -> list[PushEvent]:
        if packet is None:
            return []
        if isinstance(packet, Control):
            if packet.kind == socketio.PING:
                await self.send(socketio.PONG)
            elif packet.kind == "44":
                raise TransportError(f"the server refused the connection: {packet.data!r}")
            elif packet.kind in (socketio.CLOSE, "41"):
                raise TransportError("the server ended the session")
            return []
        if packet.name == "audio":
            return self._audio(packet.arguments)
        if packet.name == "stop_tts":
            self._responses += 1
            self._begun = False
            return [PushEvent("flush", data={"name": "stop_tts"})]
        if packet.name == "too_many_users":
            raise RateLimitedError("all places of the server are taken: wait, or raise its --max_users")
        if packet.name == "out_time":
            raise TransportError(
                "the server ended the session for want of speech: user audio does not renew its timer, raise --timeout"
            )
        return [PushEvent("note", data={"name": packet.name})]

    def _audio(self, arguments: tuple[Any, ...]) -> list[PushEvent]:
        if not arguments or not isinstance(arguments[0], bytes):
            raise TransportError("the server sent audio that is no bytes")
        whole = len(arguments[0]) // 2 * 2
        if whole < len(arguments[0]):
            self._warnings.append("a piece of audio had an odd byte at its end, which was dropped")
        pcm = from_pcm16(np.frombuffer(arguments[0][:whole], dtype="<i2").astype(np.int16))
        self._pieces += 1
        response = f"r{self._responses}"
        begun = [] if self._begun else [PushEvent("begun", response)]
        self._begun = True
        return [*begun, PushEvent("audio", response, pcm=pcm)] if len(pcm) else begun


def create(settings: Mapping[str, Any], connector: Connector | None = None) -> ServedModel:
    """Freeze-Omni; raises ValueError for settings that make no sense."""
    made = settings_from(FreezeSettings, settings, "freeze-omni")
    chosen = connector or (WEBSOCKET if made.verify_certificate else websockets(verify=False))
    return ServedModel(SPEC, chosen, lambda: FreezeSession(chosen, Address(ADDRESS_ENV, made.url)))
