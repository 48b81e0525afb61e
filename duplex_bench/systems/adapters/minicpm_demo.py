"""MiniCPM-o 4.5 over the older demo: one JSON request a second, one result for each (docs/systems/minicpm-o.md)."""

from typing import Any, Final
from urllib.parse import urlsplit

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

# 8,192 tokens, 13 for each second of listening.
CONTEXT_S: Final = 630.0
SPEC: Final = Spec(
    IN_RATE_HZ, OUT_RATE_HZ, IN_RATE_HZ, context_s=CONTEXT_S, capabilities=frozenset({"text_prompt"})
)  # fmt: skip
# Only this prefix of the session's name makes it a conversation by audio alone.
PREFIX: Final = "adx_"
WORKER_PATH: Final = "/ws/duplex"
_BUSY, _DISABLED = 1013, 1008


class DemoSession(MiniCpmSession):
    """See ``PushSession``. An address that ends in ``/ws/duplex`` is a worker, any other a gateway with a queue."""

    cannot_be_told = "the model's own speech is no input to it: it remembers its words, heard or not"

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Queue, prepare, wait until it is prepared."""
        self.check(request, detection)
        address = self._address.found().rstrip("/")
        is_worker = urlsplit(address).path.endswith(WORKER_PATH)
        # The name is the stimulus's digest: the server's own logs can be matched, and tell it nothing.
        await self.connect(address if is_worker else f"{address}{WORKER_PATH}/{PREFIX}{request.stimulus_id[:16]}")
        if not is_worker:
            await self._until("queue_done")
        prepare: dict[str, Any] = {
            "type": "prepare",
            "system_prompt": request.prompt.text or NEUTRAL_INSTRUCTIONS,
            "config": {},
        }
        voice = self.voice()
        if voice is not None:
            prepare["ref_audio_base64"] = prepare["tts_ref_audio_base64"] = reference_audio.as_floats(voice)
        await self.send_json(prepare)
        await self._until("prepared")

    async def push(self, frame: Samples) -> None:
        """Send one second."""
        self._frames += 1
        data = reference_audio.as_floats(checked_unit(frame, SPEC))
        await self.send_json({"type": "audio_chunk", "audio_base64": data, "force_listen": False})

    async def say_goodbye(self) -> None:
        """Free the worker at once instead of after its timeout."""
        try:
            await self.send_json({"type": "stop"})
        except (TransportError, RefusedError) as error:
            self._warnings.append(f"the connection was gone before it was closed: {error}")

    async def _until(self, wanted: str) -> None:
        while True:
            message = await self.next_json()
            if message.get("type") == wanted:
                return
            self._early += self._said(message)

    def read(self, raw: str | bytes) -> list[PushEvent]:
        """What one message says."""
        return self._said(as_message(raw))

    def _said(self, message: dict[str, Any]) -> list[PushEvent]:
        kind = message.get("type")
        if kind == "result":
            self.note_cache(message)
            if message.get("is_listen"):
                # A second of zeros comes with it: no speech.
                self.turn_over()
                return [PushEvent("note", data={"name": "listen", "unit": message.get("current_time")})]
            return self.unit_of_speech(
                message.get("text"), message.get("audio_data"), over=bool(message.get("end_of_turn"))
            )
        if kind == "error":
            raise TransportError(f"the server reported: {message.get('error')}")
        if kind in ("timeout", "stopped"):
            raise TransportError(f"the server ended the session: {kind}")
        known: dict[str, Any] = {name: message[name] for name in ("position", "estimated_wait_s") if name in message}
        return [PushEvent("note", data={"name": str(kind), **known})]

    def meant(self, error: WireClosedError) -> Exception:
        """Busy is worth another try, disabled is not."""
        if error.code == _BUSY:
            return RateLimitedError(f"{error}: no worker is free, or the queue is full")
        if error.code == _DISABLED:
            return RefusedError(f"{error}: the server does not offer conversations by audio")
        return error
