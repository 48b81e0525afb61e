"""Endpoints by protocol: who may connect, and which conversation each connection gets."""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import parse_qs, urlsplit

import numpy as np

from duplex_bench.storage.digests import generator_from
from duplex_bench.systems.serving.conversation import Conversation
from duplex_bench.systems.serving.delivery import Desk, Manner
from duplex_bench.systems.serving.faults import NONE, Faults
from duplex_bench.systems.serving.gemini_conversation import GeminiConversation
from duplex_bench.systems.serving.model_endpoints import MODEL_SERVICES
from duplex_bench.systems.serving.peers import Endpoint, Peer, Refusal
from duplex_bench.systems.serving.speaking import Setting
from duplex_bench.systems.serving.voices import Voice
from duplex_bench.systems.serving.xai_conversation import XaiConversation

_GEMINI_PATH: Final = "BidiGenerateContent"


class Service:
    """An ``Endpoint``. ``conversations`` keeps those that were begun, for whoever wants to look at their context.

    Args:
        voice: Who listens and speaks.
        manner: How replies are sent.
        faults: What goes wrong.
        desk: Where heavy work runs.
        key: The key a client must show; None to let anyone in.
        keep: How many conversations are remembered, with all that was heard in them; none by default.
    """

    bad_key_status = 401
    # Whether a client that asks for the protocol's first form is told that it is no more.
    refuses_beta = True

    def __init__(
        self,
        voice: Voice,
        manner: Manner | None = None,
        faults: Faults = NONE,
        desk: Desk | None = None,
        key: str | None = None,
        keep: int = 0,
    ) -> None:
        self.voice, self.manner, self.faults = voice, manner or Manner(), faults
        self.desk, self.key, self.keep = desk or Desk(), key, keep
        self.begun = 0
        self.conversations: list[Conversation | GeminiConversation] = []

    def refusal(self, target: str, headers: Mapping[str, str]) -> Refusal | None:
        """A fault, a wrong key, or a wrong path."""
        if self.faults.refuse_status:
            return Refusal(self.faults.refuse_status, self.faults.refuse_body, self.faults.retry_after)
        shown = self.shown_key(headers)
        if self.key is not None and shown != self.key:
            return Refusal(self.bad_key_status, f"Incorrect API key provided: {shown}")
        return None if self.serves(target) else Refusal(404, "no such path or model")

    def shown_key(self, headers: Mapping[str, str]) -> str:
        """The key in the headers."""
        return headers.get("authorization", "").removeprefix("Bearer ")

    def serves(self, target: str) -> bool:
        """Whether path and model are known."""
        parts = urlsplit(target)
        return parts.path.endswith("/v1/realtime") and bool(parse_qs(parts.query).get("model"))

    async def converse(self, peer: Peer, target: str, headers: Mapping[str, str]) -> None:
        """One conversation."""
        self.begun += 1
        name = str(self.begun)
        model = (parse_qs(urlsplit(target).query).get("model") or [""])[0]
        made = self.conversation(peer, self.setting(name), name, model, self.shown_key(headers))
        if isinstance(made, Conversation):
            made.beta = self.refuses_beta and "openai-beta" in headers
        self.conversations = [*self.conversations, made][-self.keep :] if self.keep else []
        await made.converse()

    def setting(self, name: str) -> Setting:
        """What a conversation is served with; the same draws for the same number of connection."""
        rng: np.random.Generator = generator_from("serving", name)
        return Setting(self.voice, self.desk, self.manner, self.faults, rng)

    def conversation(
        self, peer: Peer, setting: Setting, name: str, model: str, key: str
    ) -> Conversation | GeminiConversation:
        """A conversation of this protocol."""
        return Conversation(peer, setting, name, model, key)


class XaiService(Service):
    """Grok Voice: a wrong key is a bad request."""

    bad_key_status = 400
    refuses_beta = False

    def conversation(self, peer: Peer, setting: Setting, name: str, model: str, key: str) -> Conversation:
        """A conversation in the xAI skin."""
        return XaiConversation(peer, setting, name, model, key)


class GeminiService(Service):
    """Gemini Live: the model is named in the setup, the key in a header of its own."""

    def shown_key(self, headers: Mapping[str, str]) -> str:
        """The key in the header."""
        return headers.get("x-goog-api-key", "")

    def serves(self, target: str) -> bool:
        """Whether the path is the bidirectional service."""
        return urlsplit(target).path.endswith(_GEMINI_PATH)

    def conversation(self, peer: Peer, setting: Setting, name: str, model: str, key: str) -> GeminiConversation:
        """A conversation of the Gemini protocol."""
        del name, model
        return GeminiConversation(peer, setting, key)


SERVICES: Final[dict[str, Callable[..., Endpoint]]] = {
    "openai-realtime": Service,
    "xai-realtime": XaiService,
    "gemini-live": GeminiService,
    **MODEL_SERVICES,
}
