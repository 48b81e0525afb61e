"""MiniCPM-o 4.5 behind any of its three servers (docs/systems/minicpm-o.md)."""

from collections.abc import Mapping
from typing import Any, Final

from duplex_bench.contract.push import Detection
from duplex_bench.contract.types import Spec
from duplex_bench.systems.adapters import minicpm_demo, minicpm_realtime, omni_duplex
from duplex_bench.systems.adapters.minicpm_session import MiniCpmSession, MiniCpmSettings
from duplex_bench.systems.adapters.stream_session import AUTOMATIC, settings_from
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector, websockets

_DIALECTS: Final[dict[str, tuple[Spec, type[MiniCpmSession]]]] = {
    "realtime": (minicpm_realtime.SPEC, minicpm_realtime.RealtimeSession),
    "demo": (minicpm_demo.SPEC, minicpm_demo.DemoSession),
    "vllm-omni": (omni_duplex.SPEC, omni_duplex.OmniDuplexSession),
}


class MiniCpmO:
    """A ``PushSystem`` over a server of MiniCPM-o."""

    detections: frozenset[Detection] = AUTOMATIC

    def __init__(self, settings: MiniCpmSettings, connector: Connector) -> None:
        self.settings = settings
        self.connector = connector
        self.spec, self._session = _DIALECTS[settings.dialect]

    @property
    def virtual_time(self) -> bool:
        """Whether its server lives in this process's memory."""
        return self.connector.virtual_time

    def new_push_session(self) -> MiniCpmSession:
        """A session over a connection of its own."""
        return self._session(self.spec, self.connector, self.settings)


def create(settings: Mapping[str, Any], connector: Connector | None = None) -> MiniCpmO:
    """MiniCPM-o 4.5; raises ValueError for settings that make no sense."""
    made = settings_from(MiniCpmSettings, settings, "minicpm-o")
    return MiniCpmO(made, connector or (WEBSOCKET if made.verify_certificate else websockets(verify=False)))
