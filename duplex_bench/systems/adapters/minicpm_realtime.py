"""MiniCPM-o 4.5 over the newer demo's or hosted ``/v1/realtime?mode=audio`` (docs/systems/minicpm-o.md)."""

import asyncio
from typing import Any, Final

from duplex_bench.contract.push import Detection, PushEvent, RateLimitedError, RefusedError
from duplex_bench.contract.types import OpenRequest, Spec, TransportError, checked_unit
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters import reference_audio
from duplex_bench.systems.adapters.minicpm_session import (
    IN_RATE_HZ,
    NEUTRAL_INSTRUCTIONS,
    OUT_RATE_HZ,
    MiniCpmSession,
)
from duplex_bench.systems.adapters.wire import WireClosedError, as_message

# The service ends a session after ten minutes, waiting included.
CONTEXT_S: Final = 600.0
SPEC: Final = Spec(
    IN_RATE_HZ, OUT_RATE_HZ, IN_RATE_HZ, context_s=CONTEXT_S, capabilities=frozenset({"text_prompt"})
)  # fmt: skip
PATH: Final = "/v1/realtime?mode=audio"
# A server that has us queue says so at once; one that does not is silent until it is spoken to (ours).
QUEUE_GRACE_S: Final = 1.0
_BUSY: Final = 1013
_BUSY_CODES: Final = frozenset({"service_unavailable", "queue_full", "worker_busy", "worker_connect_failed"})


class RealtimeSession(MiniCpmSession):
    """See ``PushSession``. One second is sent each second, never faster: the server drops what is old in silence."""

    cannot_be_told = "the protocol has no message for it: the model remembers its words, heard or not"

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Wait in the queue without a word, then say who the model is to be."""
        self.check(request, detection)
        await self.connect(f"{self._address.found().rstrip('/')}{PATH}&session_id={request.stimulus_id[:16]}")
        session: dict[str, Any] = {"instructions": request.prompt.text or NEUTRAL_INSTRUCTIONS}
        voice = self.voice()
        if voice is not None:
            session["ref_audio"] = session["tts_ref_audio"] = reference_audio.as_wav(voice)
        await self._queue()
        await self.send_json({"type": "session.update", "session": session})
        await self._until("session.created")

    async def _queue(self) -> None:
        """Keep still while the server has us wait; where a worker is free at once it says nothing."""
        try:
            async with asyncio.timeout(QUEUE_GRACE_S):
                message = await self.next_json()
        except TimeoutError:
            return
        self._early += self._said(message, opening=True)
        if message.get("type") in ("session.queued", "session.queue_update"):
            await self._until("session.queue_done")

    async def _until(self, wanted: str) -> None:
        while True:
            message = await self.next_json()
            if message.get("type") == wanted:
                return
            self._early += self._said(message, opening=True)

    async def push(self, frame: Samples) -> None:
        """Send one second."""
        self._frames += 1
        data = reference_audio.as_floats(checked_unit(frame, SPEC))
        await self.send_json({"type": "input_audio_buffer.append", "audio": data, "force_listen": False})

    async def say_goodbye(self) -> None:
        """Free the worker at once."""
        try:
            await self.send_json({"type": "session.close", "reason": "user_stop"})
        except (TransportError, RefusedError) as error:
            self._warnings.append(f"the connection was gone before it was closed: {error}")

    def read(self, raw: str | bytes) -> list[PushEvent]:
        """What one message says."""
        return self._said(as_message(raw))

    def _said(self, message: dict[str, Any], *, opening: bool = False) -> list[PushEvent]:
        kind = str(message.get("type"))
        self.note_cache(message)
        if kind == "response.output_audio.delta":
            return self.unit_of_speech(message.get("text"), message.get("audio"), over=bool(message.get("end_of_turn")))
        if kind == "response.listen":
            self.turn_over()
            # A client is told to drop what its player still holds.
            return [PushEvent("flush", data={"name": "listen"})]
        if kind == "session.closed":
            reason = message.get("reason")
            if reason == "context_full" or (reason == "timeout" and self._frames * SPEC.unit_s > CONTEXT_S / 2):
                raise RefusedError(
                    f"the server ended the session: {reason}. It holds {CONTEXT_S:.0f} s and 8,192 tokens, "
                    "this item is longer"
                )
            raise TransportError(f"the server ended the session: {reason}")
        if kind == "error":
            return self._error(message, opening)
        known: dict[str, Any] = {
            name: message[name] for name in ("position", "estimated_wait_s", "reason") if name in message
        }
        return [PushEvent("note", data={"name": kind, **known})]

    def _error(self, message: dict[str, Any], opening: bool) -> list[PushEvent]:
        code = _code(message)
        error = message.get("error")
        told = error.get("message") if isinstance(error, dict) else error
        if code in _BUSY_CODES:
            raise RateLimitedError(f"{code}: {told}")
        if opening:
            raise RefusedError(f"the server refused the session: {code}: {told}")
        if code == "inference_error":
            self._warnings.append(f"the model failed on a unit: {told}")
        return [PushEvent("note", data={"name": "error", "code": code, "message": str(told)})]

    def meant(self, error: WireClosedError) -> Exception:
        """Busy is worth another try."""
        return RateLimitedError(f"{error}: no worker is free, or the queue is full") if error.code == _BUSY else error


def _code(message: dict[str, Any]) -> str:
    error = message.get("error")
    return str(error.get("code") if isinstance(error, dict) else message.get("code"))
