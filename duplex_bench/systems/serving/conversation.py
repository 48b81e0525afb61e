"""One conversation of the OpenAI realtime server: input buffer, turns, responses, interruption, truncation.

Event names, order and rules follow the vendor's reference and recorded sessions (docs/hosted-systems.md). Dialects
override the small methods at the end.
"""

import asyncio
import base64
import contextlib
import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.systems.adapters.cascade.endpointers import Endpointer, SemanticEndpointer, SilenceEndpointer
from duplex_bench.systems.serving.delivery import Desk, Manner, delivered
from duplex_bench.systems.serving.ears import Ears, Edge, never_ends
from duplex_bench.systems.serving.faults import Faults, Moment
from duplex_bench.systems.serving.openai_config import ConfigError, default_session, merged
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.voices import RATE_HZ, Voice

LEAST_COMMIT_MS: Final = 100
# As the embedded cascade joins stretches of speech.
JOIN_MS: Final = 1000
MOST_APPEND_BYTES: Final = 15 * 1024 * 1024
# Longest wait of semantic detection by eagerness, in seconds; auto is medium.
EAGERNESS_CAP_S: Final = {"low": 8.0, "medium": 4.0, "auto": 4.0, "high": 2.0}


@dataclass
class Item:
    """An item of the conversation as the server remembers it; ``speech_ms`` is where a heard turn's sound lies."""

    item_id: str
    role: str
    text: str
    audio_ms: int = 0
    heard_ms: int | None = None
    sound: Samples | None = None
    speech_ms: tuple[int, int] | None = None


def _continues(item: Item, later: Item) -> bool:
    """Whether two heard turns are one to a listener: nothing was said between them, and the silence was short."""
    if item.speech_ms is None or later.speech_ms is None:
        return False
    return later.speech_ms[0] - item.speech_ms[1] < JOIN_MS


@dataclass
class Response:
    """A response that is being made."""

    response_id: str
    task: "asyncio.Task[None] | None" = None
    cancel: str = ""


@dataclass(frozen=True)
class Setting:
    """What a server serves with; ``rng`` draws chunk lengths and delays."""

    voice: Voice
    desk: Desk
    manner: Manner
    faults: Faults
    rng: np.random.Generator


class Conversation:
    """See the module. ``items`` is the context, which tests may look at."""

    def __init__(self, peer: Peer, setting: Setting, name: str, model: str, key: str) -> None:
        self.peer, self.setting, self.faults = peer, setting, setting.faults
        self.name, self.key = name, key
        self.session = default_session(f"sess_{name}", model, 0)
        self.items: list[Item] = []
        self.ears = self.new_ears()
        self.buffer_from_ms = 0
        self.onset_ms = 0
        self.pending_item = ""
        self.response: Response | None = None
        self.counts = {"event": 0, "item": 0, "resp": 0}
        self.work: set[asyncio.Task[None]] = set()
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.stalled = False

    async def converse(self) -> None:
        """Serve until the peer leaves, the session expires, or a fault closes it."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.faults.max_session_s
        try:
            if self.faults.start_delay_s:
                await wait_until(loop.time() + self.faults.start_delay_s)
            await self.greet()
            await self.moment("created")
            self.spawn(self._expire(end_s))
            self.spawn(self._listen())
            await self.failure
        finally:
            for task in self.work:
                task.cancel()
            await asyncio.gather(*self.work, return_exceptions=True)

    def spawn(self, work: Any) -> "asyncio.Task[None]":
        """Run ``work`` beside the rest; its error ends the conversation."""

        async def guarded() -> None:
            try:
                await work
            except (CloseConnection, ConnectionError, ValueError) as error:
                if not self.failure.done():
                    self.failure.set_exception(error)

        task = asyncio.create_task(guarded())
        self.work.add(task)
        task.add_done_callback(self.work.discard)
        return task

    async def _expire(self, end_s: float) -> None:
        await wait_until(end_s)
        minutes = self.faults.max_session_s / 60
        told = f"Your session hit the maximum duration of {minutes:.0f} minutes."
        await self.error("session_expired", told)
        raise CloseConnection(1001, told)

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
        elif kind == "response.create":
            await self.response_asked(event_id)
        elif kind == "response.cancel":
            if self.response is None:
                await self.error("response_cancel_not_active", "Cancellation failed: no active response", event_id)
            else:
                self.response.cancel = "client_cancelled"
        else:
            await self.error("invalid_value", f"Invalid value: '{kind}'.", event_id, "type")

    # Input -----------------------------------------------------------------------------------------------------------

    async def _update(self, update: dict[str, Any], event_id: Any) -> None:
        try:
            self.session = self.apply(update)
        except ConfigError as error:
            await self.error(error.code, str(error), event_id, error.param)
            if error.code == "beta_api_shape_disabled":
                raise CloseConnection(4000, "invalid_request_error.beta_api_shape_disabled") from None
            return
        self.ears = self.new_ears()
        self.buffer_from_ms = 0
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
        self.items.append(Item(item_id, "user", "", len(sound) * 1000 // RATE_HZ, sound=sound, speech_ms=speech_ms))
        await self.send("input_audio_buffer.committed", item_id=item_id, previous_item_id=previous)
        await self.announce_user_item(item_id, previous)
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
        wanted = {"user": ("input_text", "input_audio"), "system": ("input_text",), "assistant": ("output_text",)}
        part = content[0]
        if role not in wanted or part.get("type") not in (*wanted[role], *self.extra_content(role)):
            await self.error("invalid_value", f"Invalid content for role {role!r}", event_id, "item.content")
            return
        sound = None
        if part["type"] == "input_audio":
            with contextlib.suppress(ValueError):
                data = base64.b64decode(part.get("audio") or "")
                sound = from_pcm16(np.frombuffer(data[: len(data) // 2 * 2], dtype="<i2").astype(np.int16))
        previous = self.items[-1].item_id if self.items else None
        made = Item(item.get("id") or self.new_id("item"), role, part.get("text") or "", sound=sound)
        self.items.append(made)
        told = {"id": made.item_id, "type": "message", "role": role, "status": "completed", "content": content}
        await self.announce_item(told, previous)

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

    # Output ----------------------------------------------------------------------------------------------------------

    async def response_asked(self, event_id: Any) -> None:
        """``response.create``."""
        if self.response is not None:
            told = "Conversation already has an active response in progress"
            await self.error("conversation_already_has_active_response", told, event_id)
            return
        await self.respond()

    async def respond(self) -> None:
        """Begin a response to the conversation as it stands."""
        before = self.response
        if before is not None:
            # A turn can end while the last reply is still being cancelled.
            before.cancel = before.cancel or "turn_detected"
            if before.task is not None:
                await asyncio.gather(before.task, return_exceptions=True)
        made = Response(self.new_id("resp"))
        self.response = made
        made.task = self.spawn(self._respond(made))

    async def _respond(self, made: Response) -> None:
        try:
            await self._make(made)
        finally:
            if self.response is made:
                self.response = None

    async def _make(self, made: Response) -> None:
        loop = asyncio.get_running_loop()
        ready_s = loop.time() + self.setting.manner.think_s
        if not self.faults.never_created:
            await self.send("response.created", response=self._response(made, "in_progress", []))
        if self.faults.unknown_event:
            await self.send("response.thought.added", response_id=made.response_id, thought="unknown to all")
        text = await self._decide()
        await wait_until(ready_s)
        if self.faults.fail_code:
            error = {"type": "server_error", "code": self.faults.fail_code, "message": f"no: {self.shown_key()}"}
            await self._done(made, "failed", [], {"type": "failed", "error": error})
            return
        if made.cancel or text is None or self.faults.empty_response:
            await self._done(made, "cancelled" if made.cancel else "completed", [])
            return
        said = await self._say(made, text)
        await self._done(made, "cancelled" if made.cancel else "completed", said)

    async def _decide(self) -> str | None:
        desk, voice = self.setting.desk, self.setting.voice
        for item in self.items:
            if item.sound is not None and not item.text:
                item.text = await desk.do(voice.hear, item.sound)
                item.sound = None
        if not any(item.role == "user" for item in self.items):
            return None
        stop = max(index for index, item in enumerate(self.items) if item.role == "user") + 1
        start = stop - 1
        while start > 0 and _continues(self.items[start - 1], self.items[start]):
            start -= 1
        earlier = [self.instructions(), *(item.text for item in self.items[:start] if item.text)]
        turn = " ".join(item.text for item in self.items[start:stop] if item.text)
        return await desk.do(voice.reply, earlier, turn)

    async def _say(self, made: Response, text: str) -> list[dict[str, Any]]:
        audio = await self.setting.desk.do(self.setting.voice.speak, text)
        halves = np.array_split(audio, 2) if self.faults.two_items else [audio]
        told: list[dict[str, Any]] = []
        for index, part in enumerate(halves):
            if made.cancel:
                break
            told.append(await self._say_item(made, index, text if index == 0 else "", part))
        return told

    async def _say_item(self, made: Response, index: int, text: str, audio: Samples) -> dict[str, Any]:
        item = Item(self.new_id("item"), "assistant", text)
        self.items.append(item)
        where = {"response_id": made.response_id, "item_id": item.item_id, "output_index": index, "content_index": 0}
        told: dict[str, Any] = {"id": item.item_id, "type": "message", "role": "assistant", "status": "in_progress"}
        told["content"] = []
        await self.send("response.output_item.added", response_id=made.response_id, output_index=index, item=told)
        await self.announce_assistant_item(told)
        await self.send("response.content_part.added", part={"type": "audio", "transcript": ""}, **where)
        # Transcripts run ahead of the audio.
        for word in text.split():
            await self.send("response.output_audio_transcript.delta", delta=f"{word} ", **where, **self.extra_words())
        if not self.faults.no_audio:
            await self._stream(made, item, audio, where)
        part = {"type": self.stored_part(), "transcript": text}
        told = {**told, "status": "incomplete" if made.cancel else "completed", "content": [part]}
        await self.send("response.output_audio.done", **where)
        await self.send("response.output_audio_transcript.done", transcript=text, **where)
        await self.send("response.content_part.done", part=part, **where)
        await self.finish_assistant_item(told)
        await self.send("response.output_item.done", response_id=made.response_id, output_index=index, item=told)
        return told

    async def _stream(self, made: Response, item: Item, audio: Samples, where: dict[str, Any]) -> None:
        in_flight = int(self.setting.rng.integers(1, 3))
        rest = b""
        sent = 0
        async for chunk in delivered(audio, RATE_HZ, self.setting.manner, self.setting.rng):
            if made.cancel:
                in_flight -= 1
                if in_flight < 0:
                    break
            data = rest + to_pcm16(chunk).astype("<i2").tobytes()
            whole = len(data) - 1 if self.faults.odd_lengths and len(data) > 1 else len(data)
            rest = data[whole:]
            sent += len(chunk)
            item.audio_ms = sent * 1000 // RATE_HZ
            encoded = base64.b64encode(data[:whole]).decode("ascii")
            await self.send("response.output_audio.delta", delta=encoded, **where, **self.extra_audio(chunk))
            await self.moment("audio")

    async def _done(self, made: Response, status: str, output: list[dict[str, Any]], details: Any = None) -> None:
        if made.cancel:
            details = {"type": "cancelled", "reason": made.cancel}
        tokens_out = sum(item.audio_ms for item in self.items if item.role == "assistant") // 50
        tokens_in = sum(item.audio_ms for item in self.items if item.role == "user") // 100
        usage = {
            "total_tokens": tokens_in + tokens_out, "input_tokens": tokens_in, "output_tokens": tokens_out,
            "input_token_details": {"text_tokens": 0, "audio_tokens": tokens_in, "cached_tokens": 0},
            "output_token_details": {"text_tokens": 0, "audio_tokens": tokens_out},
        }  # fmt: skip
        if self.response is made:
            self.response = None
        response = {**self._response(made, status, output), "status_details": details}
        await self.send_done(response, usage)

    def _response(self, made: Response, status: str, output: list[dict[str, Any]]) -> dict[str, Any]:
        return {"object": "realtime.response", "id": made.response_id, "status": status, "status_details": None,
                "output": output, "conversation_id": f"conv_{self.name}", "output_modalities": ["audio"],
                "usage": None, "metadata": None}  # fmt: skip

    # Plumbing --------------------------------------------------------------------------------------------------------

    async def send(self, kind: str, **fields: Any) -> None:
        """One server event."""
        if not self.stalled:
            await self.peer.send(json.dumps({"type": kind, "event_id": self.new_id("event"), **fields}))

    async def error(self, code: str, told: str, event_id: Any = None, param: str | None = None) -> None:
        """An error event; most are not fatal."""
        error = {"type": "invalid_request_error", "code": code, "message": told, "param": param, "event_id": event_id}
        await self.send("error", error=error)

    async def moment(self, now: Moment) -> None:
        """Where faults strike."""
        if self.faults.garbage_at == now:
            await self.peer.send("<html>502 Bad Gateway</html>")
        if self.faults.stall_at == now:
            self.stalled = True
        if self.faults.close_at == now:
            raise CloseConnection(self.faults.close_code, f"{self.faults.close_reason}{self.shown_key()}")

    def shown_key(self) -> str:
        """The client's key, where the fault is that errors repeat it."""
        return f" Bearer {self.key}" if self.faults.echo_key else ""

    def new_id(self, kind: str) -> str:
        """Ids that are the same in every run."""
        self.counts[kind] += 1
        return f"{kind}_{self.name}_{self.counts[kind]}"

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

    # What dialects change --------------------------------------------------------------------------------------------

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
        return self.session

    def detection(self) -> dict[str, Any] | None:
        """Detection settings in force, None if off."""
        found: dict[str, Any] | None = self.session["audio"]["input"]["turn_detection"]
        if found is None and self.faults.keep_detection:
            return {"type": "server_vad", "silence_duration_ms": 200, "prefix_padding_ms": 300}
        return found

    def instructions(self) -> str:
        """The session's instructions."""
        return str(self.session["instructions"])

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

    async def announce_assistant_item(self, told: dict[str, Any]) -> None:
        """An item of the assistant has begun."""
        await self.send("conversation.item.added", previous_item_id=None, item=told)

    async def finish_assistant_item(self, told: dict[str, Any]) -> None:
        """An item of the assistant is complete."""
        await self.send("conversation.item.done", previous_item_id=None, item=told)

    async def send_done(self, response: dict[str, Any], usage: dict[str, Any]) -> None:
        """``response.done`` and what follows it."""
        await self.send("response.done", response={**response, "usage": usage})
        limits = [{"name": "tokens", "limit": 40000, "remaining": 39000, "reset_seconds": 1.5}]
        await self.send("rate_limits.updated", rate_limits=limits)

    def stored_part(self) -> str:
        """Type of a finished assistant part."""
        return "output_audio"

    def extra_content(self, role: str) -> tuple[str, ...]:
        """Further content types an item may have."""
        del role
        return ()

    def extra_audio(self, chunk: Samples) -> dict[str, Any]:
        """Further fields of audio deltas."""
        del chunk
        return {}

    def extra_words(self) -> dict[str, Any]:
        """Further fields of transcript deltas."""
        return {"obfuscation": "x" * int(self.setting.rng.integers(1, 8))}
