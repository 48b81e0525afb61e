"""Any endpoint that speaks the OpenAI realtime protocol: the card names its address, model and key, if it has one."""

from collections.abc import Mapping
from typing import Any

from duplex_bench.systems.adapters.openai_dialect import OpenAIDialect, RealtimeVoiceSettings
from duplex_bench.systems.adapters.openai_realtime import RealtimeVoice
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> RealtimeVoice:
    """The endpoint at ``settings["url"]``; raises ValueError without one, or for settings that make no sense."""
    if "url" not in settings:
        raise ValueError("openai_compatible: settings need url, for example ws://127.0.0.1:8765/v1/realtime")
    return RealtimeVoice(OpenAIDialect(RealtimeVoiceSettings.from_card(settings, model="default")), connector)
