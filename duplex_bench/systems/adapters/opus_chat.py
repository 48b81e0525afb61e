"""Sessions with servers of Moshi's kind: one byte of kind before each message, audio as one Ogg-Opus stream each way.

The stream is a track without turns: what comes back is audio of every instant, silence included.
"""

from typing import Any, Final

from duplex_bench.contract.push import Detection, PushEvent
from duplex_bench.contract.types import OpenRequest, Spec, TransportError, checked_unit
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.drift import Drift
from duplex_bench.systems.adapters.ogg_opus import OggOpusReader, OggOpusWriter
from duplex_bench.systems.adapters.stream_session import Address, StreamSession
from duplex_bench.systems.adapters.wire import Connector

HANDSHAKE: Final = 0
AUDIO: Final = 1
TEXT: Final = 2
ERROR: Final = 5
PATH: Final = "/api/chat"


class OpusChatSession(StreamSession):
    """A session; ``query`` is what follows the path.

    Nothing is sent before the server's handshake: until then servers throw away what comes, and with it the header.
    """

    def __init__(self, spec: Spec, connector: Connector, address: Address, query: str = "") -> None:
        super().__init__(spec, connector, address)
        self._query = query
        self._writer = OggOpusWriter(spec.in_rate_hz)
        self._reader = OggOpusReader(spec.out_rate_hz)
        self._drift = Drift()

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect and wait for the server's turn for us; other clients of it are served one after another."""
        self.check(request, detection)
        await self.connect(f"{self._address.found().rstrip('/')}{PATH}{self.query_for(request)}")
        while True:
            raw = await self.next_raw()
            if isinstance(raw, bytes) and raw[:1] == bytes([HANDSHAKE]):
                break
            self._early += self.read(raw)

    async def push(self, frame: Samples) -> None:
        """Send one frame."""
        self._frames += 1
        data = self._writer.append(checked_unit(frame, self.spec))
        if data:
            await self.send(bytes([AUDIO]) + data)
        self._drift.sent(self.spec.unit_s)

    def query_for(self, request: OpenRequest) -> str:
        """What follows the path for this session."""
        del request
        return self._query

    def read(self, raw: str | bytes) -> list[PushEvent]:
        """Audio, words, or nothing that matters."""
        if isinstance(raw, str):
            raise TransportError(f"the server sent text where frames are due: {raw[:60]!r}")
        if not raw:
            return []
        kind, payload = raw[0], raw[1:]
        if kind == AUDIO:
            pcm = self._reader.append(payload)
            self._drift.received(len(pcm) / self.spec.out_rate_hz)
            # No response: a track has none, and silence on it begins none.
            return [PushEvent("audio", pcm=pcm)] if len(pcm) else []
        if kind == TEXT:
            text = payload.decode("utf-8", "replace")
            return [PushEvent("text", text=text)] if text else []
        if kind == ERROR:
            raise TransportError(f"the server reported: {payload.decode('utf-8', 'replace')[:200]}")
        return [PushEvent("note", data={"name": f"message of kind {kind}", "bytes": len(payload)})]

    def told_at_close(self) -> dict[str, Any]:
        """How far the server lagged behind what it was sent."""
        return {"owed_s": round(self._drift.owed_s, 3), "least_owed_s": self._drift.least_s}
