"""The speaking half of the OpenAI realtime server: responses, their items and deltas, cancellation, faults.

Event names, order and rules follow the vendor's reference and recorded sessions (docs/hosted-systems.md). Dialects
override the small public methods.
"""

import asyncio
import base64
import json
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.systems.serving.beside import Beside
from duplex_bench.systems.serving.delivery import Desk, Manner, delivered
from duplex_bench.systems.serving.faults import Faults, Moment
from duplex_bench.systems.serving.openai_config import default_session
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.response_options import NOTHING, ResponseOptions
from duplex_bench.systems.serving.voices import RATE_HZ, Voice

# As the embedded cascade joins stretches of speech.
JOIN_MS: Final = 1000


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

    def part(self) -> str:
        """What kind of part it has, as items that are kept call it."""
        return f"{'output' if self.role == 'assistant' else 'input'}_{'audio' if self.audio_ms else 'text'}"


def _continues(item: Item, later: Item) -> bool:
    """Whether two heard turns are one to a listener: nothing was said between them, and the silence was short."""
    if item.speech_ms is None or later.speech_ms is None:
        return False
    return later.speech_ms[0] - item.speech_ms[1] < JOIN_MS


@dataclass
class Response:
    """A response that is being made."""

    response_id: str
    options: ResponseOptions = NOTHING
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


class Speaking:
    """See the module. ``items`` is the context, which tests may look at."""

    # Whether a reply can be had in writing alone.
    writes = True

    def __init__(self, peer: Peer, setting: Setting, name: str, model: str, key: str) -> None:
        self.peer, self.setting, self.faults = peer, setting, setting.faults
        self.name, self.key = name, key
        self.session = default_session(f"sess_{name}", model, 0)
        self.items: list[Item] = []
        self.response: Response | None = None
        self.counts = {"event": 0, "item": 0, "resp": 0}
        self.beside = Beside()
        self.stalled = False
        self._hearing = asyncio.Lock()

    async def respond(self, options: ResponseOptions = NOTHING) -> None:
        """Begin a response to the conversation as it stands, or to what the options give."""
        before = self.response
        if before is not None:
            # A turn can end while the last reply is still being cancelled.
            before.cancel = before.cancel or "turn_detected"
            if before.task is not None:
                await asyncio.gather(before.task, return_exceptions=True)
        made = Response(self.new_id("resp"), options)
        self.response = made
        made.task = self.beside.spawn(self._respond(made))

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
        text = await self._decide(made.options)
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

    async def heard(self, item: Item) -> str:
        """The words of an item, recognised once."""
        async with self._hearing:
            if item.sound is not None and not item.text:
                item.text = await self.setting.desk.do(self.setting.voice.hear, item.sound)
                item.sound = None
        return item.text

    async def _decide(self, options: ResponseOptions) -> str | None:
        desk, voice = self.setting.desk, self.setting.voice
        if options.lines is None:
            for item in self.items:
                await self.heard(item)
            items = self.items
        else:
            items = [Item("", role, text) for role, text in options.lines]
        if not any(item.role == "user" for item in items):
            return None
        stop = max(index for index, item in enumerate(items) if item.role == "user") + 1
        start = stop - 1
        while start > 0 and _continues(items[start - 1], items[start]):
            start -= 1
        told = self.instructions() if options.instructions is None else options.instructions
        earlier = [told, *(item.text for item in items[:start] if item.text)]
        turn = " ".join(item.text for item in items[start:stop] if item.text)
        return await desk.do(voice.reply, earlier, turn)

    async def _say(self, made: Response, text: str) -> list[dict[str, Any]]:
        if self._modalities(made) == ["text"]:
            return [await self._write_item(made, text)]
        audio = await self.setting.desk.do(self.setting.voice.speak, text)
        halves = np.array_split(audio, 2) if self.faults.two_items else [audio]
        told: list[dict[str, Any]] = []
        for index, part in enumerate(halves):
            if made.cancel:
                break
            told.append(await self._say_item(made, index, text if index == 0 else "", part))
        return told

    async def _say_item(self, made: Response, index: int, text: str, audio: Samples) -> dict[str, Any]:
        item, told, where = await self._begin_item(made, index, text)
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
        return await self._end_item(made, told, where)

    async def _write_item(self, made: Response, text: str) -> dict[str, Any]:
        """A reply in writing, for who asked for text alone."""
        _, told, where = await self._begin_item(made, 0, text)
        await self.send("response.content_part.added", part={"type": "text", "text": ""}, **where)
        for word in text.split():
            await self.send("response.output_text.delta", delta=f"{word} ", **where, **self.extra_words())
        await self.send("response.output_text.done", text=text, **where)
        part = {"type": "output_text", "text": text}
        return await self._end_item(made, {**told, "status": "completed", "content": [part]}, where)

    async def _begin_item(self, made: Response, index: int, text: str) -> tuple[Item, dict[str, Any], dict[str, Any]]:
        item = Item(self.new_id("item"), "assistant", text)
        where = {"response_id": made.response_id, "item_id": item.item_id, "output_index": index, "content_index": 0}
        told: dict[str, Any] = {"id": item.item_id, "type": "message", "role": "assistant", "status": "in_progress"}
        told["content"] = []
        await self.send("response.output_item.added", response_id=made.response_id, output_index=index, item=told)
        if not made.options.aside:
            self.items.append(item)
            await self.announce_assistant_item(told)
        return item, told, where

    async def _end_item(self, made: Response, told: dict[str, Any], where: dict[str, Any]) -> dict[str, Any]:
        (part,) = told["content"]
        # While it is streamed a part is called otherwise than in the item that is kept.
        shown = {**part, "type": "text" if "text" in part else "audio"}
        await self.send("response.content_part.done", **self.part_done(shown), **where)
        if not made.options.aside:
            await self.finish_assistant_item(told)
        index = where["output_index"]
        await self.send("response.output_item.done", response_id=made.response_id, output_index=index, item=told)
        return told

    def _modalities(self, made: Response) -> list[str]:
        return list(made.options.modalities or self.modalities()) if self.writes else ["audio"]

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
        options = made.options
        return {"object": "realtime.response", "id": made.response_id, "status": status, "status_details": None,
                "output": output, "conversation_id": None if options.aside else f"conv_{self.name}",
                "output_modalities": self._modalities(made), "usage": None, "metadata": options.metadata}  # fmt: skip

    async def send(self, kind: str, **fields: Any) -> None:
        """One server event."""
        if not self.stalled:
            message = json.dumps({"type": kind, "event_id": self.new_id("event"), **fields})
            await self.peer.send(message)
            if self.faults.repeat_events and kind == "response.output_audio.delta":
                await self.peer.send(message)

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
        if self.faults.duplicate_ids and kind == "resp":
            return f"{kind}_{self.name}_1"
        return f"{kind}_{self.name}_{self.counts[kind]}"

    def instructions(self) -> str:
        """The session's instructions."""
        return str(self.session["instructions"])

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

    def modalities(self) -> list[str]:
        """What the session's responses are made of."""
        return list(self.session["output_modalities"])

    def part_done(self, part: dict[str, Any]) -> dict[str, Any]:
        """How the end of a part is told."""
        return {"part": part}

    def stored_part(self) -> str:
        """Type of a finished assistant part."""
        return "output_audio"

    def extra_audio(self, chunk: Samples) -> dict[str, Any]:
        """Further fields of audio deltas."""
        del chunk
        return {}

    def extra_words(self) -> dict[str, Any]:
        """Further fields of transcript deltas."""
        return {"obfuscation": "x" * int(self.setting.rng.integers(1, 8))}
