"""Endpoints of full-duplex models by protocol: which path, and which conversation each connection gets."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

from duplex_bench.storage.digests import generator_from
from duplex_bench.systems.adapters import minicpm_demo, opus_chat, socketio
from duplex_bench.systems.serving.delivery import Desk, Manner
from duplex_bench.systems.serving.faults import NONE, Faults
from duplex_bench.systems.serving.flm_conversation import FlmConversation
from duplex_bench.systems.serving.freeze_conversation import FreezeConversation
from duplex_bench.systems.serving.minicpm_demo_conversation import MiniCpmDemoConversation
from duplex_bench.systems.serving.minicpm_realtime_conversation import MiniCpmRealtimeConversation
from duplex_bench.systems.serving.model_conversation import ModelConversation
from duplex_bench.systems.serving.moshi_conversations import MoshiConversation, PersonaPlexConversation
from duplex_bench.systems.serving.omni_conversation import OmniConversation
from duplex_bench.systems.serving.peers import Peer, Refusal
from duplex_bench.systems.serving.speaking import Setting
from duplex_bench.systems.serving.voices import Voice

Make = Callable[["ModelService", Peer, Setting, str], ModelConversation]


class ModelService:
    """An ``Endpoint`` of a model's own server. ``conversations`` keeps those that were begun, for tests.

    Args:
        make: The conversation of a connection.
        served: Whether a path and its query are known.
        voice: Who listens and speaks.
        manner: How replies are sent.
        faults: What goes wrong.
        desk: Where heavy work runs.
        key: The key a client must show in the header ``Authorization``; None, as with the models' servers, for none.
        keep: How many conversations are remembered.
    """

    def __init__(
        self,
        make: Make,
        served: Callable[[str, Mapping[str, list[str]]], bool],
        voice: Voice,
        manner: Manner | None = None,
        faults: Faults = NONE,
        desk: Desk | None = None,
        key: str | None = None,
        keep: int = 0,
    ) -> None:
        self._make, self._served = make, served
        self.voice, self.manner, self.faults = voice, manner or Manner(), faults
        self.desk, self.key, self.keep = desk or Desk(), key, keep
        self.begun = 0
        self.turn = asyncio.Lock()
        self.conversations: list[ModelConversation] = []

    def refusal(self, target: str, headers: Mapping[str, str]) -> Refusal | None:
        """A fault, a wrong key, or a wrong path."""
        if self.faults.refuse_status:
            return Refusal(self.faults.refuse_status, self.faults.refuse_body, self.faults.retry_after)
        if self.key is not None and headers.get("authorization", "").removeprefix("Bearer ") != self.key:
            return Refusal(401, "a key is needed")
        parts = urlsplit(target)
        return None if self._served(parts.path, parse_qs(parts.query)) else Refusal(404, "no such path")

    async def converse(self, peer: Peer, target: str, headers: Mapping[str, str]) -> None:
        """One conversation."""
        del headers
        self.begun += 1
        setting = Setting(self.voice, self.desk, self.manner, self.faults, generator_from("serving", str(self.begun)))
        made = self._make(self, peer, setting, target)
        self.conversations = [*self.conversations, made][-self.keep :] if self.keep else []
        await made.converse()


def _chat_path(path: str, query: Mapping[str, list[str]]) -> bool:
    del query
    return path == opus_chat.PATH


def _flm(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    return FlmConversation(peer, setting, target, service.turn)


def _moshi(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    return MoshiConversation(peer, setting, target, service.turn)


def _personaplex(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    return PersonaPlexConversation(peer, setting, target, service.turn)


def _socket_io(path: str, query: Mapping[str, list[str]]) -> bool:
    return path == socketio.PATH and query.get("EIO") == ["4"] and query.get("transport") == ["websocket"]


def _freeze(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    return FreezeConversation(peer, setting, target, f"sid-{service.begun}")


def _demo_path(path: str, query: Mapping[str, list[str]]) -> bool:
    del query
    return path == minicpm_demo.WORKER_PATH or path.startswith(f"{minicpm_demo.WORKER_PATH}/")


def _demo(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    del service
    return MiniCpmDemoConversation(peer, setting, target)


def _audio_mode(path: str, query: Mapping[str, list[str]]) -> bool:
    return path == "/v1/realtime" and query.get("mode") == ["audio"]


def _realtime(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    del service
    return MiniCpmRealtimeConversation(peer, setting, target)


def _duplex(path: str, query: Mapping[str, list[str]]) -> bool:
    wanted = query.get("duplex", ["1"])[0] in ("1", "true", "on")
    return path == "/v1/duplex" or (path == "/v1/realtime" and wanted)


def _omni(service: ModelService, peer: Peer, setting: Setting, target: str) -> ModelConversation:
    return OmniConversation(peer, setting, target, f"duplex-{service.begun}")


def _service(make: Make, served: Callable[[str, Mapping[str, list[str]]], bool]) -> Callable[..., ModelService]:
    def made(
        voice: Voice, manner: Manner | None = None, faults: Faults = NONE, desk: Desk | None = None,
        key: str | None = None, keep: int = 0,
    ) -> ModelService:  # fmt: skip
        return ModelService(make, served, voice, manner, faults, desk, key, keep)

    return made


MODEL_SERVICES: Final[dict[str, Callable[..., ModelService]]] = {
    "flm-audio": _service(_flm, _chat_path),
    "moshi": _service(_moshi, _chat_path),
    "personaplex": _service(_personaplex, _chat_path),
    "freeze-omni": _service(_freeze, _socket_io),
    "minicpm-o-realtime": _service(_realtime, _audio_mode),
    "minicpm-o-demo": _service(_demo, _demo_path),
    "vllm-omni-duplex": _service(_omni, _duplex),
}
