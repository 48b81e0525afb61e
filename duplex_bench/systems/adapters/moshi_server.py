"""Moshi over its own server, ``python -m moshi.server`` (docs/systems/moshi.md): audio in, audio and words out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.types import Spec
from duplex_bench.systems.adapters.opus_chat import OpusChatSession
from duplex_bench.systems.adapters.stream_session import Address, ServedModel
from duplex_bench.systems.adapters.wire import Connector, websockets

ADDRESS_ENV: Final = "DUPLEX_BENCH_MOSHI_URL"
# A ring of 3,000 frames of 80 ms.
CONTEXT_S: Final = 240.0
SPEC: Final = Spec(in_rate_hz=24_000, out_rate_hz=24_000, unit_in_samples=1920, context_s=CONTEXT_S)


@dataclass(frozen=True, slots=True)
class MoshiServerSettings:
    """What a card may set.

    Attributes:
        url: Address of the server, overridden by the variable.
        verify_certificate: False for a server that made its certificate itself, as the Rust one does.
    """

    url: str = ""
    verify_certificate: bool = True


def create(settings: Mapping[str, Any], connector: Connector | None = None) -> ServedModel:
    """Moshi's server, which takes no prompt, history or seed; raises ValueError for settings that make no sense."""
    made = settings_from(MoshiServerSettings, settings, "moshi-server")
    chosen = connector or websockets(verify=made.verify_certificate)
    return ServedModel(SPEC, chosen, lambda: OpusChatSession(SPEC, chosen, Address(ADDRESS_ENV, made.url)))
