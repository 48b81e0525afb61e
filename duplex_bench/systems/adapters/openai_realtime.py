"""OpenAI GPT Realtime as a system, at any of its turn detections."""

from collections.abc import Mapping
from typing import Any

from duplex_bench.contract.push import Detection
from duplex_bench.contract.types import Capability, Spec
from duplex_bench.systems.adapters.openai_dialect import OpenAIDialect, RealtimeVoiceSettings
from duplex_bench.systems.adapters.openai_session import RealtimeSession
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector

# 24 kHz is the only PCM rate of the API; 20 ms frames, since larger ones quantise what is measured.
RATE_HZ = 24_000
FRAME_SAMPLES = 480
URL = "wss://api.openai.com/v1/realtime"


class RealtimeVoice:
    """A ``PushSystem`` over the OpenAI realtime protocol or a dialect of it."""

    def __init__(self, dialect: OpenAIDialect, connector: Connector = WEBSOCKET) -> None:
        capabilities: set[Capability] = {"text_prompt", "text_history"}
        if dialect.settings.history == "audio":
            capabilities.add("audio_history")
        self.dialect = dialect
        self.connector = connector
        self.spec = Spec(RATE_HZ, RATE_HZ, FRAME_SAMPLES, capabilities=frozenset(capabilities))

    @property
    def detections(self) -> frozenset[Detection]:
        """The server's own detection, and none at all where it can be off."""
        return frozenset({"automatic", "manual"} if self.dialect.settings.manual else {"automatic"})

    @property
    def virtual_time(self) -> bool:
        """Whether its server lives in this process's memory."""
        return self.connector.virtual_time

    def new_push_session(self) -> RealtimeSession:
        """A session over a connection of its own."""
        return RealtimeSession(self.dialect, self.spec, self.connector)


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> RealtimeVoice:
    """GPT Realtime; raises ValueError for settings that make no sense."""
    made = RealtimeVoiceSettings.from_card(
        settings, model="gpt-realtime-2025-08-28", url=URL, url_env="DUPLEX_BENCH_OPENAI_REALTIME_URL",
        key_env=("OPENAI_API_KEY",), voice="marin",
    )  # fmt: skip
    return RealtimeVoice(OpenAIDialect(made), connector)
