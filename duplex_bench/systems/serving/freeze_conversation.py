"""One conversation of a Freeze-Omni demo server: Socket.IO events, speech handed out piece by piece on request.

After the vendor's server (docs/systems/freeze-omni.md): a new reply first stops the one before it, which lives on in
the queue until that was handed out; prompts take effect with the next recording; user audio does not renew the timer.
"""

import asyncio
import json
from collections import deque
from typing import Any, Final

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.systems.adapters import socketio
from duplex_bench.systems.adapters.socketio import Control, Event
from duplex_bench.systems.serving.model_conversation import ModelConversation
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.speaking import Setting

IN_RATE_HZ: Final = 16_000
# The model decides once for so much audio, and speech comes in pieces of so many codec tokens of 25 ms (40 and 10).
CHUNK: Final = 2560
PIECE: Final = 40 * 600
# Leading samples below this level are cut from the first piece.
FLOOR: Final = 0.03
PING_S: Final = 25.0


class FreezeConversation(ModelConversation):
    """See the module.

    Args:
        peer: The client.
        setting: Voice, desk, manner and faults.
        target: Path and query.
        name: Session id.
    """

    def __init__(self, peer: Peer, setting: Setting, target: str, name: str) -> None:
        super().__init__(peer, setting, target, IN_RATE_HZ)
        self._name = name
        self._packets = socketio.PacketReader()
        self._rest = np.zeros(0, dtype=np.float32)
        self._queue: deque[Samples] = deque()
        self._prompt = ""
        self._stop_due = False
        self._announced = 0

    async def serve(self) -> None:
        """The handshake, then events until the client leaves."""
        told = {"sid": self._name, "upgrades": [], "pingTimeout": 20_000, "pingInterval": int(PING_S * 1000),
                "maxPayload": 1_000_000}  # fmt: skip
        await self.send(socketio.OPEN + json.dumps(told))
        pings = asyncio.get_running_loop().create_task(self._ping())
        try:
            while True:
                await self._take(self._packet(await self.peer.receive()))
        finally:
            pings.cancel()
            await asyncio.gather(pings, return_exceptions=True)

    async def ended(self) -> None:
        """The idle timer: said, and the place is freed; the socket stays open until its next event."""
        await self._emit(Event("out_time"))
        raise CloseConnection(1000, "timeout")

    def garbage(self) -> str:
        """What is no packet."""
        return "<html>502 Bad Gateway</html>"

    def filler(self) -> str | bytes:
        """An event of a name that says nothing."""
        return socketio.encoded_event(Event("filler"))[0]

    def _packet(self, message: str | bytes) -> Event | Control | None:
        try:
            return self._packets.take(message)
        except ConnectionError:
            raise CloseConnection(1000, "invalid packet") from None

    async def _take(self, packet: Event | Control | None) -> None:
        if isinstance(packet, Control):
            if packet.kind == socketio.MESSAGE + socketio.CONNECT:
                await self.send(f"40{json.dumps({'sid': self._name})}")
                if self.faults.busy:
                    await self._emit(Event("too_many_users"))
            elif packet.kind in (socketio.CLOSE, "41"):
                raise CloseConnection(1000, "client left")
        elif packet is not None:
            await self._event(packet)

    async def _event(self, event: Event) -> None:
        if self.faults.busy:
            # Who found no place is thrown out when it goes on.
            await self.send(socketio.MESSAGE + socketio.DISCONNECT)
            raise CloseConnection(1000)
        if event.name == "prompt_text":
            self._prompt = str(event.arguments[0]) if event.arguments else ""
            await self._emit(Event("prompt_success"))
        elif event.name in ("recording-started", "recording-stopped"):
            await self._emit(Event("stop_tts"))
            self.renew()
            self.talker.stop()
            self._queue.clear()
            self.instructions = self._prompt
            await self._emit(Event("stop_tts"))
            await self.moment("created")
        elif event.name == "audio":
            await self._hear(event.arguments)

    async def _hear(self, arguments: tuple[Any, ...]) -> None:
        ready = self.talker.next
        if ready is not None and ready.number != self._announced:
            self._announced = ready.number
            self._stop_due = True
        if self._queue:
            await self._hand_out(self._queue.popleft())
        elif self._stop_due:
            # The old reply is out of the queue: now the player is told to drop it, and the new one may begin.
            self._stop_due = False
            await self._emit(Event("stop_tts"))
            self._begin()
        self._rest = np.concatenate([self._rest, _samples(arguments)])
        while len(self._rest) >= CHUNK:
            chunk, self._rest = self._rest[:CHUNK], self._rest[CHUNK:]
            self.talker.hear(chunk)

    def _begin(self) -> None:
        """Queue a reply that is ready, in pieces."""
        reply = self.talker.begin()
        if reply is None:
            return
        audio = reply.take(len(reply.audio))
        loud = np.flatnonzero(np.abs(audio) > FLOOR)
        audio = audio[loud[0] :] if len(loud) else audio
        self._queue += [audio[at : at + PIECE] for at in range(0, len(audio), PIECE)]

    async def _hand_out(self, piece: Samples) -> None:
        self.renew()
        await self.moment("committed")
        data = to_pcm16(piece).astype("<i2").tobytes()
        for message in socketio.encoded_event(Event("audio", (data + b"\0" if self.faults.odd_lengths else data,))):
            await self.send(message)
        await self.moment("audio")

    async def _emit(self, event: Event) -> None:
        for message in socketio.encoded_event(event):
            await self.send(message)

    async def _ping(self) -> None:
        loop = asyncio.get_running_loop()
        due_s = loop.time() + PING_S
        while True:
            await wait_until(due_s)
            await self.send(socketio.PING)
            due_s += PING_S


def _samples(arguments: tuple[Any, ...]) -> Samples:
    try:
        told = json.loads(arguments[0])
        data = bytes(told["audio"])
    except (ValueError, TypeError, KeyError, IndexError):
        # The vendor's handler raises here, and goes on with the next event.
        return np.zeros(0, dtype=np.float32)
    return from_pcm16(np.frombuffer(data[: len(data) // 2 * 2], dtype="<i2").astype(np.int16))
