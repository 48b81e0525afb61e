"""Google Gemini Live as a system: bidirectional generation over a raw WebSocket, automatic or manual activity.

There are no item or response ids, no truncation and no cancel: each model turn gets an id of ours, and a system may
remember speech that nobody heard. Source: the vendor's reference and recorded sessions; see docs/hosted-systems.md.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from duplex_bench.contract.card_settings import settings_from
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
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters.json_session import JsonSession
from duplex_bench.systems.adapters.openai_dialect import NEUTRAL_INSTRUCTIONS
from duplex_bench.systems.adapters.prices import cost_usd
from duplex_bench.systems.adapters.wire import (
    WEBSOCKET,
    Connector,
    PcmStream,
    WireClosedError,
    encoded,
    key_from,
)

URL: Final = (
    "wss://generativelanguage.googleapis.com/ws/google.ai.generativelanguage.v1beta.GenerativeService"
    ".BidiGenerateContent"
)
SPEC: Final = Spec(16_000, 24_000, 320, capabilities=frozenset({"text_prompt", "text_history"}))
# The order in which the vendor's own library takes them.
KEYS: Final = ("GOOGLE_API_KEY", "GEMINI_API_KEY")
_REFUSING_CODES: Final = frozenset({1007, 1008})
_REFUSING_STATUSES: Final = frozenset(
    {"INVALID_ARGUMENT", "FAILED_PRECONDITION", "NOT_FOUND", "PERMISSION_DENIED", "UNAUTHENTICATED"}
)
_FORGETS_NOTHING: Final = "this API has no truncation: it may remember speech that nobody heard"


@dataclass(frozen=True, slots=True)
class GeminiSettings:
    """What a card may set.

    Attributes:
        model: As the vendor names it, without ``models/``.
        activity: Which detection the system can be run with: both, or manual alone.
        silence_ms: Silence that ends a turn (P2: 500). Reports say that 3.1 ignores it: measure, do not trust.
        prefix_padding_ms: Speech required before an onset counts (P2: 300; not pre-roll as elsewhere).
        history_mode: ``seed``: turns before the stream, by the documented flag; ``system_text``: rendered into the
            instruction. Never mix both in one comparison.
        voice: Name of a prebuilt voice.
        thinking_level: minimal, low, medium or high; empty leaves the vendor's default (minimal on 3.1), since reports
            tell of empty turns where a level was set.
        url: WebSocket address.
        url_env: Variable that overrides ``url``.
        key_env: Variables that may hold the key.
    """

    model: str = "gemini-3.1-flash-live-preview"
    activity: Literal["both", "manual"] = "both"
    silence_ms: int = 500
    prefix_padding_ms: int = 300
    history_mode: Literal["seed", "system_text"] = "seed"
    voice: str = "Zephyr"
    thinking_level: str = ""
    url: str = URL
    url_env: str = "DUPLEX_BENCH_GEMINI_LIVE_URL"
    key_env: tuple[str, ...] = KEYS

    def __post_init__(self) -> None:
        if self.activity not in ("both", "manual") or self.history_mode not in ("seed", "system_text"):
            raise ValueError("gemini: activity is both or manual, history_mode is seed or system_text")
        if min(self.silence_ms, self.prefix_padding_ms) <= 0:
            raise ValueError("gemini: silence_ms and prefix_padding_ms must be positive")


class GeminiLive:
    """A ``PushSystem`` over Gemini Live."""

    spec: Spec = SPEC

    def __init__(self, settings: GeminiSettings, connector: Connector = WEBSOCKET) -> None:
        self.settings = settings
        self.connector = connector

    @property
    def detections(self) -> frozenset[Detection]:
        """Automatic and manual activity, or manual alone."""
        return frozenset({"manual"} if self.settings.activity == "manual" else {"automatic", "manual"})

    @property
    def virtual_time(self) -> bool:
        """Whether its server lives in this process's memory."""
        return self.connector.virtual_time

    def new_push_session(self) -> "GeminiSession":
        """A session over a connection of its own."""
        return GeminiSession(self.settings, self.connector)


class GeminiSession(JsonSession):
    """See ``PushSession``."""

    def __init__(self, settings: GeminiSettings, connector: Connector) -> None:
        self._settings = settings
        self._connector = connector
        self._key = key_from(settings.key_env)
        self._detection: Detection = "automatic"
        self._frames = 0
        self._turn = 1
        self._begun = False
        self._cut_turn = 0
        # A turn that was interrupted before anything of it was told: it may end without having begun.
        self._excused_turn = 0
        self._said = False
        self._turns_begun: set[int] = set()
        self._turns_counted: set[int] = set()
        self._late = 0
        self._stream = PcmStream()
        self._early: list[PushEvent] = []
        self._usage: dict[str, float] = {}
        self._round_trips_s: list[float | None] = []
        self._closed = False

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect, set up, hand over history."""
        refuse_unsupported(request, SPEC)
        if self._settings.activity == "manual" and detection != "manual":
            raise UnsupportedError("this card has manual activity only: it can be asked for replies, not overheard")
        settings = self._settings
        self._detection = detection
        url = os.environ.get(settings.url_env) or settings.url
        headers = {"x-goog-api-key": self._key.value} if self._key else {}
        self._wire = await self._connector.connect(url, headers, self._key)
        self._round_trips_s.append(await self._wire.round_trip_s())
        await self._send({"setup": self._setup(request)})
        while True:
            message = await self._next()
            if "setupComplete" in message:
                break
            self._early += self._read(message)
        if request.history and settings.history_mode == "seed":
            turns = [{"role": _role(part), "parts": [{"text": part.text}]} for part in _alternating(request.history)]
            await self._send({"clientContent": {"turns": turns, "turnComplete": True}})

    async def push(self, frame: Samples) -> None:
        """Send one frame; with manual activity the first is preceded by the start of activity."""
        if self._detection == "manual" and self._frames == 0:
            await self._send({"realtimeInput": {"activityStart": {}}})
        self._frames += 1
        data = encoded(checked_unit(frame, SPEC))
        # Base64 needs no escapes, see openai_session.
        form = f"audio/pcm;rate={SPEC.in_rate_hz}"
        await self._send_text(f'{{"realtimeInput":{{"audio":{{"data":"{data}","mimeType":"{form}"}}}}}}')

    async def reply_now(self) -> dict[str, Any]:
        """End the user's activity, which asks for the reply."""
        if self._detection != "manual":
            raise UnsupportedError("a reply is requested only with manual activity")
        await self._send({"realtimeInput": {"activityEnd": {}}})
        return {"commit_wait_s": 0.0, "extra_wait_s": 0.0}

    async def receive(self) -> list[PushEvent]:
        """What the next message says."""
        if self._early:
            early, self._early = self._early, []
            return early
        return self._read(await self._next())

    async def cut(self, response_id: str, heard_s: float) -> dict[str, Any]:
        """Nothing can be reported to this API; the log says so."""
        return {"item_id": response_id, "heard_ms": int(heard_s * 1000), "reported": False, "reason": _FORGETS_NOTHING}

    async def close(self) -> SessionStats:
        """Close the connection; usage and cost are in ``extra``."""
        if self._wire is not None and not self._closed:
            self._closed = True
            self._round_trips_s.append(await self._wire.round_trip_s())
            await self._wire.close()
        extra = {
            "usage": dict(self._usage),
            # A turn whose usage was never told (it was left, or the session ended first) was paid for all the same.
            "cost_usd": None
            if self._turns_begun - self._turns_counted
            else cost_usd(self._settings.model, self._usage),
            "history_mode": self._settings.history_mode,
            "late_deltas_dropped": self._late,
            "round_trip_s": self._round_trips_s,
        }
        return SessionStats(units=self._frames, extra=extra)

    def _setup(self, request: OpenRequest) -> dict[str, Any]:
        settings = self._settings
        instructions = request.prompt.text or NEUTRAL_INSTRUCTIONS
        if request.history and settings.history_mode == "system_text":
            lines = [f"{'You' if part.role == 'assistant' else 'They'}: {part.text}" for part in request.history]
            instructions += "\n\nThe conversation so far:\n" + "\n".join(lines)
        detection: dict[str, Any] = {"disabled": True}
        if self._detection == "automatic":
            detection = {
                "disabled": False,
                "prefixPaddingMs": settings.prefix_padding_ms,
                "silenceDurationMs": settings.silence_ms,
            }
        voice = {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": settings.voice}}}
        setup: dict[str, Any] = {
            "model": f"models/{settings.model}",
            "generationConfig": {
                "responseModalities": ["AUDIO"],
                "speechConfig": voice,
            },
            "systemInstruction": {"parts": [{"text": instructions}]},
            "realtimeInputConfig": {
                "automaticActivityDetection": detection,
                "activityHandling": "START_OF_ACTIVITY_INTERRUPTS",
            },
            "outputAudioTranscription": {},
        }
        if settings.thinking_level:
            setup["generationConfig"]["thinkingConfig"] = {"thinkingLevel": settings.thinking_level}
        if request.history and settings.history_mode == "seed":
            setup["historyConfig"] = {"initialHistoryInClientContent": True}
        return setup

    def _meant(self, error: WireClosedError) -> Exception:
        if error.code in _REFUSING_CODES:
            return RefusedError(f"{error}: the setup, the history or the model was refused")
        return RateLimitedError(str(error)) if "RESOURCE_EXHAUSTED" in error.close_reason else error

    def _read(self, message: dict[str, Any]) -> list[PushEvent]:
        """Several keys may share a message: each is looked at."""
        events: list[PushEvent] = []
        turn = self._turn
        content = message.get("serverContent")
        if isinstance(content, dict):
            events += self._read_content(content)
        for name in ("voiceActivity", "goAway", "sessionResumptionUpdate"):
            if name in message:
                events.append(PushEvent("note", data={"name": name, name: message[name]}))
        usage = message.get("usageMetadata")
        if isinstance(usage, dict):
            for name, count in _counts(usage).items():
                self._usage[name] = self._usage.get(name, 0.0) + count
            self._turns_counted.add(turn)
            events.append(PushEvent("usage", data={"usage": usage}))
        error = message.get("error")
        if isinstance(error, dict):
            told = self._key.scrub(f"{error.get('status')}: {error.get('message')}")
            if error.get("status") == "RESOURCE_EXHAUSTED":
                raise RateLimitedError(told)
            if error.get("status") in _REFUSING_STATUSES:
                raise RefusedError(f"the server refused: {told}: correct the key, the region or the card's settings")
            raise TransportError(f"the server reported {told}")
        return events

    def _read_content(self, content: dict[str, Any]) -> list[PushEvent]:
        events: list[PushEvent] = []
        for part in (content.get("modelTurn") or {}).get("parts") or []:
            self._said = True
            inline = part.get("inlineData")
            if inline and not part.get("thought"):
                events += self._audio(inline)
        spoken = (content.get("outputTranscription") or {}).get("text")
        if spoken:
            self._said = True
            events.append(PushEvent("text", self._turn_id, text=spoken))
        heard = (content.get("inputTranscription") or {}).get("text")
        if heard:
            events.append(PushEvent("user_text", text=heard))
        if content.get("interrupted"):
            # It may come behind the end of the turn that it is about, whose playback goes on: what is said next is
            # another turn, and to be heard.
            if self._said:
                self._cut_turn = self._turn
            self._excused_turn = self._turn
            events.append(PushEvent("flush", data={"name": "interrupted"}))
        if content.get("generationComplete"):
            events.append(PushEvent("done", self._turn_id, data={"status": "completed"}))
        if content.get("turnComplete"):
            # A turn that completes without having begun was empty, unless it is the end of one that was cut.
            if not self._begun and self._excused_turn != self._turn:
                events.append(PushEvent("begun", self._turn_id, data={"empty": True}))
            data = {"name": "turnComplete", "reason": content.get("turnCompleteReason")}
            events.append(PushEvent("note", self._turn_id, data=data))
            self._turn += 1
            self._begun = self._said = False
            self._stream = PcmStream()
        return events

    def _audio(self, inline: dict[str, Any]) -> list[PushEvent]:
        mime = str(inline.get("mimeType", ""))
        if "rate=" in mime and f"rate={SPEC.out_rate_hz}" not in mime:
            raise TransportError(f"the server sends {mime}, not {SPEC.out_rate_hz} Hz")
        if self._cut_turn == self._turn:
            self._late += 1
            return []
        pcm = self._stream.take(inline.get("data"))
        begun = [] if self._begun else [PushEvent("begun", self._turn_id)]
        self._begun = True
        self._turns_begun.add(self._turn)
        return [*begun, PushEvent("audio", self._turn_id, pcm=pcm)] if len(pcm) else begun

    @property
    def _turn_id(self) -> str:
        return f"turn-{self._turn}"


def _role(part: HistoryPart) -> str:
    return "model" if part.role == "assistant" else "user"


def _alternating(history: tuple[HistoryPart, ...]) -> list[HistoryPart]:
    """Neighbours of one role joined: the API wants turns to alternate."""
    joined: list[HistoryPart] = []
    for part in history:
        if joined and joined[-1].role == part.role:
            last = joined.pop()
            part = HistoryPart(part.role, f"{last.text} {part.text}", last.start_s, part.end_s)
        joined.append(part)
    return joined


def _counts(usage: dict[str, Any]) -> dict[str, float]:
    """Tokens by the names that prices have; what is not told apart by modality counts as audio, which costs more."""
    counts: dict[str, float] = {}
    for side, suffix in (("prompt", "in"), ("response", "out")):
        details = usage.get(f"{side}TokensDetails") or [
            {"modality": "AUDIO", "tokenCount": usage.get(f"{side}TokenCount")}
        ]
        for detail in details:
            name = f"{'audio' if detail.get('modality') == 'AUDIO' else 'text'}_{suffix}"
            counts[name] = counts.get(name, 0.0) + float(detail.get("tokenCount") or 0)
    # Thinking is billed as text that is given out, and stands in no detail.
    thoughts = float(usage.get("thoughtsTokenCount") or 0)
    if thoughts:
        counts["text_out"] = counts.get("text_out", 0.0) + thoughts
    return {name: count for name, count in counts.items() if count}


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> GeminiLive:
    """Gemini Live; raises ValueError for settings that make no sense."""
    return GeminiLive(settings_from(GeminiSettings, settings, "gemini"), connector)
