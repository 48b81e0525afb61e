"""What the servers of full-duplex models share: a talker, the moments at which faults strike, the end of a session."""

import asyncio
import json
from collections.abc import Coroutine, Mapping
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.systems.serving.faults import Moment
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.speaking import Setting
from duplex_bench.systems.serving.talker import Talker

FLOOD_MESSAGES: Final = 2000


class ModelConversation:
    """One conversation; a protocol defines ``serve`` and ``ended``.

    Args:
        peer: The client.
        setting: Voice, desk, manner and faults.
        target: Path and query of the connection.
        rate_hz: Rate of the audio that is heard.
    """

    def __init__(self, peer: Peer, setting: Setting, target: str, rate_hz: int) -> None:
        self.peer, self.setting, self.faults = peer, setting, setting.faults
        parts = urlsplit(target)
        self.path: str = parts.path
        self.query: Mapping[str, list[str]] = parse_qs(parts.query)
        self.talker = Talker(setting, rate_hz)
        self.instructions = ""
        self.stalled = False
        self.until_s = 0.0
        self._struck: set[Moment] = set()

    async def converse(self) -> None:
        """Serve until the peer leaves, the session expires, or a fault closes it."""
        loop = asyncio.get_running_loop()
        await self.start()
        self.renew()
        tasks = [loop.create_task(self.serve()), loop.create_task(self._expire())]
        try:
            done, _ = await asyncio.wait({*tasks, self.talker.failure}, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self.talker.close()

    async def start(self) -> None:
        """What comes before the protocol: a slow start, without a word."""
        if self.faults.start_delay_s:
            await wait_until(asyncio.get_running_loop().time() + self.faults.start_delay_s)

    def serve(self) -> Coroutine[Any, Any, None]:
        """The protocol, from the first message to the last."""
        raise NotImplementedError

    async def ended(self) -> None:
        """Tell the client that its time is over, and close."""
        raise CloseConnection(1000, "session over")

    async def send(self, message: str | bytes) -> None:
        """Send one message, unless the fault is that nothing more is sent."""
        if not self.stalled:
            await self.peer.send(message)

    async def send_json(self, message: dict[str, Any]) -> None:
        """Send one message as JSON."""
        await self.send(json.dumps(message))

    async def moment(self, now: Moment) -> None:
        """Where faults strike, each once."""
        if now in self._struck:
            return
        self._struck.add(now)
        if self.faults.garbage_at == now:
            await self.peer.send(self.garbage())
        if self.faults.flood_at == now:
            for _ in range(FLOOD_MESSAGES):
                await self.peer.send(self.filler())
        if self.faults.stall_at == now:
            self.stalled = True
        if self.faults.close_at == now:
            raise CloseConnection(self.faults.close_code, self.faults.close_reason)

    def garbage(self) -> str | bytes:
        """What is no message of the protocol."""
        return "<html>502 Bad Gateway</html>"

    def filler(self) -> str | bytes:
        """A message of the protocol that says nothing."""
        return json.dumps({"type": "filler"})

    def renew(self) -> None:
        """The session may last its full time from now on."""
        self.until_s = asyncio.get_running_loop().time() + self.faults.max_session_s

    async def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < self.until_s:
            await wait_until(self.until_s)
        await self.ended()
