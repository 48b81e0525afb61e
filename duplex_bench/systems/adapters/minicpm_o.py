"""MiniCPM-o 4.5 behind any of its three servers (docs/systems/minicpm-o.md)."""

from collections.abc import Mapping
from typing import Any, Final

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.types import Spec
from duplex_bench.systems.adapters import minicpm_demo, minicpm_realtime, omni_duplex
from duplex_bench.systems.adapters.minicpm_session import MiniCpmSession, MiniCpmSettings
from duplex_bench.systems.adapters.stream_session import ServedModel
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector, websockets

_DIALECTS: Final[dict[str, tuple[Spec, type[MiniCpmSession]]]] = {
    "realtime": (minicpm_realtime.SPEC, minicpm_realtime.RealtimeSession),
    "demo": (minicpm_demo.SPEC, minicpm_demo.DemoSession),
    "vllm-omni": (omni_duplex.SPEC, omni_duplex.OmniDuplexSession),
}


def create(settings: Mapping[str, Any], connector: Connector | None = None) -> ServedModel:
    """MiniCPM-o 4.5; raises ValueError for settings that make no sense."""
    made = settings_from(MiniCpmSettings, settings, "minicpm-o")
    chosen = connector or (WEBSOCKET if made.verify_certificate else websockets(verify=False))
    spec, session = _DIALECTS[made.dialect]
    return ServedModel(spec, chosen, lambda: session(spec, chosen, made))
