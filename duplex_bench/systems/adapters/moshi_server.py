"""Moshi over its own server, ``python -m moshi.server`` (docs/systems/moshi.md): audio in, audio and words out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duplex_bench.contract.push import Detection
from duplex_bench.contract.types import Spec
from duplex_bench.systems.adapters.opus_chat import OpusChatSession
from duplex_bench.systems.adapters.stream_session import AUTOMATIC, Address, settings_from
from duplex_bench.systems.adapters.wire import WEBSOCKET, Connector

ADDRESS_ENV: Final = "DUPLEX_BENCH_MOSHI_URL"
# A ring of 3,000 frames of 80 ms.
CONTEXT_S: Final = 240.0
SPEC: Final = Spec(in_rate_hz=24_000, out_rate_hz=24_000, unit_in_samples=1920, context_s=CONTEXT_S)


@dataclass(frozen=True, slots=True)
class MoshiServerSettings:
    """What a card may set.

    Attributes:
        url: Address of the server, overridden by the variable.
    """

    url: str = ""


class MoshiServer:
    """A ``PushSystem`` over a server of Moshi. It takes no prompt, no history, no seed: only its start decides them."""

    spec: Spec = SPEC
    detections: frozenset[Detection] = AUTOMATIC

    def __init__(self, settings: MoshiServerSettings, connector: Connector = WEBSOCKET) -> None:
        self.settings = settings
        self.connector = connector

    @property
    def virtual_time(self) -> bool:
        """Whether its server lives in this process's memory."""
        return self.connector.virtual_time

    def new_push_session(self) -> OpusChatSession:
        """A session over a connection of its own."""
        return OpusChatSession(SPEC, self.connector, Address(ADDRESS_ENV, self.settings.url))


def create(settings: Mapping[str, Any], connector: Connector = WEBSOCKET) -> MoshiServer:
    """Moshi's server; raises ValueError for settings that make no sense."""
    return MoshiServer(settings_from(MoshiServerSettings, settings, "moshi-server"), connector)
