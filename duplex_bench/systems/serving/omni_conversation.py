"""One conversation of vLLM-Omni's duplex endpoint, serving MiniCPM-o 4.5: the model decides, the client reports.

Event names, order and rules after the vendor's reference (docs/systems/minicpm-o.md); resuming a dropped session is not
offered here, and ``capabilities`` says so.
"""

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.systems.adapters.minicpm_session import IN_RATE_HZ, OUT_RATE_HZ
from duplex_bench.systems.serving.minicpm_units import MiniCpmConversation, Unit
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.speaking import Setting

INVALID: Final = "invalid_request_error"
_FORMATS: Final = {"pcm16": "<i2", "pcm_s16le": "<i2", "s16le": "<i2", "pcm_f32le": "<f4"}
CAPABILITIES: Final[dict[str, Any]] = {
    "implementation_level": "model_native_duplex", "supports_input_append": True, "supports_barge_in": True,
    "supports_session_resume": False, "supports_session_lease": True, "supports_multi_session": True,
    "chunk_period_ms": 1000, "input_modes": ["append_audio_chunk"],
}  # fmt: skip


@dataclass
class Spoken:
    """A response as the server remembers it: ``committed_ms`` of ``sent_ms`` were heard, as far as the client said."""

    response_id: str
    text: str = ""
    sent_ms: int = 0
    committed_ms: int = 0
    status: str = "in_progress"


class OmniConversation(MiniCpmConversation):
    """See the module. ``spoken`` is what tests look at."""

    def __init__(self, peer: Peer, setting: Setting, target: str, name: str) -> None:
        super().__init__(peer, setting, target)
        self.name = name
        self.session: dict[str, Any] = {}
        self.spoken: list[Spoken] = []
        self._rest = np.zeros(0, dtype=np.float32)
        self._active: Spoken | None = None
        self._sequence = 0
        self._epoch = 0

    async def serve(self) -> None:
        """A session, then its events in order."""
        first = self._message(await self.peer.receive())
        if first.get("type") != "session.update":
            await self._flat_error("invalid_event", "the first event must be session.update")
            raise CloseConnection(1000)
        asked = first.get("session") or {}
        if self.faults.busy:
            await self._error(
                "resource_exhausted", "duplex_session_capacity_exhausted: limit=4", kind="rate_limit_error"
            )
            raise CloseConnection(1000)
        if not asked.get("ref_audio"):
            await self._flat_error("ref_audio_required", "ref_audio is required by this model")
            raise CloseConnection(1000)
        self._set(asked)
        await self._event(
            "session.created", attachment_generation=1, resume_token=f"rt_{self.name}", session=self._told()
        )
        await self._event("session.updated", session=self._told())
        await self.moment("created")
        while True:
            message = self._message(await self.peer.receive())
            handler = _HANDLERS.get(str(message.get("type")))
            if handler is None:
                await self._error("unknown_event", f"unknown event {message.get('type')!r}", message.get("event_id"))
            else:
                await handler(self, message)

    async def ended(self) -> None:
        """The lease of an idle session."""
        await self._event("session.expired", session_id=self.name, reason="idle_ttl_expired")
        raise CloseConnection(1000, "expired")

    def filler(self) -> str:
        """An event of a type that is not known."""
        return json.dumps({"type": "turn.event", "event": "filler"})

    def _set(self, asked: dict[str, Any]) -> None:
        self.session = {
            "model": asked.get("model"), "instructions": asked.get("instructions", ""),
            "overlap_policy": asked.get("overlap_policy", "listen_only"),
            "playback_commit_policy": asked.get("playback_commit_policy", "commit_all_on_done"),
            "input_audio_format": asked.get("input_audio_format", "pcm16"),
            "output_audio_format": asked.get("output_audio_format", "pcm16"),
        }  # fmt: skip
        if self.faults.ignore_detection:
            self.session["overlap_policy"] = "barge_in_on_speech"
        self.prompted(str(self.session["instructions"]))

    def _told(self) -> dict[str, Any]:
        return {"object": "realtime.session", "type": "realtime", "id": self.name, "state": "open",
                "epoch": self._epoch, "capabilities": CAPABILITIES, **self.session}  # fmt: skip

    async def _update(self, message: dict[str, Any]) -> None:
        self._set({**self.session, **(message.get("session") or {})})
        await self._event("session.updated", session=self._told())

    async def _append(self, message: dict[str, Any]) -> None:
        kind = str(message.get("input_audio_format") or message.get("format") or self.session["input_audio_format"])
        samples = _decoded(message.get("audio"), _FORMATS.get(kind, ""))
        if samples is None:
            await self._error("invalid_audio", f"audio is no base64 of {kind}", message.get("event_id"))
            return
        self._rest = np.concatenate([self._rest, samples])
        while len(self._rest) >= IN_RATE_HZ:
            second, self._rest = self._rest[:IN_RATE_HZ], self._rest[IN_RATE_HZ:]
            await self._second(second)

    async def _second(self, second: Samples) -> None:
        was_quiet = not self.talker.speaking
        unit = self.unit(second)
        if self._active is not None and was_quiet and self.talker.speaking and await self._overlap():
            return
        if unit.listens:
            await self._event(
                "response.listen", session_id=self.name, epoch=self._epoch,
                response={"object": "realtime.response", "status": "listening",
                          "metadata": {"type": "response.listen", "reason": "model_listen"}},
            )  # fmt: skip
        else:
            await self._speak(unit)

    async def _overlap(self) -> bool:
        """Someone speaks over the model: by the session's policy it goes on, or is cancelled; whether it was."""
        barges = bool(self.session["overlap_policy"] == "barge_in_on_speech")
        await self._event("overlap.decision", session_id=self.name, epoch=self._epoch,
                          policy=self.session["overlap_policy"], action="barge_in" if barges else "listen",
                          reason="long_overlap_speech")  # fmt: skip
        if barges:
            await self._cancel("barge_in")
        return barges

    async def _speak(self, unit: Unit) -> None:
        await self.moment("committed")
        if self._active is None:
            await self._begin()
        active = self._active
        if active is None:
            return
        active.text += unit.text
        active.sent_ms += len(unit.audio) * 1000 // OUT_RATE_HZ
        data = to_pcm16(unit.audio).astype("<i2").tobytes()
        cut = len(data) // 4 * 2 + 1
        for part in (data[:cut], data[cut:]) if self.faults.odd_lengths else (data,):
            await self._of(active, "response.output_audio.delta", delta=base64.b64encode(part).decode("ascii"),
                           format="pcm16", sample_rate_hz=16_000 if self.faults.wrong_rate else OUT_RATE_HZ,
                           metadata={"session_id": self.name, "epoch": self._epoch, "model_speak": True,
                                     "end_of_turn": unit.over})  # fmt: skip
        await self._of(active, "response.output_audio_transcript.delta", delta=unit.text)
        await self.moment("audio")
        if unit.over:
            await self._end("completed", None)

    async def _begin(self) -> None:
        made = Spoken(f"resp_{self.name}_{len(self.spoken) + 1}")
        self.spoken.append(made)
        self._active = made
        response = {"id": made.response_id, "object": "realtime.response", "status": "in_progress", "output": []}
        await self._event("response.created", response_id=made.response_id, response=response)
        for kind in ("conversation.item.added", "conversation.item.created"):
            await self._event(kind, previous_item_id=None, item=_item(made))
        await self._event("response.output_item.added", response_id=made.response_id, output_index=0, item=_item(made))
        await self._of(made, "response.content_part.added", part={"type": "audio", "transcript": ""})
        await self._of(made, "response.speak", metadata={"session_id": self.name, "model_speak": True})

    async def _end(self, status: str, details: dict[str, Any] | None) -> None:
        made, self._active = self._active, None
        if made is None:
            return
        made.status = status
        await self._of(made, "response.output_audio.done")
        await self._of(made, "response.output_audio_transcript.done", transcript=made.text)
        await self._of(made, "response.content_part.done", part={"type": "audio", "transcript": made.text})
        await self._event("response.output_item.done", response_id=made.response_id, output_index=0, item=_item(made))
        await self._event("conversation.item.done", previous_item_id=None, item=_item(made))
        if self.faults.fail_code:
            status, details = "failed", {"type": "failed", "error": {"code": self.faults.fail_code}}
        response = {"id": made.response_id, "object": "realtime.response", "status": status, "status_details": details,
                    "output": [_item(made)]}  # fmt: skip
        await self._event("response.done", response_id=made.response_id, response=response)
        await self._event("rate_limits.updated", rate_limits=[])

    async def _cancel(self, reason: str) -> None:
        self.talker.stop()
        self._epoch += 1
        await self._end("cancelled", {"type": "cancelled", "reason": reason})

    async def _cancelled_by_client(self, message: dict[str, Any]) -> None:
        del message
        await self._cancel("client_cancelled")

    async def _cleared(self, message: dict[str, Any]) -> None:
        del message
        active = self._active
        await self._cancel("client_cancelled")
        await self._event("output_audio_buffer.cleared", response_id=active.response_id if active else None)

    async def _commit(self, message: dict[str, Any]) -> None:
        # The audio is in the model already: a commit only names what was said as an item.
        item_id = f"item_{self.name}_{self._sequence}"
        del message
        await self._event("input_audio_buffer.committed", previous_item_id=None, item_id=item_id,
                          event={"type": "input.committed", "session_id": self.name, "epoch": self._epoch})  # fmt: skip

    async def _clear(self, message: dict[str, Any]) -> None:
        del message
        self._rest = np.zeros(0, dtype=np.float32)
        await self._event("input_audio_buffer.cleared")

    async def _heartbeat(self, message: dict[str, Any]) -> None:
        del message
        self.renew()
        await self._event("session.heartbeat_ack", session_id=self.name)

    async def _acknowledged(self, message: dict[str, Any]) -> None:
        found = next((one for one in self.spoken if one.response_id == message.get("response_id")), None)
        if found is None:
            await self._error("unknown_response", "no such response", message.get("event_id"))
            return
        played = min(found.sent_ms, int(message.get("played_ms") or 0))
        found.committed_ms = max(found.committed_ms, played)
        if message.get("truncate"):
            words = found.text.split(" ")
            found.text = " ".join(words[: len(words) * played // max(1, found.sent_ms)])
        await self._event("playback.acknowledged", event={"played_ms": played, "committed_ms": found.committed_ms})

    async def _ignored(self, message: dict[str, Any]) -> None:
        del message

    async def _bye(self, message: dict[str, Any]) -> None:
        del message
        event = {"type": "session.closed", "reason": "client_close"}
        await self._event("session.closed", session_id=self.name, epoch=self._epoch, reason="client_close", event=event)
        raise CloseConnection(1000)

    async def _of(self, made: Spoken, kind: str, **fields: Any) -> None:
        await self._event(kind, response_id=made.response_id, item_id=f"item_{made.response_id}", output_index=0,
                          content_index=0, **fields)  # fmt: skip

    async def _event(self, kind: str, **fields: Any) -> None:
        self._sequence += 1
        await self.send_json({"type": kind, "event_id": f"event_{self._sequence}", "server_event_seq": self._sequence,
                              **fields})  # fmt: skip

    async def _error(self, code: str, told: str, event_id: Any = None, kind: str = INVALID) -> None:
        await self._event("error", error={"type": kind, "code": code, "message": told, "event_id": event_id})

    async def _flat_error(self, code: str, told: str) -> None:
        await self.send_json({"type": "error", "error": told, "code": code})

    def _message(self, raw: str | bytes) -> dict[str, Any]:
        try:
            message = json.loads(raw)
        except ValueError:
            raise CloseConnection(1003, "not JSON") from None
        return message if isinstance(message, dict) else {}


def _item(made: Spoken) -> dict[str, Any]:
    content = [{"type": "output_audio", "transcript": made.text}] if made.text else []
    return {"id": f"item_{made.response_id}", "object": "realtime.item", "type": "message", "role": "assistant",
            "status": made.status, "content": content}  # fmt: skip


def _decoded(data: object, kind: str) -> Samples | None:
    try:
        raw = base64.b64decode(data if isinstance(data, str) else "?", validate=True)
    except ValueError:
        return None
    if not kind or len(raw) % np.dtype(kind).itemsize:
        return None
    values = np.frombuffer(raw, dtype=kind)
    return from_pcm16(values.astype(np.int16)) if kind == "<i2" else values.astype(np.float32)


_HANDLERS: Final[dict[str, Callable[[OmniConversation, dict[str, Any]], Awaitable[None]]]] = {
    "session.update": OmniConversation._update,
    "session.heartbeat": OmniConversation._heartbeat,
    "session.event_ack": OmniConversation._ignored,
    "session.close": OmniConversation._bye,
    "input_audio_buffer.append": OmniConversation._append,
    "input_audio_buffer.commit": OmniConversation._commit,
    "input.commit": OmniConversation._commit,
    "input_audio_buffer.clear": OmniConversation._clear,
    "response.cancel": OmniConversation._cancelled_by_client,
    "barge_in": OmniConversation._cancelled_by_client,
    "output_audio_buffer.clear": OmniConversation._cleared,
    "playback.ack": OmniConversation._acknowledged,
}
