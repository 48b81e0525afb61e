"""One conversation of ``/v1/realtime?mode=audio``: seconds in, seconds of speech or the word that it listens out."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, Final

from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.reference_audio import as_floats, from_floats
from duplex_bench.systems.serving.minicpm_units import MiniCpmConversation
from duplex_bench.systems.serving.peers import CloseConnection

LEAST_SAMPLES: Final = 4000
BUSY: Final = 1013
NO_JSON: Final = 1003


class MiniCpmRealtimeConversation(MiniCpmConversation):
    """See the module. Of seconds that come faster than they are taken, only the last is heard."""

    _is_made = False
    _pending: tuple[Samples, bool] | None = None

    async def start(self) -> None:
        """Queue who comes when no worker is free."""
        self._came = asyncio.Event()
        if self.faults.busy:
            await self._error("queue_full", "the queue is full", "server_error")
            raise CloseConnection(BUSY, "queue_full")
        if self.faults.start_delay_s:
            wait_s = self.faults.start_delay_s
            await self.send_json({"type": "session.queued", "position": 1, "estimated_wait_s": wait_s})
            await self.wait_in_queue()
            await self.send_json({"type": "session.queue_done"})

    async def serve(self) -> None:
        """Take messages, and beside that the newest second of audio."""
        worker = asyncio.get_running_loop().create_task(self._work())
        reader = asyncio.get_running_loop().create_task(self._read())
        try:
            done, _ = await asyncio.wait({worker, reader}, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()
        finally:
            for task in (worker, reader):
                task.cancel()
            await asyncio.gather(worker, reader, return_exceptions=True)

    async def ended(self) -> None:
        """Ten minutes are over."""
        await self._close("timeout")

    async def _read(self) -> None:
        while True:
            try:
                message = json.loads(await self.peer.receive())
            except ValueError:
                raise CloseConnection(NO_JSON, "not JSON") from None
            kind = message.get("type") if isinstance(message, dict) else None
            handler = _HANDLERS.get(str(kind))
            if handler is None:
                await self._error("unknown_event", f"unknown event {kind!r}")
            elif not self._is_made and kind != "session.update":
                await self._error("not_ready", "the session is not made")
            else:
                await handler(self, message)

    async def _update(self, message: dict[str, Any]) -> None:
        session = message.get("session")
        if not isinstance(session, dict) or not session.get("instructions"):
            await self._error("missing_field", "session.instructions is missing")
            return
        self._is_made = True
        self.prompted(str(session["instructions"]))
        told = (self.query.get("session_id") or ["rt_0"])[0]
        await self.send_json({"type": "session.created", "session_id": told, "prompt_length": self.cache_tokens})
        await self.moment("created")

    async def _append(self, message: dict[str, Any]) -> None:
        if "audio" not in message:
            await self._error("missing_field", "audio is missing")
            return
        samples = from_floats(message["audio"])
        if samples is None or len(samples) < LEAST_SAMPLES:
            await self._error("invalid_payload", "audio base64 decode failed, or it is shorter than 250 ms")
            return
        self._pending = (samples, bool(message.get("force_listen")))
        self._came.set()

    async def _bye(self, message: dict[str, Any]) -> None:
        del message
        await self._close("stopped")

    async def _work(self) -> None:
        while True:
            await self._came.wait()
            self._came.clear()
            pending, self._pending = self._pending, None
            if pending is not None:
                await self._unit(*pending)
            if self.is_full:
                await self._close("context_full")

    async def _unit(self, samples: Samples, force_listen: bool) -> None:
        unit = self.unit(samples, force_listen=force_listen)
        if unit.listens:
            await self.send_json({"type": "response.listen", "kv_cache_length": self.cache_tokens})
            return
        await self.moment("committed")
        if self.faults.error_code:
            await self._error(self.faults.error_code, "told by a fault", "server_error")
        data = as_floats(unit.audio)
        if self.faults.odd_lengths:
            data = data[: len(data) // 2 // 4 * 4 - 4] + "AAA="
        await self.send_json({"type": "response.output_audio.delta", "text": unit.text, "audio": data,
                              "end_of_turn": unit.over, "kv_cache_length": self.cache_tokens})  # fmt: skip
        await self.moment("audio")

    async def _close(self, reason: str) -> None:
        await self.send_json({"type": "session.closed", "reason": reason})
        raise CloseConnection(1000, reason)

    async def _error(self, code: str, told: str, kind: str = "client_error") -> None:
        await self.send_json({"type": "error", "error": {"code": code, "message": told, "type": kind}})


_HANDLERS: Final[dict[str, Callable[[MiniCpmRealtimeConversation, dict[str, Any]], Awaitable[None]]]] = {
    "session.update": MiniCpmRealtimeConversation._update,
    "input_audio_buffer.append": MiniCpmRealtimeConversation._append,
    "session.close": MiniCpmRealtimeConversation._bye,
}
