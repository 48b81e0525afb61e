"""One conversation of the OpenAI realtime server: settings, input buffer, turns, truncation; ``Speaking`` answers.

Event names, order and rules follow the vendor's reference and recorded sessions (docs/hosted-systems.md). Dialects
override the small public methods.
"""

import asyncio
import base64
import contextlib
import json
from typing import Any, Final

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16
from duplex_bench.systems.adapters.cascade.endpointers import Endpointer, SemanticEndpointer, SilenceEndpointer
from duplex_bench.systems.serving.ears import Ears, Edge, never_ends
from duplex_bench.systems.serving.openai_config import ConfigError, default_session, merged
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.response_options import ROLES, Reader
from duplex_bench.systems.serving.speaking import Item, Setting, Speaking
from duplex_bench.systems.serving.voices import RATE_HZ

LEAST_COMMIT_MS: Final = 100
MOST_APPEND_BYTES: Final = 15 * 1024 * 1024
# Longest wait of semantic detection by eagerness, in seconds; auto is medium.
EAGERNESS_CAP_S: Final = {"low": 8.0, "medium": 4.0, "auto": 4.0, "high": 2.0}


class Conversation(Speaking):
    """See the module. ``beta`` is set for a client that asks for the protocol that is no more."""

    # What the session's end by time is called.
    expired_code = "session_expired"
    # Whether an item can be asked for.
    retrieves = True

    def __init__(self, peer: Peer, setting: Setting, name: str, model: str, key: str) -> None:
        super().__init__(peer, setting, name, model, key)
        self.ears = self.new_ears()
        self.buffer_from_ms = 0
        self.onset_ms = 0
        self.pending_item = ""
        self.beta = False

    async def converse(self) -> None:
        """Serve until the peer leaves, the session expires, or a fault closes it."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.faults.max_session_s
        try:
            if self.faults.start_delay_s:
                await wait_until(loop.time() + self.faults.start_delay_s)
            if self.beta:
                raise await self._beta_refused()
            await self.greet()
            await self.moment("created")
            self.beside.spawn(self._expire(end_s))
            self.beside.spawn(self._listen())
            await self.beside.failure
        finally:
            await self.beside.end()

    async def _expire(self, end_s: float) -> None:
        await wait_until(end_s)
        minutes = self.faults.max_session_s / 60
        told = f"Your session hit the maximum duration of {minutes:.0f} minutes."
        await self.error(self.expired_code, told)
        raise CloseConnection(1001, told)

    async def _beta_refused(self) -> CloseConnection:
        await self.error("beta_api_shape_disabled", "The Realtime Beta API is no longer supported.")
        return CloseConnection(4000, "invalid_request_error.beta_api_shape_disabled")

    async def _listen(self) -> None:
        while True:
            raw = await self.peer.receive()
            try:
                message = json.loads(raw)
                kind = message["type"]
            except (ValueError, KeyError, TypeError):
                await self.error("invalid_event", "a client event is a JSON object with a type")
                continue
            await self.handle(str(kind), message)

    async def handle(self, kind: str, message: dict[str, Any]) -> None:
        """One client event."""
        event_id = message.get("event_id")
        if kind == "input_audio_buffer.append":
            await self._append(message)
        elif kind == "session.update":
            await self._update(message.get("session") or {}, event_id)
        elif kind == "input_audio_buffer.commit":
            await self.commit_by_client(event_id)
        elif kind == "input_audio_buffer.clear":
            self.buffer_from_ms = self.ears.now_ms
            await self.send("input_audio_buffer.cleared")
        elif kind == "conversation.item.create":
            await self._create_item(message, event_id)
        elif kind == "conversation.item.truncate":
            await self.truncate(message, event_id)
        elif kind == "conversation.item.delete" or (kind == "conversation.item.retrieve" and self.retrieves):
            await self._item_asked(kind, message.get("item_id"), event_id)
        elif kind == "response.create":
            await self.response_asked(event_id, message.get("response") or {})
        elif kind == "response.cancel":
            if self.response is None:
                await self.error("response_cancel_not_active", "Cancellation failed: no active response", event_id)
            else:
                self.response.cancel = "client_cancelled"
        else:
            await self.error("invalid_value", f"Invalid value: '{kind}'.", event_id, "type")

    async def _update(self, update: dict[str, Any], event_id: Any) -> None:
        before = self.detection()
        try:
            self.session = self.apply(update)
        except ConfigError as error:
            await self.error(error.code, str(error), event_id, error.param)
            if error.code == "beta_api_shape_disabled":
                raise CloseConnection(4000, "invalid_request_error.beta_api_shape_disabled") from None
            return
        if self.detection() != before:
            # Offsets count on: they are of the session, whatever its settings become.
            self.ears.retune(self.endpointer())
            self.pending_item = ""
        await self.send("session.updated", session=self.echo())

    async def _append(self, message: dict[str, Any]) -> None:
        try:
            data = base64.b64decode(message.get("audio") or "", validate=True)
        except ValueError:
            await self.error("invalid_value", "Invalid 'audio': not base64.", message.get("event_id"), "audio")
            return
        if len(data) > MOST_APPEND_BYTES or len(data) % 2:
            await self.error("invalid_value", "Invalid 'audio': at most 15 MiB of whole samples.", None, "audio")
            return
        edges = self.ears.hear(from_pcm16(np.frombuffer(data, dtype="<i2").astype(np.int16)))
        for edge in edges if self.detection() is not None else []:
            if edge.kind == "started":
                await self._speech_started(edge)
            else:
                await self._speech_stopped(edge)

    async def _speech_started(self, edge: Edge) -> None:
        detection = self.detection() or {}
        start_ms = max(self.buffer_from_ms, edge.sound_ms - int(detection.get("prefix_padding_ms", 300)))
        self.buffer_from_ms = start_ms
        self.onset_ms = edge.sound_ms
        self.pending_item = self.new_id("item")
        await self.announce_speech(start_ms, self.pending_item)
        if self.response is not None and detection.get("interrupt_response", True):
            self.response.cancel = "turn_detected"

    async def _speech_stopped(self, edge: Edge) -> None:
        await self.send("input_audio_buffer.speech_stopped", audio_end_ms=edge.now_ms, item_id=self.pending_item)
        sound = self.ears.between(self.buffer_from_ms, edge.now_ms)
        self.buffer_from_ms = edge.now_ms
        item_id, self.pending_item = self.pending_item, ""
        await self.commit(item_id, sound, (self.onset_ms, edge.sound_ms))
        if (self.detection() or {}).get("create_response", True):
            await self.respond()

    async def commit(self, item_id: str, sound: Samples, speech_ms: tuple[int, int] | None = None) -> None:
        """Take a turn into the conversation; it is recognised when it is answered."""
        previous = self.items[-1].item_id if self.items else None
        made = Item(item_id, "user", "", len(sound) * 1000 // RATE_HZ, sound=sound, speech_ms=speech_ms)
        self.items.append(made)
        await self.send("input_audio_buffer.committed", item_id=item_id, previous_item_id=previous)
        await self.announce_user_item(item_id, previous)
        if self.transcribes():
            self.beside.spawn(self.tell_transcript(made))
        await self.moment("committed")
        if self.faults.error_code:
            await self.error(self.faults.error_code, f"{self.faults.error_code} for {self.shown_key()}")

    async def commit_by_client(self, event_id: Any) -> None:
        """A manual commit."""
        sound = self.ears.between(self.buffer_from_ms, self.ears.now_ms)
        if len(sound) * 1000 < LEAST_COMMIT_MS * RATE_HZ:
            told = "Error committing input audio buffer: buffer too small. Expected at least 100ms of audio."
            await self.error("input_audio_buffer_commit_empty", told, event_id)
            return
        self.buffer_from_ms = self.ears.now_ms
        await self.commit(self.new_id("item"), sound)

    async def _create_item(self, message: dict[str, Any], event_id: Any) -> None:
        item = message.get("item") or {}
        role, content = item.get("role"), item.get("content") or [{}]
        part = content[0]
        if role not in ROLES or part.get("type") not in (*ROLES[role], *self.extra_content(role)):
            await self.error("invalid_value", f"Invalid content for role {role!r}", event_id, "item.content")
            return
        sound = None
        if part["type"] == "input_audio":
            with contextlib.suppress(ValueError):
                data = base64.b64decode(part.get("audio") or "")
                sound = from_pcm16(np.frombuffer(data[: len(data) // 2 * 2], dtype="<i2").astype(np.int16))
        ids = [one.item_id for one in self.items]
        before = message.get("previous_item_id") or (ids[-1] if ids else "root")
        if before not in ("root", *ids):
            await self.error("invalid_value", f"no item {before!r}", event_id, "previous_item_id")
            return
        made = Item(item.get("id") or self.new_id("item"), role, part.get("text") or "", sound=sound)
        made.audio_ms = 0 if sound is None else len(sound) * 1000 // RATE_HZ
        self.items.insert(0 if before == "root" else ids.index(before) + 1, made)
        told = {"id": made.item_id, "type": "message", "role": role, "status": "completed", "content": content}
        await self.announce_item(told, None if before == "root" else before)

    async def _item_asked(self, kind: str, item_id: Any, event_id: Any) -> None:
        item = next((one for one in self.items if one.item_id == item_id), None)
        if item is None:
            await self.error("invalid_value", f"no item {item_id!r} in the conversation", event_id, "item_id")
        elif kind.endswith("delete"):
            self.items.remove(item)
            await self.send("conversation.item.deleted", item_id=item_id)
        else:
            part = {"type": item.part(), "transcript" if item.part().endswith("audio") else "text": item.text or None}
            told = {"id": item_id, "type": "message", "role": item.role, "status": "completed", "content": [part]}
            await self.send("conversation.item.retrieved", item=told)

    async def truncate(self, message: dict[str, Any], event_id: Any) -> None:
        """Forget what was not heard of an item."""
        item = next((one for one in self.items if one.item_id == message.get("item_id")), None)
        end_ms = int(message.get("audio_end_ms") or 0)
        if item is None or end_ms > item.audio_ms:
            length = 0 if item is None else item.audio_ms
            told = f"Audio content of {length}ms is already shorter than {end_ms}ms"
            await self.error("invalid_value", told, event_id, "audio_end_ms")
            return
        item.heard_ms, item.text = end_ms, ""
        await self.send("conversation.item.truncated", item_id=item.item_id, content_index=0, audio_end_ms=end_ms)

    async def response_asked(self, event_id: Any, asked: dict[str, Any]) -> None:
        """``response.create`` with its options."""
        try:
            options = Reader({one.item_id: (one.role, one.text) for one in self.items}).read(asked)
        except ConfigError as error:
            await self.error(error.code, str(error), event_id, error.param)
            return
        if self.response is not None:
            told = "Conversation already has an active response in progress"
            await self.error("conversation_already_has_active_response", told, event_id)
            return
        await self.respond(options)

    def transcribes(self) -> bool:
        """Whether the client asked for the words of what it said."""
        return self.session["audio"]["input"]["transcription"] is not None

    async def tell_transcript(self, item: Item) -> None:
        """The words of a user's turn: they come when they come, during the reply or behind it."""
        kind, where = "conversation.item.input_audio_transcription", {"item_id": item.item_id, "content_index": 0}
        await wait_until(asyncio.get_running_loop().time() + float(self.setting.rng.uniform(0.1, 1.0)))
        if self.faults.no_transcription:
            error = {"type": "server_error", "code": "transcription_failed", "message": "no words", "param": None}
            await self.send(f"{kind}.failed", error=error, **where)
            return
        words = await self.heard(item)
        for word in words.split():
            await self.send(f"{kind}.delta", delta=f"{word} ", **where)
        usage = {"type": "duration", "seconds": item.audio_ms / 1000}
        await self.send(f"{kind}.completed", transcript=words, usage=usage, **where)

    def new_ears(self) -> Ears:
        """Ears as the session's detection asks."""
        return Ears(RATE_HZ, self.endpointer())

    def endpointer(self) -> Endpointer:
        """When a silence ends a turn, by the session's detection."""
        detection = self.detection()
        if detection is None:
            return never_ends()
        if detection["type"] == "server_vad":
            return SilenceEndpointer(float(detection["silence_duration_ms"]) / 1000)
        cap_s = EAGERNESS_CAP_S[detection.get("eagerness", "auto")]
        detector = self.setting.voice.turn_end
        # Without a detector of complete turns, semantic detection knows only its longest wait.
        return SilenceEndpointer(cap_s) if detector is None else SemanticEndpointer(detector, RATE_HZ, cap_s=cap_s)

    async def greet(self) -> None:
        """The first events."""
        await self.send("session.created", session=self.session)

    def apply(self, update: dict[str, Any]) -> dict[str, Any]:
        """The session after an update; raises ConfigError."""
        return merged(self.session, update)

    def echo(self) -> dict[str, Any]:
        """The session as it is told to the client."""
        if self.faults.ignore_detection:
            fresh = default_session(self.session["id"], self.session["model"], 0)
            audio = {**self.session["audio"], "input": fresh["audio"]["input"]}
            return {**self.session, "audio": audio}
        if self.faults.wrong_rate:
            output = {**self.session["audio"]["output"], "format": {"type": "audio/pcm", "rate": 16_000}}
            return {**self.session, "audio": {**self.session["audio"], "output": output}}
        return self.session

    def detection(self) -> dict[str, Any] | None:
        """Detection settings in force, None if off."""
        found: dict[str, Any] | None = self.session["audio"]["input"]["turn_detection"]
        if found is None and self.faults.keep_detection:
            return {"type": "server_vad", "silence_duration_ms": 200, "prefix_padding_ms": 300}
        return found

    async def announce_speech(self, start_ms: int, item_id: str) -> None:
        """Speech began."""
        await self.send("input_audio_buffer.speech_started", audio_start_ms=start_ms, item_id=item_id)

    async def announce_user_item(self, item_id: str, previous: str | None) -> None:
        """A user's turn is in the conversation."""
        part = {"type": "input_audio", "transcript": None}
        told = {"id": item_id, "type": "message", "role": "user", "status": "completed", "content": [part]}
        await self.announce_item(told, previous)

    async def announce_item(self, told: dict[str, Any], previous: str | None) -> None:
        """An item is in place."""
        await self.send("conversation.item.added", previous_item_id=previous, item=told)
        await self.send("conversation.item.done", previous_item_id=previous, item=told)

    def extra_content(self, role: str) -> tuple[str, ...]:
        """Further content types an item may have."""
        del role
        return ()
