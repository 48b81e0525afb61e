"""Serves an endpoint over WebSockets on loopback."""

from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final

from duplex_bench.systems.adapters.wire import SILENT_LOGGER
from duplex_bench.systems.serving.delivery import Desk
from duplex_bench.systems.serving.peers import CloseConnection, Endpoint, PeerGoneError

LOOPBACK: Final = "127.0.0.1"


def threaded_desk() -> Desk:
    """Heavy work on one thread, so that events go on while a turn is recognised."""
    return Desk(ThreadPoolExecutor(1, thread_name_prefix="voice"))


class _SocketPeer:
    def __init__(self, socket: Any) -> None:
        self._socket = socket

    async def send(self, message: str | bytes) -> None:
        from websockets.exceptions import ConnectionClosed

        try:
            await self._socket.send(message)
        except ConnectionClosed:
            raise PeerGoneError from None

    async def receive(self) -> str | bytes:
        from websockets.exceptions import ConnectionClosed

        try:
            message: str | bytes = await self._socket.recv()
        except ConnectionClosed:
            raise PeerGoneError from None
        return message


@asynccontextmanager
async def hosted(endpoint: Endpoint, port: int = 0, host: str = LOOPBACK) -> AsyncIterator[int]:
    """Serve ``endpoint`` while the context lasts; gives the port.

    Args:
        endpoint: What to serve.
        port: 0 for any that is free.
        host: Loopback by default; another address lets others in.

    Raises:
        OSError: The port is taken.
    """
    from websockets.asyncio.server import ServerConnection, serve
    from websockets.http11 import Request, Response

    def process(socket: ServerConnection, request: Request) -> Response | None:
        refusal = endpoint.refusal(request.path, _lower(request))
        if refusal is None:
            return None
        response = socket.respond(HTTPStatus(refusal.status), refusal.body)
        if refusal.retry_after:
            response.headers["Retry-After"] = refusal.retry_after
        return response

    async def handle(socket: ServerConnection) -> None:
        request = socket.request
        if request is None:
            return
        try:
            await endpoint.converse(_SocketPeer(socket), request.path, _lower(request))
        except PeerGoneError:
            pass
        except CloseConnection as order:
            if order.code:
                await socket.close(order.code, order.reason[:120])
            else:
                socket.transport.abort()

    async with serve(
        handle, host, port, process_request=process, max_size=None, compression=None, logger=SILENT_LOGGER
    ) as server:
        yield next(iter(server.sockets)).getsockname()[1]


def _lower(request: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in request.headers.raw_items()}
