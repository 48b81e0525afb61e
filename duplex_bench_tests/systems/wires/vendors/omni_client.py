"""vLLM-Omni's own duplex client holds a conversation with the server at the address given; prints what came as JSON."""

import asyncio
import importlib.util
import json
import math
import struct
import sys
import types
from pathlib import Path

# The package's own __init__ loads the whole server: its client is imported beside it.
package = types.ModuleType("vllm_omni")
package.__path__ = list(importlib.util.find_spec("vllm_omni").submodule_search_locations)
sys.modules["vllm_omni"] = package

from vllm_omni.clients.duplex import DuplexClient, audio_data_url  # noqa: E402
from vllm_omni.clients.minicpmo_4_5 import create_duplex_session_config  # noqa: E402


async def main(url, voice):
    config = create_duplex_session_config(ref_audio=audio_data_url(Path(voice)))
    told = {"audio_bytes": 0}
    async with DuplexClient(url, model="openbmb/MiniCPM-o-4_5", config=config) as client:
        told["chunk_period_ms"] = client.session_info["capabilities"]["chunk_period_ms"]
        tone = b"".join(struct.pack("<h", int(6000 * math.sin(i / 3))) for i in range(16_000))
        sending = asyncio.create_task(client.stream_pcm(tone + bytes(2 * 16_000 * 6), chunk_ms=100))
        async for response in client.responses():
            if response.decision == "listen":
                continue
            async for chunk in response.audio():
                told["audio_bytes"] += len(chunk)
                await client.ack_playback(response.played_ms, response_id=response.response_id)
            await response.wait()
            told["transcript"] = response.transcript
            told["status"] = response.done_event.raw["response"]["status"]
            break
        sending.cancel()
    sys.stdout.write(json.dumps(told))


asyncio.run(main(sys.argv[1], sys.argv[2]))
