"""A session over the OpenAI realtime protocol and its dialects: handshake, history, events, truncation, errors."""

import asyncio
import os
from collections.abc import Callable
from typing import Any, Final
from urllib.parse import quote

from duplex_bench.contract.push import Detection, PushEvent, RateLimitedError, RefusedError
from duplex_bench.contract.types import (
    HistoryPart,
    OpenRequest,
    SessionStats,
    Spec,
    TransportError,
    UnsupportedError,
    checked_unit,
    refuse_unsupported,
)
from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.json_session import JsonSession
from duplex_bench.systems.adapters.openai_dialect import NEUTRAL_INSTRUCTIONS, OpenAIDialect, counts_of
from duplex_bench.systems.adapters.prices import cost_usd
from duplex_bench.systems.adapters.wire import (
    Connector,
    PcmStream,
    WireClosedError,
    encoded,
    key_from,
    waited,
)

_FATAL: Final = frozenset(
    {"insufficient_quota", "invalid_api_key", "account_deactivated", "billing_hard_limit_reached",
     "credit_balance_exhausted", "beta_api_shape_disabled"}
)  # fmt: skip
_LATER: Final = frozenset({"rate_limit_exceeded", "inference_rate_limit_exceeded", "slow_down"})
_ENDED: Final = frozenset({"session_expired", "timeout", "max_duration"})
_REFUSING_CODES: Final = frozenset({3000, 4000, 1007, 1008})


class RealtimeSession(JsonSession):
    """See ``PushSession``. The unit of playback and truncation is an item: a response may hold several."""

    def __init__(self, dialect: OpenAIDialect, spec: Spec, connector: Connector) -> None:
        self._dialect = dialect
        self._settings = dialect.settings
        self._spec = spec
        self._connector = connector
        self._key = key_from(self._settings.key_env)
        self._detection: Detection = "automatic"
        self._early: list[PushEvent] = []
        self._committed = asyncio.Event()
        self._streams: dict[str, PcmStream] = {}
        self._active: set[str] = set()
        self._dropped: set[str] = set()
        self._late_deltas = 0
        self._frames = 0
        self._items = 0
        self._user_items: set[str] = set()
        self._event_ids: set[str] = set()
        self._response_ids: set[str] = set()
        self._counted: set[str] = set()
        self._repeated = 0
        self._usage: dict[str, float] = {}
        self._echo: dict[str, Any] = {}
        self._round_trips_s: list[float | None] = []
        self._warnings: list[str] = []
        self._closed = False

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect, set the session, check its echo, hand over history item by item."""
        refuse_unsupported(request, self._spec)
        if detection == "manual" and not self._settings.manual:
            raise UnsupportedError("this system's detection cannot be off: run it with the endpointer trigger")
        settings = self._settings
        url = (os.environ.get(settings.url_env) if settings.url_env else None) or settings.url
        headers = {"Authorization": f"Bearer {self._key.value}"} if self._key else {}
        self._detection = detection
        self._wire = await self._connector.connect(f"{url}?model={quote(settings.model)}", headers, self._key)
        created = await self._until(lambda message: message.get("type") == self._dialect.greeting)
        self._round_trips_s.append(await self._wire.round_trip_s())
        # A recorded persona is noise: instructions are checked, not kept.
        self._note_session("created", created.get("session") or {})
        session = self._dialect.session(request.prompt.text or NEUTRAL_INSTRUCTIONS, detection, self._spec.in_rate_hz)
        await self._send({"type": "session.update", "event_id": "setup", "session": session})
        updated = await self._until(lambda message: message.get("type") == "session.updated", "setup")
        echoed = updated.get("session") or {}
        self._note_session("updated", echoed)
        self._dialect.check_echo(session, echoed)
        for item in self._history(request.history):
            self._items += 1
            if "text" in item["content"][0] and self._dialect.charges_text_items:
                self._usage["text_items"] = self._usage.get("text_items", 0.0) + 1
            name = f"history-{self._items}"
            await self._send({"type": "conversation.item.create", "event_id": name, "item": item})
            await self._until(lambda message: message.get("type") == self._dialect.item_ready, name)

    async def push(self, frame: Samples) -> None:
        """Append one frame to the server's input buffer."""
        self._frames += 1
        # Base64 needs no escapes: fifty times a second and session, an encoder of JSON would only take time.
        audio = encoded(checked_unit(frame, self._spec))
        await self._send_text(f'{{"type":"input_audio_buffer.append","audio":"{audio}"}}')

    async def reply_now(self) -> dict[str, Any]:
        """Commit, wait until that is confirmed (it may be asynchronous), wait as set, request a reply."""
        if self._detection != "manual":
            raise UnsupportedError("a reply is requested only with detection off")
        self._committed.clear()
        await self._send({"type": "input_audio_buffer.commit"})
        commit_s = await waited(self._committed, self._settings.commit_limit_s, "confirmation of the commit")
        extra_s = self._settings.wait_after_commit_s
        if extra_s:
            await wait_until(asyncio.get_running_loop().time() + extra_s)
        await self._send({"type": "response.create"})
        return {"commit_wait_s": commit_s, "extra_wait_s": extra_s}

    async def receive(self) -> list[PushEvent]:
        """What the next message says."""
        if self._early:
            early, self._early = self._early, []
            return early
        return self._read(await self._next())

    async def cut(self, response_id: str, heard_s: float) -> dict[str, Any]:
        """Truncate the item to what was heard of it, never beyond what was received."""
        stream = self._streams.get(response_id)
        received_ms = 0 if stream is None else stream.samples * 1000 // self._spec.out_rate_hz
        heard_ms = min(int(heard_s * 1000), received_ms)
        await self._send({"type": "conversation.item.truncate", "event_id": f"cut-{response_id}",
                          "item_id": response_id, "content_index": 0, "audio_end_ms": heard_ms})  # fmt: skip
        return {"item_id": response_id, "audio_end_ms": heard_ms, "received_ms": received_ms}

    async def close(self) -> SessionStats:
        """Close the connection; usage, cost and the server's echo are in ``extra``."""
        if self._wire is not None and not self._closed:
            self._closed = True
            self._round_trips_s.append(await self._wire.round_trip_s())
            await self._wire.close()
        cost = cost_usd(str(self._echo.get("model") or self._settings.model), self._usage)
        extra = {
            "usage": dict(self._usage),
            # A response whose usage was never told (the session ended first) was paid for all the same.
            "cost_usd": None if self._response_ids - self._counted else cost,
            "echo": self._echo,
            "round_trip_s": self._round_trips_s,
            "late_deltas_dropped": self._late_deltas,
            "repeated_events_dropped": self._repeated,
            "user_items": len(self._user_items),
        }
        return SessionStats(units=self._frames, warnings=tuple(self._warnings), extra=extra)

    def _history(self, parts: tuple[HistoryPart, ...]) -> list[dict[str, Any]]:
        heard = next((part.user_pcm for part in parts if part.user_pcm is not None), None)
        items = []
        for part in parts:
            if part.user_pcm is not None:
                continue
            if part.role == "user" and heard is not None:
                rate = self._spec.in_rate_hz
                audio = encoded(heard[round(part.start_s * rate) : round(part.end_s * rate)])
                content: dict[str, Any] = {"type": "input_audio", "audio": audio}
            elif part.role == "user":
                content = {"type": "input_text", "text": part.text}
            else:
                content = {"type": "output_text", "text": part.text}
            items.append({"type": "message", "role": part.role, "content": [content]})
        return items

    def _note_session(self, step: str, session: dict[str, Any]) -> None:
        kept = {name: session.get(name) for name in ("id", "model", "expires_at", "voice", "turn_detection", "audio")}
        self._echo = {name: value for name, value in kept.items() if value is not None}
        self._early.append(PushEvent("note", data={"name": f"session.{step}", "session": self._echo}))

    def _meant(self, error: WireClosedError) -> Exception:
        return RefusedError(str(error)) if error.code in _REFUSING_CODES else error

    async def _until(self, wanted: Callable[[dict[str, Any]], bool], event_id: str = "") -> dict[str, Any]:
        """Read until ``wanted``; what else is said meanwhile is kept. An error that answers ``event_id`` refuses."""
        while True:
            message = await self._next()
            error = message.get("error")
            if message.get("type") == "error" and isinstance(error, dict) and error.get("code") not in _LATER | _ENDED:
                where = f" ({error['param']})" if error.get("param") else ""
                told = f"{error.get('code')}: {error.get('message')}{where}"
                if event_id and error.get("event_id") in (event_id, None):
                    raise RefusedError(self._key.scrub(f"the server refused {event_id}: {told}"))
            events = self._read(message)
            if wanted(message):
                return message
            self._early += events

    def _read(self, message: dict[str, Any]) -> list[PushEvent]:
        event_id = message.get("event_id")
        if isinstance(event_id, str):
            if event_id in self._event_ids:
                # Delivered twice, by a proxy perhaps: heard once.
                self._repeated += 1
                return []
            self._event_ids.add(event_id)
        kind = str(message.get("type", ""))
        handler = _HANDLERS.get(kind)
        if handler is None:
            return [PushEvent("note", data={"name": kind or "message without a type"})]
        return handler(self, message)

    def _speech_started(self, message: dict[str, Any]) -> list[PushEvent]:
        if self._detection == "manual":
            raise RefusedError("the server detects speech although detection is off: the setting was lost on its way")
        self._dropped |= self._active
        return [PushEvent("flush", data={"name": "speech_started", "audio_start_ms": message.get("audio_start_ms")})]

    def _speech_stopped(self, message: dict[str, Any]) -> list[PushEvent]:
        return [PushEvent("note", data={"name": "speech_stopped", "audio_end_ms": message.get("audio_end_ms")})]

    def _on_committed(self, message: dict[str, Any]) -> list[PushEvent]:
        self._committed.set()
        self._user_items.add(str(message.get("item_id")))
        told = PushEvent("note", data={"name": "committed", "item_id": message.get("item_id")})
        # With detection on a committed turn is answered: from here on a response is due.
        return [told] if self._detection == "manual" else [told, PushEvent("begun", data={"name": "due"})]

    def _begun(self, message: dict[str, Any]) -> list[PushEvent]:
        response_id = str((message.get("response") or {}).get("id"))
        if response_id in self._response_ids:
            raise TransportError(
                f"the server began response {response_id!r} twice: which audio belongs to which cannot be told"
            )
        self._response_ids.add(response_id)
        self._active.add(response_id)
        return [PushEvent("begun", response_id)]

    def _audio(self, message: dict[str, Any]) -> list[PushEvent]:
        response_id, item_id = str(message.get("response_id")), str(message.get("item_id"))
        if response_id in self._dropped:
            self._late_deltas += 1
            return []
        stream = self._streams.setdefault(item_id, PcmStream())
        pcm = stream.take(message.get("delta"))
        data: dict[str, Any] = {name: message[name] for name in ("latency", "audio_duration_ms") if name in message}
        return [PushEvent("audio", item_id, pcm=pcm, data={"response": response_id, **data})] if len(pcm) else []

    def _words(self, message: dict[str, Any]) -> list[PushEvent]:
        data = {"start_time": message["start_time"]} if "start_time" in message else {}
        return [PushEvent("text", str(message.get("item_id")), text=str(message.get("delta", "")), data=data)]

    def _heard_words(self, message: dict[str, Any]) -> list[PushEvent]:
        return [PushEvent("user_text", text=str(message.get("transcript", "")), data={"name": message["type"]})]

    def _done(self, message: dict[str, Any]) -> list[PushEvent]:
        response = message.get("response") or {}
        response_id, status = str(response.get("id")), response.get("status")
        self._active.discard(response_id)
        details = response.get("status_details")
        raw = self._dialect.usage_of(message)
        for name, count in counts_of(raw).items():
            self._usage[name] = self._usage.get(name, 0.0) + count
        events = [PushEvent("done", response_id, data={"status": status, "status_details": details})]
        if raw:
            self._counted.add(response_id)
            events.append(PushEvent("usage", response_id, data={"usage": raw}))
        if status == "failed":
            error = (details.get("error") if isinstance(details, dict) else None) or {}
            self._raise_for(str(error.get("code")), f"the response failed: {error.get('code')}: "
                            f"{error.get('message') or error.get('type')}")  # fmt: skip
            raise TransportError(f"the response failed: {details!r}")
        return events

    def _error(self, message: dict[str, Any]) -> list[PushEvent]:
        error = message.get("error")
        error = error if isinstance(error, dict) else {"message": str(error)}
        code, told = str(error.get("code") or error.get("type") or ""), str(error.get("message", ""))
        self._raise_for(code, f"{code}: {told}")
        event_id = error.get("event_id")
        if isinstance(event_id, str) and event_id.startswith("cut-"):
            self._warnings.append(self._key.scrub(f"a truncation was refused: {told}"))
        return [PushEvent("note", data={"name": "error", "code": code, "message": self._key.scrub(told)})]

    def _raise_for(self, code: str, told: str) -> None:
        told = self._key.scrub(told)
        if code in _FATAL:
            raise RefusedError(f"{told}: correct the account or key, then run again")
        if code in _LATER:
            raise RateLimitedError(told)
        if code in _ENDED:
            raise TransportError(f"the vendor ended the session: {told}")

    def _truncated(self, message: dict[str, Any]) -> list[PushEvent]:
        data = {"name": "truncated", "item_id": message.get("item_id"), "audio_end_ms": message.get("audio_end_ms")}
        return [PushEvent("note", data=data)]

    def _limits(self, message: dict[str, Any]) -> list[PushEvent]:
        return [PushEvent("note", data={"name": "rate_limits", "rate_limits": message.get("rate_limits")})]

    def _nothing(self, message: dict[str, Any]) -> list[PushEvent]:
        del message
        return []


_HANDLERS: Final[dict[str, Callable[[RealtimeSession, dict[str, Any]], list[PushEvent]]]] = {
    "session.created": RealtimeSession._nothing,
    "session.updated": RealtimeSession._nothing,
    "conversation.created": RealtimeSession._nothing,
    "ping": RealtimeSession._nothing,
    "input_audio_buffer.speech_started": RealtimeSession._speech_started,
    "input_audio_buffer.speech_stopped": RealtimeSession._speech_stopped,
    "input_audio_buffer.committed": RealtimeSession._on_committed,
    "response.created": RealtimeSession._begun,
    "response.output_audio.delta": RealtimeSession._audio,
    "response.audio.delta": RealtimeSession._audio,
    "response.output_audio_transcript.delta": RealtimeSession._words,
    "response.output_text.delta": RealtimeSession._words,
    "response.text.delta": RealtimeSession._words,
    "conversation.item.input_audio_transcription.completed": RealtimeSession._heard_words,
    "conversation.item.input_audio_transcription.updated": RealtimeSession._heard_words,
    "conversation.item.truncated": RealtimeSession._truncated,
    "response.done": RealtimeSession._done,
    "rate_limits.updated": RealtimeSession._limits,
    "error": RealtimeSession._error,
}
