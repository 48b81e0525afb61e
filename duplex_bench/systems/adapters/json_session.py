"""What the sessions of hosted systems share: JSON messages over one connection, and what its end means."""

import json
from typing import Any

from duplex_bench.contract.types import TransportError
from duplex_bench.systems.adapters.wire import Wire, WireClosedError, as_message


class JsonSession:
    """Base of a session: ``_wire`` is set once it is connected, ``_meant`` says what a close of the vendor means."""

    _wire: Wire | None = None

    def _meant(self, error: WireClosedError) -> Exception:
        return error

    async def _send(self, message: dict[str, Any]) -> None:
        await self._send_text(json.dumps(message))

    async def _send_text(self, message: str) -> None:
        try:
            await self._connected().send(message)
        except WireClosedError as error:
            raise self._meant(error) from None

    async def _next(self) -> dict[str, Any]:
        try:
            return as_message(await self._connected().receive())
        except WireClosedError as error:
            raise self._meant(error) from None

    def _connected(self) -> Wire:
        if self._wire is None:
            raise TransportError("the session is not open")
        return self._wire
