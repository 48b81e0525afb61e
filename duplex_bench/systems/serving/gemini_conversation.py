"""One conversation of the Gemini Live server: setup first, activity automatic or marked, one reply per turn.

No ids; messages in binary frames; several keys may share a message. Rules follow the vendor's reference and recorded
sessions (docs/hosted-systems.md).
"""

import asyncio
import base64
import json
from typing import Any, Final

import numpy as np

from duplex_bench.audio.resample import resample
from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.blobs import from_pcm16, to_pcm16
from duplex_bench.systems.adapters.cascade.endpointers import SilenceEndpointer
from duplex_bench.systems.serving.beside import Beside
from duplex_bench.systems.serving.delivery import delivered
from duplex_bench.systems.serving.ears import Ears, Edge, never_ends
from duplex_bench.systems.serving.faults import Moment
from duplex_bench.systems.serving.peers import CloseConnection, Peer
from duplex_bench.systems.serving.speaking import Setting
from duplex_bench.systems.serving.voices import RATE_HZ

IN_RATE_HZ: Final = 16_000
# What the server takes as the end of speech if the setup names nothing (the vendor's default is not published).
DEFAULT_SILENCE_MS: Final = 800


class GeminiConversation:
    """See the module. ``turns`` is the context, which tests may look at: (role, text)."""

    def __init__(self, peer: Peer, setting: Setting, key: str) -> None:
        self.peer, self.setting, self.faults, self.key = peer, setting, setting.faults, key
        self.instructions = ""
        self.turns: list[tuple[str, str]] = []
        self.manual = False
        self.window_from_ms: int | None = None
        self.turn_from_ms = 0
        self.ears = Ears(IN_RATE_HZ, never_ends())
        self.reply: asyncio.Task[None] | None = None
        self.interrupted = False
        self.expects_history = False
        self.transcribes = False
        self.beside = Beside()
        self.stalled = False

    async def converse(self) -> None:
        """Serve until the peer leaves or a fault closes the connection."""
        loop = asyncio.get_running_loop()
        if self.faults.start_delay_s:
            await wait_until(loop.time() + self.faults.start_delay_s)
        try:
            await self._set_up(_snake_free(await self._receive()))
            await self._moment("created")
            self.beside.spawn(self._expire(loop.time() + self.faults.max_session_s))
            self.beside.spawn(self._listen())
            await self.beside.failure
        finally:
            await self.beside.end()

    async def _expire(self, end_s: float) -> None:
        await wait_until(end_s)
        await self._send({"goAway": {"timeLeft": "0s"}})
        raise CloseConnection(1000, "")

    async def _receive(self) -> dict[str, Any]:
        try:
            message = json.loads(await self.peer.receive())
        except ValueError:
            message = None
        if not isinstance(message, dict) or len(message) != 1:
            raise CloseConnection(1007, "a message is a JSON object with one key")
        return message

    async def _set_up(self, message: dict[str, Any]) -> None:
        setup = message.get("setup")
        if not isinstance(setup, dict) or not str(setup.get("model", "")).startswith("models/"):
            raise CloseConnection(1007, "setup must be the first message and name models/...")
        if (setup.get("generationConfig") or {}).get("responseModalities") != ["AUDIO"]:
            raise CloseConnection(1007, "this model speaks: responseModalities must be AUDIO")
        parts = (setup.get("systemInstruction") or {}).get("parts") or [{}]
        self.instructions = str(parts[0].get("text", ""))
        detection = (setup.get("realtimeInputConfig") or {}).get("automaticActivityDetection") or {}
        self.manual = bool(detection.get("disabled"))
        self.expects_history = bool((setup.get("historyConfig") or {}).get("initialHistoryInClientContent"))
        self.transcribes = "inputAudioTranscription" in setup
        if "handle" in (setup.get("sessionResumption") or {}):
            raise CloseConnection(1007, "sessionResumption: this server resumes nothing, leave handle out")
        if not self.manual:
            silence_ms = int(detection.get("silenceDurationMs") or DEFAULT_SILENCE_MS)
            if self.faults.ignore_detection:
                silence_ms = 2000
            self.ears = Ears(IN_RATE_HZ, SilenceEndpointer(silence_ms / 1000))
        await self._send({"setupComplete": {}})

    async def _listen(self) -> None:
        while True:
            message = _snake_free(await self._receive())
            if "clientContent" in message:
                await self._content(message["clientContent"])
            elif "realtimeInput" in message:
                await self._input(_snake_free(message["realtimeInput"]))
            else:
                raise CloseConnection(1007, f"unknown message {min(message)}")

    async def _content(self, content: dict[str, Any]) -> None:
        if self.faults.refuse_history or not self.expects_history:
            raise CloseConnection(1007, "Request contains an invalid argument.")
        for turn in content.get("turns") or []:
            text = " ".join(str(part["text"]) for part in turn.get("parts") or [])
            if turn.get("role") not in ("user", "model") or not text:
                raise CloseConnection(1007, "a turn has a role, user or model, and text")
            self.turns.append((turn["role"], text))
        self.expects_history = not content.get("turnComplete")

    async def _input(self, data: dict[str, Any]) -> None:
        if "audio" in data:
            await self._audio(data["audio"])
        elif "activityStart" in data:
            if not self.manual:
                raise CloseConnection(1007, "activity markers need automatic detection to be disabled")
            self.window_from_ms = self.ears.now_ms
            await self._interrupt()
        elif "activityEnd" in data:
            if not self.manual or self.window_from_ms is None:
                raise CloseConnection(1007, "activityEnd without activityStart")
            sound = self.ears.between(self.window_from_ms, self.ears.now_ms)
            offset = f"{self.ears.now_ms / 1000:.1f}s"
            self.window_from_ms = None
            await self._send({"voiceActivity": {"type": "ACTIVITY_END", "audioOffset": offset}})
            await self._turn(sound)
        elif "audioStreamEnd" in data:
            if self.manual:
                raise CloseConnection(1007, "audioStreamEnd needs automatic detection")
            await self._stopped(self.ears.now_ms)
        elif "text" in data:
            await self._interrupt()
            await self._turn(str(data["text"]))
        else:
            raise CloseConnection(1007, f"unknown realtimeInput {min(data, default='')}")

    async def _audio(self, audio: dict[str, Any]) -> None:
        if f"rate={IN_RATE_HZ}" not in str(audio.get("mimeType", "")):
            raise CloseConnection(1007, "this server takes audio/pcm;rate=16000")
        try:
            data = base64.b64decode(audio.get("data") or "", validate=True)
        except ValueError:
            raise CloseConnection(1007, "audio is no base64") from None
        for edge in self.ears.hear(from_pcm16(np.frombuffer(data[: len(data) // 2 * 2], "<i2").astype(np.int16))):
            await self._edge(edge)

    async def _edge(self, edge: Edge) -> None:
        if self.manual:
            return
        if edge.kind == "stopped":
            await self._stopped(edge.now_ms)
            return
        self.turn_from_ms = max(0, edge.sound_ms - 300)
        await self._send({"voiceActivity": {"type": "ACTIVITY_START", "audioOffset": f"{edge.sound_ms / 1000:.1f}s"}})
        await self._interrupt()

    async def _stopped(self, now_ms: int) -> None:
        sound = self.ears.between(self.turn_from_ms, now_ms)
        self.turn_from_ms = now_ms
        await self._turn(sound)

    async def _interrupt(self) -> None:
        if self.reply is not None and not self.reply.done():
            self.interrupted = True

    async def _turn(self, said: Samples | str) -> None:
        await self._moment("committed")
        if self.reply is not None and not self.reply.done():
            self.interrupted = True
            await asyncio.gather(self.reply, return_exceptions=True)
        self.interrupted = False
        self.reply = self.beside.spawn(self._reply(said))

    async def _reply(self, said: Samples | str) -> None:
        ready_s = asyncio.get_running_loop().time() + self.setting.manner.think_s
        desk, voice = self.setting.desk, self.setting.voice
        heard = said if isinstance(said, str) else await desk.do(voice.hear, resample(said, IN_RATE_HZ, RATE_HZ))
        if self.transcribes and not isinstance(said, str) and not self.faults.no_transcription:
            await self._send({"serverContent": {"inputTranscription": {"text": heard}}})
        earlier = [self.instructions, *(text for _, text in self.turns)]
        self.turns.append(("user", heard))
        text = await desk.do(voice.reply, earlier, heard)
        await wait_until(ready_s)
        await self._send({"serverContent": {}})
        if self._was_interrupted():
            await self._end_interrupted()
            return
        end_s = asyncio.get_running_loop().time()
        if text is not None and not self.faults.empty_response:
            end_s = await self._say(text)
            if self._was_interrupted():
                await self._end_interrupted()
                return
            await self._send({"serverContent": {"generationComplete": True}})
        # The vendor holds this back until playback would have ended.
        while asyncio.get_running_loop().time() < end_s and not self._was_interrupted():
            await wait_until(min(end_s, asyncio.get_running_loop().time() + 0.02))
        late = self.faults.interrupted_late
        if self._was_interrupted() and not late:
            await self._send({"serverContent": {"interrupted": True}})
        tokens = round(25 * self.ears.now_ms / 1000)
        usage = {"promptTokenCount": tokens, "promptTokensDetails": [{"modality": "AUDIO", "tokenCount": tokens}],
                 "responseTokensDetails": [{"modality": "AUDIO", "tokenCount": 50}]}  # fmt: skip
        told = {} if self.faults.no_usage else {"usageMetadata": usage}
        await self._send({"serverContent": {"turnComplete": True}, **told})
        if self._was_interrupted() and late:
            await self._send({"serverContent": {"interrupted": True}})

    def _was_interrupted(self) -> bool:
        return self.interrupted

    async def _end_interrupted(self) -> None:
        await self._send({"serverContent": {"interrupted": True}})
        await self._send({"serverContent": {"turnComplete": True}})

    async def _say(self, text: str) -> float:
        """Send a reply; when its playback would end."""
        audio = await self.setting.desk.do(self.setting.voice.speak, text)
        self.turns.append(("model", text))
        thought = {"modelTurn": {"parts": [{"text": "I should answer.", "thought": True}]}}
        await self._send({"serverContent": thought})
        start_s = asyncio.get_running_loop().time()
        rate = 16_000 if self.faults.wrong_rate else RATE_HZ
        words = {"outputTranscription": {"text": text}}
        if self.faults.no_audio:
            await self._send({"serverContent": words})
            return start_s
        async for chunk in delivered(audio, RATE_HZ, self.setting.manner, self.setting.rng):
            if self.interrupted:
                break
            data = base64.b64encode(to_pcm16(chunk).astype("<i2").tobytes()).decode("ascii")
            part = {"inlineData": {"mimeType": f"audio/pcm;rate={rate}", "data": data}}
            await self._send({"serverContent": {"modelTurn": {"parts": [part]}, **words}})
            words = {}
            await self._moment("audio")
        return start_s + len(audio) / RATE_HZ

    async def _send(self, message: dict[str, Any]) -> None:
        if not self.stalled:
            await self.peer.send(json.dumps(message).encode())

    async def _moment(self, now: Moment) -> None:
        if self.faults.garbage_at == now:
            await self.peer.send(b"\x00\xff not JSON")
        if self.faults.stall_at == now:
            self.stalled = True
        if self.faults.error_code and now == "committed":
            shown = f" {self.key}" if self.faults.echo_key else ""
            await self._send({"error": {"code": 429, "status": self.faults.error_code, "message": f"no{shown}"}})
        if self.faults.close_at == now:
            shown = f" {self.key}" if self.faults.echo_key else ""
            raise CloseConnection(self.faults.close_code, f"{self.faults.close_reason}{shown}")


def _snake_free(message: dict[str, Any]) -> dict[str, Any]:
    """Both spellings are accepted: ``realtime_input`` is ``realtimeInput``."""

    def camel(name: str) -> str:
        first, *rest = name.split("_")
        return first + "".join(part.capitalize() for part in rest)

    return {camel(name): value for name, value in message.items()}
