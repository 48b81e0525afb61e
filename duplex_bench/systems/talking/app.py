"""The page to talk from, and the socket between it and a system. One conversation at a time.

Over the socket: binary messages are a byte (0 system, 1 what is played to it) and PCM16 at 24 kHz, little endian; text
messages are JSON events. The page sends binary PCM16 of the microphone, and ``{"kind": "stop"}``.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlsplit

import numpy as np
from fastapi import FastAPI, WebSocket, WebSocketDisconnect
from fastapi.staticfiles import StaticFiles
from starlette.middleware.trustedhost import TrustedHostMiddleware

from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import SYSTEM_ERRORS, OpenRequest, System
from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.systems.talking.partner import TALK_RATE_HZ, Partner, partner_for

HOSTS: Final = ("127.0.0.1", "localhost", "[::1]")
_SYSTEM, _PLAYED = b"\x00", b"\x01"
_FRAME: Final = TALK_RATE_HZ // 50
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class PlayableItem:
    """An item as the page lists it."""

    item_id: str
    track: str
    protocol: str
    seconds: float


@dataclass(frozen=True)
class Played:
    """What of an item is played: its request, and audio (n,) float32 at 24 kHz with the silence that follows."""

    request: OpenRequest
    live: Samples
    omitted: tuple[str, ...] = ()


def create_app(
    system: System | PushSystem,
    title: str,
    items: Sequence[PlayableItem] = (),
    played: Callable[[str], Played] | None = None,
) -> FastAPI:
    """The application.

    Args:
        system: Who is talked to.
        title: Its name on the page.
        items: Those that the page offers to play.
        played: What to play of an item, by id; raises KeyError or ValueError.
    """
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(HOSTS))
    busy = asyncio.Lock()

    @app.get("/about")
    def about() -> dict[str, Any]:
        return {"title": title, "items": [asdict(item) for item in items]}

    @app.websocket("/talk")
    async def talk(socket: WebSocket, item: str = "") -> None:
        # Any page of the web may open a socket to loopback: only ours may talk.
        if not _is_ours(socket):
            await socket.close(1008)
            return
        await socket.accept()
        if busy.locked():
            await _tell(socket, "error", "somebody is talking to it already: close the other page")
            await socket.close()
            return
        async with busy:
            await _converse(socket, system, played, item)

    app.mount("/", StaticFiles(directory=str(files("duplex_bench.systems.talking") / "page"), html=True))
    return app


def _is_ours(socket: WebSocket) -> bool:
    origin, host = socket.headers.get("origin"), socket.headers.get("host")
    return origin is None or urlsplit(origin).netloc == host


async def _converse(
    socket: WebSocket, system: System | PushSystem, played: Callable[[str], Played] | None, item: str
) -> None:
    partner: Partner | None = None
    try:
        chosen = played(item) if item and played is not None else None
        partner = partner_for(system)
        await partner.open(chosen.request if chosen else OpenRequest(seed=0, stimulus_id="talk"))
        await _tell(socket, "ready", omitted=list(chosen.omitted) if chosen else [])
        source = _play(socket, partner, chosen.live) if chosen else _listen(socket, partner)
        await _first_to_end(source, _speak(socket, partner), _gone(socket) if chosen else None)
        await _tell(socket, "end")
    except WebSocketDisconnect:
        pass
    except SYSTEM_ERRORS as error:
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await _tell(socket, "error", f"{type(error).__name__}: {error}")
    finally:
        if partner is not None:
            await partner.close()
        with contextlib.suppress(RuntimeError, WebSocketDisconnect):
            await socket.close()


async def _first_to_end(*works: Any) -> None:
    tasks = [asyncio.create_task(work) for work in works if work is not None]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


async def _listen(socket: WebSocket, partner: Partner) -> None:
    """The microphone, until the page says stop."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            raise WebSocketDisconnect(1000)
        data = message.get("bytes")
        if data is None:
            return
        if len(data) > _MOST_BYTES or len(data) % 2:
            raise ValueError("sound comes as whole PCM16 samples, at most 1 MiB at a time")
        await partner.hear(from_pcm16(np.frombuffer(data, dtype="<i2").astype(np.int16)))


async def _gone(socket: WebSocket) -> None:
    """While an item is played: until the page says stop or leaves."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(1000)


async def _play(socket: WebSocket, partner: Partner, live: Samples) -> None:
    """An item at the pace of time, to the system and to the page."""
    began_s = asyncio.get_running_loop().time()
    for number in range(-(-len(live) // _FRAME)):
        frame = live[number * _FRAME : (number + 1) * _FRAME]
        await wait_until(began_s + (number + 1) * _FRAME / TALK_RATE_HZ)
        await socket.send_bytes(_PLAYED + to_pcm16(frame).astype("<i2").tobytes())
        await partner.hear(frame)


async def _speak(socket: WebSocket, partner: Partner) -> None:
    async for said in partner.said():
        if said.pcm is not None:
            if len(said.pcm):
                await socket.send_bytes(_SYSTEM + to_pcm16(said.pcm).astype("<i2").tobytes())
        else:
            await _tell(socket, said.kind, said.text, **said.data)


async def _tell(socket: WebSocket, event: str, text: str | None = None, **data: Any) -> None:
    await socket.send_json({**data, "kind": event, "text": text})
