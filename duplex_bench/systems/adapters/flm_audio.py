"""FLM-Audio over its own server: Moshi's protocol without prompts (docs/systems/flm-audio.md)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.types import Spec
from duplex_bench.systems.adapters.opus_chat import OpusChatSession
from duplex_bench.systems.adapters.stream_session import Address, ServedModel
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


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> ServedModel:
    """FLM-Audio; raises ValueError for settings that make no sense."""
    made = settings_from(FlmSettings, settings, "flm-audio")
    return ServedModel(SPEC, connector, lambda: OpusChatSession(SPEC, connector, Address(ADDRESS_ENV, made.url)))
