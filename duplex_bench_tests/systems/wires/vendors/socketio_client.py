"""The python-socketio client talks to the server at the address given; prints the events that came as JSON."""

import asyncio
import json
import math
import struct
import sys

import socketio


async def main(url):
    client = socketio.AsyncClient()
    came, spoke = [], asyncio.Event()

    @client.on("*")
    async def any_event(name, *arguments):
        came.append([name, len(arguments[0]) if arguments and isinstance(arguments[0], bytes) else None])
        if name == "audio":
            spoke.set()

    await client.connect(url, transports=["websocket"])
    await client.emit("prompt_text", "You are Bo.")
    await client.emit("recording-started")
    for number in range(400):
        level = 6000 if number < 50 else 0
        pcm = struct.pack("<320h", *(int(level * math.sin(i / 3)) for i in range(320)))
        await client.emit("audio", json.dumps({"sample_rate": 16000, "audio": list(pcm)}))
        try:
            await asyncio.wait_for(spoke.wait(), 0.02)
            break
        except TimeoutError:
            continue
    await client.disconnect()
    sys.stdout.write(json.dumps(came))


asyncio.run(main(sys.argv[1]))
