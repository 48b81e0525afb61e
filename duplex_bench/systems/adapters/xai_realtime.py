"""xAI Grok Voice as a system: the OpenAI protocol with other positions, an asynchronous commit, other usage."""

from collections.abc import Mapping
from typing import Any

from duplex_bench.contract.push import Detection, RefusedError
from duplex_bench.systems.adapters.openai_dialect import OpenAIDialect, RealtimeVoiceSettings, same_audio
from duplex_bench.systems.adapters.openai_realtime import RealtimeVoice
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector

URL = "wss://api.x.ai/v1/realtime"


class XaiDialect(OpenAIDialect):
    """Names, positions and rules of the Grok Voice Agent API."""

    # User items are added but never "done".
    item_ready = "conversation.item.added"
    charges_text_items = True

    def turn_detection(self, detection: Detection) -> dict[str, Any] | None:
        """Off is an object whose type is null; a plain null is not documented."""
        if detection == "manual":
            return {"type": None}
        settings = self.settings
        return {
            "type": "server_vad",
            "threshold": settings.threshold,
            "prefix_padding_ms": settings.prefix_padding_ms,
            "silence_duration_ms": settings.silence_ms,
        }

    def session(self, instructions: str, detection: Detection, rate_hz: int) -> dict[str, Any]:
        """The session object: detection and voice stand at the top level."""
        pcm = {"type": "audio/pcm", "rate": rate_hz}
        return {
            "instructions": instructions,
            "voice": self.settings.voice,
            "turn_detection": self.turn_detection(detection),
            "audio": {"input": {"format": pcm}, "output": {"format": pcm}},
        }

    def check_echo(self, sent: dict[str, Any], echoed: dict[str, Any]) -> None:
        """Detection is on or off as sent; its numbers are compared where the server echoes them."""
        same_audio(sent, echoed)
        if echoed.get("instructions") not in (None, sent["instructions"]):
            raise RefusedError("the server did not take the instructions")
        told, found = sent["turn_detection"], echoed.get("turn_detection") or {}
        if found.get("type") != told["type"]:
            raise RefusedError(
                f"the server did not take turn_detection: it was sent {told!r} and answered {found!r}; "
                "the setting stands at the top level of the session"
            )
        for name, value in told.items():
            if found.get(name) not in (None, value):
                raise RefusedError(f"the server did not take turn_detection.{name}: {value!r} became {found[name]!r}")

    def usage_of(self, message: dict[str, Any]) -> dict[str, Any]:
        """Real usage stands beside the response; the one inside it is empty."""
        return dict(message.get("usage") or {})


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> RealtimeVoice:
    """Grok Voice; raises ValueError for settings that make no sense.

    P2 waits for the committed event and 0.5 s more, since a request that overtakes the commit is answered without
    the last audio.
    """
    made = RealtimeVoiceSettings.from_card(
        settings, model="grok-voice-latest", url=URL, url_env="DUPLEX_BENCH_XAI_REALTIME_URL",
        key_env=("XAI_API_KEY",), voice="ara", wait_after_commit_s=0.5,
    )  # fmt: skip
    if made.detector != "server_vad":
        raise ValueError("xai: semantic detection is not offered; set detector to server_vad")
    return RealtimeVoice(XaiDialect(made), connector)
