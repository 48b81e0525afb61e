"""The xAI skin of the realtime server: other greeting and positions, an asynchronous commit, usage of its own."""

import copy
from collections.abc import Mapping
from typing import Any, Final

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.serving.conversation import Conversation
from duplex_bench.systems.serving.openai_config import ConfigError
from duplex_bench.systems.serving.speaking import Item
from duplex_bench.systems.serving.voices import RATE_HZ

PING_S: Final = 10.0


class XaiConversation(Conversation):
    """Overrides what the Grok Voice Agent API does otherwise."""

    # A request that came while a commit was being processed.
    overtaken = 0
    expired_code = "max_duration"
    # Text alone is asked for in vain: it always speaks.
    writes = False
    retrieves = False
    _committing = False

    async def greet(self) -> None:
        """Three events; detection is off."""
        self.session = {"id": f"sess_{self.name}", "object": "realtime.session", "instructions": "", "voice": "ara",
                        "modalities": ["audio"], "turn_detection": {"type": None}, "tools": [],
                        "model": self.session["model"]}  # fmt: skip
        self.ears = self.new_ears()
        await self.send("session.created", session=self.session)
        await self.send("conversation.created", conversation={"id": f"conv_{self.name}"})
        await self.send("ping", timestamp=0)
        self.beside.spawn(self._ping())

    async def _ping(self) -> None:
        began_s = self._now_s()
        while True:
            await wait_until(self._now_s() + PING_S)
            await self.send("ping", timestamp=round((self._now_s() - began_s) * 1000))

    def apply(self, update: dict[str, Any]) -> dict[str, Any]:
        """Known keys at the top level; a nested detection or voice is ignored without a word.

        Raises:
            ConfigError: Another form of audio than this server has.
        """
        result = copy.deepcopy(self.session)
        audio = update.get("audio") or {}
        for side in ("input", "output"):
            form = (audio.get(side) or {}).get("format") or {}
            if form.get("type", "audio/pcm") != "audio/pcm" or form.get("rate", RATE_HZ) != RATE_HZ:
                told = f"this server takes audio/pcm at {RATE_HZ} alone"
                raise ConfigError("invalid_value", f"session.audio.{side}.format", told)
        if "transcription" in (audio.get("input") or {}):
            result["input_audio_transcription"] = audio["input"]["transcription"]
        for name in ("instructions", "voice", "turn_detection", "tools"):
            if name in update:
                result[name] = update[name]
        return result

    def echo(self) -> dict[str, Any]:
        """Off is echoed as an empty object."""
        detection = self.session["turn_detection"]
        told = {} if not (detection or {}).get("type") else detection
        if self.faults.ignore_detection:
            told = {"type": "server_vad"} if not told else {}
        form = {"type": "audio/pcm", "rate": 16_000 if self.faults.wrong_rate else RATE_HZ}
        return {**self.session, "turn_detection": told, "temperature": -1, "input_audio_format": "not specified",
                "audio": {"input": {"format": form}, "output": {"format": form}}}  # fmt: skip

    def detection(self) -> Mapping[str, Any] | None:  # type: ignore[override]
        """Detection settings in force, None if off; a missing silence is the server's own."""
        found = self.session.get("turn_detection") or {}
        if not found.get("type"):
            return {"type": "server_vad", "silence_duration_ms": 200} if self.faults.keep_detection else None
        return {"silence_duration_ms": 600, "prefix_padding_ms": 333, **found}

    async def announce_speech(self, start_ms: int, item_id: str) -> None:
        """Speech began; the user's item is announced at once."""
        await self.send("input_audio_buffer.speech_started", audio_start_ms=start_ms, item_id=item_id)
        if self.faults.loose_speech:
            await self.send("input_audio_buffer.speech_started", item_id=item_id)
        told = {"id": item_id, "type": "message", "role": "user", "status": "in_progress", "content": []}
        await self.send("conversation.item.added", previous_item_id=None, item=told)

    async def announce_user_item(self, item_id: str, previous: str | None) -> None:
        """Announced at speech start where there is detection, and here where there is none."""
        if self.detection() is None:
            told = {"id": item_id, "type": "message", "role": "user", "status": "completed", "content": []}
            await self.send("conversation.item.added", previous_item_id=previous, item=told)

    async def announce_item(self, told: dict[str, Any], previous: str | None) -> None:
        """Added, never done."""
        await self.send("conversation.item.added", previous_item_id=previous, item=told)

    async def finish_assistant_item(self, told: dict[str, Any]) -> None:
        """Nothing is said."""

    async def commit_by_client(self, event_id: Any) -> None:
        """Asynchronous, and only with detection off."""
        if self.detection() is not None:
            await self.error("", "commit is available only when turn_detection.type is null", event_id)
            return
        self._committing = True

        async def later() -> None:
            delay_s = float(self.setting.rng.uniform(0.05, 0.3))
            await wait_until(self._now_s() + delay_s)
            self._committing = False
            await super(XaiConversation, self).commit_by_client(event_id)

        self.beside.spawn(later())

    async def response_asked(self, event_id: Any, asked: dict[str, Any]) -> None:
        """A request that overtakes a commit is answered without the last audio."""
        if self._committing:
            self.overtaken += 1
        await super().response_asked(event_id, asked)

    async def truncate(self, message: dict[str, Any], event_id: Any) -> None:
        """Doubtful on this API: works, fails, or is met with silence."""
        if self.faults.truncate == "ok":
            await super().truncate(message, event_id)
        elif self.faults.truncate == "error":
            await self.error("", "truncation is not supported", event_id)

    async def send_done(self, response: dict[str, Any], usage: dict[str, Any]) -> None:
        """Usage stands at the top level, details are a string unless something failed."""
        details = response["status_details"] if response["status"] == "failed" else "unimplemented"
        seconds = sum(item.audio_ms for item in self.items) / 1000
        told = {**usage, "output_audio_seconds": seconds, "billable_audio_seconds": round(seconds)}
        await self.send("response.done", response={**response, "status_details": details, "usage": {}}, usage=told)

    async def error(self, code: str, told: str, event_id: Any = None, param: str | None = None) -> None:
        """Errors have a type and a message, seldom a code."""
        del param
        kind = code if code in ("timeout", "max_duration") else "invalid_request_error"
        error = {"type": kind, "message": told, "event_id": event_id}
        if code in ("rate_limit_exceeded", "session_expired"):
            error["code"] = code
        await self.send("error", error=error)

    def transcribes(self) -> bool:
        """Whether the client asked for the words of what it said."""
        return self.session.get("input_audio_transcription") is not None

    async def tell_transcript(self, item: Item) -> None:
        """Words so far, corrected as more are known, and told as complete more than once."""
        kind, where = "conversation.item.input_audio_transcription", {"item_id": item.item_id, "content_index": 0}
        words = (await self.heard(item)).split()
        # The last word of a part is a guess that is taken back.
        parts = [*(" ".join([*words[:count], "uh"]) for count in range(1, len(words))), " ".join(words)]
        for part in parts:
            await self.send(f"{kind}.updated", transcript=part, **where)
            await self.send(f"{kind}.completed", transcript=part, status="in_progress", **where)

    def part_done(self, part: dict[str, Any]) -> dict[str, Any]:
        """Nothing of the part is told again."""
        del part
        return {}

    def stored_part(self) -> str:
        """Type of a finished assistant part."""
        return "audio"

    def extra_content(self, role: str) -> tuple[str, ...]:
        """The wire name of an assistant's text."""
        return ("text",) if role == "assistant" else ()

    def extra_audio(self, chunk: Samples) -> dict[str, Any]:
        """Length of the delta."""
        return {"rid": self.name, "audio_duration_ms": len(chunk) * 1000 // RATE_HZ}

    def extra_words(self) -> dict[str, Any]:
        """Where in the reply a word begins."""
        return {"rid": self.name, "start_time": 0.0}

    def _now_s(self) -> float:
        return self.beside.failure.get_loop().time()
