"""FLM-Audio over its own server: Moshi's protocol without prompts (docs/systems/flm-audio.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duplex_bench.contract.push import Detection
from duplex_bench.contract.types import Spec
from duplex_bench.systems.adapters.opus_chat import OpusChatSession
from duplex_bench.systems.adapters.stream_session import AUTOMATIC, Address, settings_from
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector

ADDRESS_ENV: Final = "DUPLEX_BENCH_FLM_AUDIO_URL"
# 8,192 positions of 80 ms.
CONTEXT_S: Final = 655.36
SPEC: Final = Spec(in_rate_hz=24_000, out_rate_hz=24_000, unit_in_samples=1920, context_s=CONTEXT_S)


@dataclass(frozen=True, slots=True)
class FlmSettings:
    """What a card may set.

    Attributes:
        url: Address of the server, overridden by the variable.
    """

    url: str = ""


class FlmAudio:
    """A ``PushSystem`` over a server of FLM-Audio."""

    spec: Spec = SPEC
    detections: frozenset[Detection] = AUTOMATIC

    def __init__(self, settings: FlmSettings, connector: Connector = WEBSOCKET) -> None:
        self.settings = settings
        self.connector = connector

    @property
    def virtual_time(self) -> bool:
        """Whether its server lives in this process's memory."""
        return self.connector.virtual_time

    def new_push_session(self) -> OpusChatSession:
        """A session over a connection of its own."""
        return OpusChatSession(SPEC, self.connector, Address(ADDRESS_ENV, self.settings.url))


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> FlmAudio:
    """FLM-Audio; raises ValueError for settings that make no sense."""
    return FlmAudio(settings_from(FlmSettings, settings, "flm-audio"), connector)
