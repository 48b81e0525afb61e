"""Hosted-type systems without a vendor: an adapter of a real protocol against its server, in memory, on virtual time.

The adapter, the protocol, the driver, playback and truncation are those of the hosted systems; only the voice is the
embedded cascade's. A row of such a system shows what the protocol does to a benchmark.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from duplex_bench.contract.push import PushSystem
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.systems.adapters import (
    flm_audio,
    freeze_omni,
    gemini_live,
    minicpm_o,
    moshi_server,
    openai_compatible,
    personaplex_server,
    xai_realtime,
)
from duplex_bench.systems.adapters.cascade.cascade import create as create_cascade
from duplex_bench.systems.adapters.wire import Connector
from duplex_bench.systems.serving.delivery import Desk, Manner
from duplex_bench.systems.serving.endpoints import SERVICES
from duplex_bench.systems.serving.faults import NONE, Faults
from duplex_bench.systems.serving.peers import Endpoint, memory_connector
from duplex_bench.systems.serving.voices import CascadeVoice, ToneVoice, Voice

_ADAPTERS: Final[dict[str, Callable[[Mapping[str, Any], Connector], PushSystem]]] = {
    "openai-realtime": openai_compatible.create,
    "xai-realtime": xai_realtime.create,
    "gemini-live": gemini_live.create,
    "flm-audio": flm_audio.create,
    "moshi": moshi_server.create,
    "personaplex": personaplex_server.create,
    "freeze-omni": freeze_omni.create,
    "minicpm-o-realtime": minicpm_o.create,
    "minicpm-o-demo": minicpm_o.create,
    "vllm-omni-duplex": minicpm_o.create,
}
_ADDRESSES: Final[dict[str, dict[str, Any]]] = {
    "openai-realtime": {"url": "ws://memory/v1/realtime", "model": "cascade"},
    "xai-realtime": {"url": "ws://memory/v1/realtime", "model": "cascade", "key_env": ()},
    "gemini-live": {"url": "ws://memory/BidiGenerateContent", "model": "cascade", "key_env": ()},
    "flm-audio": {"url": "ws://memory"},
    "moshi": {"url": "ws://memory"},
    "personaplex": {"url": "ws://memory"},
    "freeze-omni": {"url": "ws://memory"},
    "minicpm-o-realtime": {"url": "ws://memory", "dialect": "realtime"},
    "minicpm-o-demo": {"url": "ws://memory", "dialect": "demo"},
    "vllm-omni-duplex": {"url": "ws://memory", "dialect": "vllm-omni"},
}
VOICES: Final = ("cascade", "tone")


def voice_named(name: str, store: ObjectStore | None = None, *, semantic: bool = False) -> Voice:
    """The embedded cascade as a voice, or a tone; raises ValueError for another name."""
    if name == "tone":
        return ToneVoice()
    if name != "cascade":
        raise ValueError(f"no voice {name!r}: choose {' or '.join(VOICES)}")
    return CascadeVoice(create_cascade({"endpointer": "semantic" if semantic else "silence"}, store))


def service(
    protocol: str, voice: Voice, faults: Faults = NONE, key: str | None = None, desk: Desk | None = None,
    manner: Manner | None = None,
) -> Endpoint:  # fmt: skip
    """A server for ``protocol``; raises ValueError for an unknown one."""
    if protocol not in SERVICES:
        raise ValueError(f"no protocol {protocol!r}: choose {', '.join(SERVICES)}")
    return SERVICES[protocol](voice, manner, faults, desk, key)


def create(settings: Mapping[str, Any], store: ObjectStore | None = None) -> PushSystem:
    """A loopback system.

    Args:
        settings: ``protocol``, ``voice_behind`` (cascade or tone), ``think_s``, and the settings of that protocol's
            adapter.
        store: Cache of what was recognised and spoken.

    Raises:
        ValueError: Unknown protocol or settings.
    """
    rest = dict(settings)
    protocol = str(rest.pop("protocol", ""))
    voice = voice_named(str(rest.pop("voice_behind", "cascade")), store, semantic=rest.get("detector") ==
                        "semantic_vad")  # fmt: skip
    manner = Manner(think_s=float(rest.pop("think_s", Manner().think_s)))
    served = service(protocol, voice, manner=manner)
    return _ADAPTERS[protocol]({**_ADDRESSES[protocol], **rest}, memory_connector(served))
