"""What the OpenAI Realtime API (GA) is told, and what it must have understood: session settings and their echo.

Source: the vendor's API reference and recorded sessions; see docs/hosted-systems.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.push import Detection, RefusedError

# An empty instruction restores the vendor's own persona: something neutral is said where a stimulus says nothing.
NEUTRAL_INSTRUCTIONS = "You are taking part in a spoken conversation. Speak naturally."


@dataclass(frozen=True, slots=True)
class RealtimeVoiceSettings:
    """What a card may set.

    Attributes:
        model: As the vendor names it.
        url: WebSocket address without the query.
        url_env: Variable that overrides ``url``.
        key_env: Variables that may hold the key, the first that is set counts; none for a server without keys.
        detector: ``server_vad`` or ``semantic_vad``, used when detection is automatic.
        silence_ms: Silence that ends a turn (server_vad).
        threshold: Activation threshold (server_vad; P2: 0.5).
        prefix_padding_ms: Audio kept before an onset (P2: 300).
        eagerness: semantic_vad: low, medium, high or auto (P2: low).
        voice: Name of the output voice.
        history: ``text``: completed turns as text; ``audio``: the user's turns as audio (ours).
        commit_limit_s: How long to wait for a commit to be confirmed.
        wait_after_commit_s: Waited after the confirmation, before a reply is requested.
        manual: Whether detection can be off.
    """

    model: str
    url: str
    url_env: str = ""
    key_env: tuple[str, ...] = ()
    detector: Literal["server_vad", "semantic_vad"] = "server_vad"
    silence_ms: int = 500
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    eagerness: str = "low"
    voice: str = "marin"
    history: Literal["text", "audio"] = "text"
    commit_limit_s: float = 5.0
    wait_after_commit_s: float = 0.0
    manual: bool = True

    def __post_init__(self) -> None:
        if not self.model or not self.url.startswith(("ws://", "wss://")):
            raise ValueError("realtime system: give a model, and a url that begins with ws:// or wss://")
        if self.detector not in ("server_vad", "semantic_vad") or self.history not in ("text", "audio"):
            raise ValueError("realtime system: detector is server_vad or semantic_vad, history is text or audio")
        if min(self.silence_ms, self.commit_limit_s) <= 0 or self.wait_after_commit_s < 0:
            raise ValueError("realtime system: silence_ms and commit_limit_s are positive, a wait is not negative")

    @classmethod
    def from_card(cls, settings: Mapping[str, Any], **defaults: Any) -> Self:
        """A card's settings over an adapter's defaults; raises ValueError that names what is wrong."""
        return settings_from(cls, {**defaults, **settings}, "realtime system")


class OpenAIDialect:
    """Names, positions and rules of the OpenAI Realtime API."""

    # What tells that an item of the conversation is in place.
    item_ready = "conversation.item.done"
    greeting = "session.created"
    # Whether each item of text in the conversation is charged by itself, beside what usage tells.
    charges_text_items = False

    def __init__(self, settings: RealtimeVoiceSettings) -> None:
        self.settings = settings

    def turn_detection(self, detection: Detection) -> dict[str, Any] | None:
        """The detection settings; explicit null is off (leaving it out keeps the vendor's default on)."""
        settings = self.settings
        if detection == "manual":
            return None
        answers = {"create_response": True, "interrupt_response": True}
        if settings.detector == "semantic_vad":
            return {"type": "semantic_vad", "eagerness": settings.eagerness, **answers}
        return {
            "type": "server_vad",
            "threshold": settings.threshold,
            "prefix_padding_ms": settings.prefix_padding_ms,
            "silence_duration_ms": settings.silence_ms,
            "idle_timeout_ms": None,
            **answers,
        }

    def session(self, instructions: str, detection: Detection, rate_hz: int) -> dict[str, Any]:
        """The session object of ``session.update``."""
        pcm = {"type": "audio/pcm", "rate": rate_hz}
        return {
            "type": "realtime",
            "instructions": instructions,
            "output_modalities": ["audio"],
            "audio": {
                "input": {
                    "format": pcm,
                    "noise_reduction": None,
                    "transcription": None,
                    "turn_detection": self.turn_detection(detection),
                },
                "output": {"format": pcm, "voice": self.settings.voice},
            },
        }

    def check_echo(self, sent: dict[str, Any], echoed: dict[str, Any]) -> None:
        """What the server says it will do is what it was told.

        Raises:
            RefusedError: It is not; the run would measure something else.
        """
        same_audio(sent, echoed)
        audio = echoed.get("audio") or {}
        told = sent["audio"]["input"]["turn_detection"]
        found = (audio.get("input") or {}).get("turn_detection", "nothing")
        _same("instructions", sent["instructions"], echoed.get("instructions"))
        _same("output_modalities", sent["output_modalities"], echoed.get("output_modalities"))
        if told is None:
            _same("turn_detection", None, found)
        else:
            for name, value in told.items():
                if value is not None:
                    _same(f"turn_detection.{name}", value, found.get(name) if isinstance(found, dict) else found)

    def usage_of(self, message: dict[str, Any]) -> dict[str, Any]:
        """Raw usage of a ``response.done``."""
        return dict((message.get("response") or {}).get("usage") or {})


def same_audio(sent: dict[str, Any], echoed: dict[str, Any]) -> None:
    """The form of audio is the one that was asked for, as far as the server says: another rate would be heard as
    slower or faster speech.

    Raises:
        RefusedError: It is another.
    """
    audio = echoed.get("audio")
    for side in ("input", "output"):
        told = (audio.get(side) or {}).get("format") if isinstance(audio, dict) else None
        if isinstance(told, dict):
            for name, value in sent["audio"][side]["format"].items():
                if told.get(name) is not None:
                    _same(f"audio.{side}.format.{name}", value, told[name])


def _same(name: str, sent: object, echoed: object) -> None:
    if sent != echoed:
        raise RefusedError(
            f"the server did not take {name}: it was sent {sent!r} and answered {echoed!r}; "
            "correct the card's settings, or choose a model that honours them"
        )


def counts_of(usage: dict[str, Any]) -> dict[str, float]:
    """Raw usage by the names that prices have."""
    taken = usage.get("input_token_details") or {}
    given = usage.get("output_token_details") or {}
    cached = taken.get("cached_token_details") or taken.get("cached_tokens_details") or {}
    cached_text, cached_audio = cached.get("text_tokens", 0), cached.get("audio_tokens", 0)
    counts = {
        "text_in": taken.get("text_tokens", 0) - cached_text,
        "audio_in": taken.get("audio_tokens", 0) - cached_audio,
        "cached_in": taken.get("cached_tokens", 0),
        "text_out": given.get("text_tokens", 0),
        "audio_out": given.get("audio_tokens", 0),
        "billable_s": usage.get("billable_audio_seconds", 0),
    }
    return {name: float(value) for name, value in counts.items() if value}
