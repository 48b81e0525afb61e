import base64
import json

import numpy as np
import pytest

from duplex_bench.rollout.virtual_time import run_on_virtual_time
from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.systems.adapters.wire import Secret
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.faults import NONE
from duplex_bench.systems.serving.peers import memory_connector
from duplex_bench.systems.serving.voices import ToneVoice

ADDRESSES = {
    "openai-realtime": "ws://memory/v1/realtime?model=m",
    "xai-realtime": "ws://memory/v1/realtime?model=m",
    "gemini-live": "ws://memory/BidiGenerateContent",
}


class RawClient:
    """A client that says exactly what a test tells it to, and keeps every message with its time."""

    def __init__(self, wire, loop):
        self.wire, self.loop, self.seen = wire, loop, []

    async def say(self, kind, **fields):
        await self.wire.send(json.dumps({"type": kind, **fields}))

    async def tell(self, message):
        await self.wire.send(json.dumps(message))

    async def until(self, kind):
        while True:
            message = json.loads(await self.wire.receive())
            self.seen.append((self.loop.time(), message))
            if message.get("type") == kind or kind in message or kind in message.get("serverContent", {}):
                return message

    async def append(self, ms, level=0.1, rate=24_000):
        audio = np.full(rate * ms // 1000, level, dtype=np.float32)
        await self.say("input_audio_buffer.append", audio=base64.b64encode(to_pcm16(audio).tobytes()).decode())

    async def update(self, **audio_input):
        session = {"type": "realtime", "audio": {"input": audio_input}}
        await self.say("session.update", event_id="u", session=session)

    def kinds(self):
        return [message.get("type") for _, message in self.seen]


@pytest.fixture
def talk():
    """``talk(protocol, program, faults)`` runs ``program(client)`` on virtual time; returns the service."""

    def run(protocol, program, faults=NONE, voice=None, *, address=None, headers=None):
        service = SERVICES[protocol](voice or ToneVoice(2.0), None, faults, keep=9)

        async def main():
            import asyncio

            wire = await memory_connector(service).connect(address or ADDRESSES[protocol], headers or {}, Secret(""))
            try:
                await program(RawClient(wire, asyncio.get_running_loop()))
            finally:
                await wire.close()

        run_on_virtual_time(main())
        return service

    return run
