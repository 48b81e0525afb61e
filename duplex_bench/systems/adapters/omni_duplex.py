"""A full-duplex model served by vLLM-Omni: ``/v1/realtime?duplex=1``, the OpenAI vocabulary with events of its own.

What a listener heard of a response is reported as it is heard: under the policy ``ack_only`` the model remembers only
that (docs/systems/minicpm-o.md).
"""

import asyncio
from dataclasses import dataclass
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
    MiniCpmSettings,
)
from duplex_bench.systems.adapters.wire import Connector, PcmStream, as_message, encoded

PATH: Final = "/v1/realtime?duplex=1"
# Any length may be sent; the model takes what makes a second.
SPEC: Final = Spec(
    IN_RATE_HZ, OUT_RATE_HZ, IN_RATE_HZ // 10, context_s=630.0, capabilities=frozenset({"text_prompt"})
)  # fmt: skip
HEARTBEAT_S: Final = 30.0
ACK_S: Final = 0.5


@dataclass
class Heard:
    """How much of a response was received, and until when a player that plays at once is busy with it."""

    item_id: str
    stream: PcmStream
    end_s: float = 0.0
    acknowledged_ms: int = -1

    def played_ms(self, now_s: float, rate_hz: int) -> int:
        """What a listener has heard by ``now_s``."""
        return max(0, int((self.stream.samples / rate_hz - max(0.0, self.end_s - now_s)) * 1000))


class OmniDuplexSession(MiniCpmSession):
    """See ``PushSession``."""

    def __init__(self, spec: Spec, connector: Connector, settings: MiniCpmSettings) -> None:
        super().__init__(spec, connector, settings)
        self._heard: dict[str, Heard] = {}
        self._active = ""
        self._busy_until_s = 0.0
        self._beat_s = self._ack_s = 0.0
        self._events = 0
        self._capabilities: dict[str, Any] = {}
        self._dropped: set[str] = set()

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Describe the session, wait until it is made and its echo says the same."""
        self.check(request, detection)
        voice = self.voice()
        if voice is None:
            raise RefusedError(
                "vLLM-Omni wants a recording of the model's voice: set DUPLEX_BENCH_MINICPM_O_VOICE to a WAV file"
            )
        await self.connect(f"{self._address.found().rstrip('/')}{PATH}")
        session = {
            "model": self.settings.model,
            "modalities": ["audio", "text"],
            "instructions": request.prompt.text or NEUTRAL_INSTRUCTIONS,
            "input_audio_format": "pcm16",
            "output_audio_format": "pcm16",
            "ref_audio": f"data:audio/wav;base64,{reference_audio.as_wav(voice)}",
            "turn_detection": None,
            "overlap_policy": self.settings.overlap_policy,
            "playback_commit_policy": "ack_only",
            "extra_body": {"force_listen_count": 0},
        }
        await self._tell("session.update", session=session)
        created = await self._until("session.created")
        self._capabilities = (created.get("session") or {}).get("capabilities") or {}
        echo = (await self._until("session.updated")).get("session") or {}
        for name in ("overlap_policy", "playback_commit_policy"):
            if name in echo and echo[name] != session[name]:
                raise RefusedError(f"the server did not take {name}: asked {session[name]!r}, it says {echo[name]!r}")
        self._beat_s = asyncio.get_running_loop().time()

    async def push(self, frame: Samples) -> None:
        """Send one frame, and now and then that we are here and what was heard."""
        self._frames += 1
        data = encoded(checked_unit(frame, self.spec))
        await self._tell("input_audio_buffer.append", audio=data, sample_rate_hz=self.spec.in_rate_hz)
        now_s = asyncio.get_running_loop().time()
        if now_s - self._beat_s >= HEARTBEAT_S:
            self._beat_s = now_s
            await self._tell("session.heartbeat")
        if now_s - self._ack_s >= ACK_S:
            self._ack_s = now_s
            for response_id in list(self._heard):
                await self._acknowledge(response_id, now_s)

    async def cut(self, response_id: str, heard_s: float) -> dict[str, Any]:
        """Report what was heard of a response that was cut, so that the rest is forgotten."""
        heard = self._heard.pop(response_id, None)
        received_ms = 0 if heard is None else heard.stream.samples * 1000 // self.spec.out_rate_hz
        heard_ms = min(int(heard_s * 1000), received_ms)
        await self._tell("playback.ack", response_id=response_id, played_ms=heard_ms, committed_ms=heard_ms,
                         truncate=True)  # fmt: skip
        return {"item_id": response_id, "audio_end_ms": heard_ms, "received_ms": received_ms, "reported": True}

    async def say_goodbye(self) -> None:
        """End the session on the server, which else keeps it for half a minute."""
        try:
            await self._tell("session.close")
        except (TransportError, RefusedError) as error:
            self._warnings.append(f"the connection was gone before it was closed: {error}")

    def told_at_close(self) -> dict[str, Any]:
        """What the server said it can do."""
        return {"capabilities": self._capabilities}

    async def _acknowledge(self, response_id: str, now_s: float) -> None:
        heard = self._heard[response_id]
        played_ms = heard.played_ms(now_s, self.spec.out_rate_hz)
        if played_ms > heard.acknowledged_ms:
            heard.acknowledged_ms = played_ms
            await self._tell("playback.ack", response_id=response_id, item_id=heard.item_id, played_ms=played_ms,
                             committed_ms=played_ms)  # fmt: skip
        elif response_id != self._active:
            del self._heard[response_id]

    async def _tell(self, kind: str, **fields: Any) -> None:
        self._events += 1
        await self.send_json({"type": kind, "event_id": f"evt_{self._events}", **fields})

    async def _until(self, wanted: str) -> dict[str, Any]:
        while True:
            message = await self.next_json()
            if message.get("type") == wanted:
                return message
            self._early += self._said(message, opening=True)

    def read(self, raw: str | bytes) -> list[PushEvent]:
        """What one message says."""
        return self._said(as_message(raw))

    def _said(self, message: dict[str, Any], *, opening: bool = False) -> list[PushEvent]:
        kind = str(message.get("type"))
        response_id = str(message.get("response_id") or (message.get("response") or {}).get("id") or "")
        if kind == "response.created":
            self._active = response_id
            return [PushEvent("begun", response_id)]
        if kind == "response.output_audio.delta":
            return self._audio(message, response_id)
        if kind == "response.output_audio_transcript.delta":
            return [PushEvent("text", response_id, text=str(message.get("delta", "")))]
        if kind == "conversation.item.input_audio_transcription.completed":
            return [PushEvent("user_text", text=str(message.get("transcript", "")))]
        if kind == "response.done":
            return self._done(message, response_id)
        if kind == "output_audio_buffer.cleared":
            return [PushEvent("flush", data={"name": kind})]
        if kind in ("session.closed", "session.expired", "session.replaced", "session.resync_required"):
            raise TransportError(f"the server ended the session: {kind} {message.get('reason', '')}".rstrip())
        if kind == "error":
            return self._error(message, opening)
        known: dict[str, Any] = {name: message[name] for name in ("action", "reason", "policy") if name in message}
        return [] if kind == "session.heartbeat_ack" else [PushEvent("note", data={"name": kind, **known})]

    def _audio(self, message: dict[str, Any], response_id: str) -> list[PushEvent]:
        rate = message.get("sample_rate_hz", self.spec.out_rate_hz)
        if rate != self.spec.out_rate_hz or message.get("format", "pcm16") != "pcm16":
            raise TransportError(f"the server sends {message.get('format')} at {rate} Hz, not pcm16 at 24000 Hz")
        if response_id in self._dropped:
            return []
        heard = self._heard.setdefault(response_id, Heard(str(message.get("item_id")), PcmStream()))
        pcm = heard.stream.take(message.get("delta"))
        now_s = asyncio.get_running_loop().time()
        self._busy_until_s = max(self._busy_until_s, now_s) + len(pcm) / self.spec.out_rate_hz
        heard.end_s = self._busy_until_s
        return [PushEvent("audio", response_id, pcm=pcm)] if len(pcm) else []

    def _done(self, message: dict[str, Any], response_id: str) -> list[PushEvent]:
        response = message.get("response") or {}
        status, details = response.get("status"), response.get("status_details")
        self._active = ""
        events = [PushEvent("done", response_id, data={"status": status, "status_details": details})]
        if status == "cancelled":
            self._dropped.add(response_id)
            self._busy_until_s = asyncio.get_running_loop().time()
            events.append(PushEvent("flush", data={"name": "cancelled"}))
        elif status == "failed":
            raise TransportError(f"the response failed: {details!r}")
        return events

    def _error(self, message: dict[str, Any], opening: bool) -> list[PushEvent]:
        error = message.get("error")
        # Before a session is made, errors are flat.
        found = error if isinstance(error, dict) else {"message": error, "code": message.get("code")}
        code, told = str(found.get("code")), str(found.get("message"))
        if code == "resource_exhausted" or found.get("type") == "rate_limit_error":
            raise RateLimitedError(f"{code}: {told}")
        if opening:
            raise RefusedError(f"the server refused the session: {code}: {told}")
        if found.get("type") == "server_error":
            raise TransportError(f"the server reported {code}: {told}")
        self._warnings.append(f"the server reported {code}: {told}")
        return [PushEvent("note", data={"name": "error", "code": code, "message": told})]
