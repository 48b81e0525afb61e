"""PersonaPlex over its own server (docs/systems/personaplex.md): Moshi's protocol, with persona and voice in the query.

A text prompt and a voice are compulsory there: a session without one gets the card's. No seed is ever sent, since the
server's handler raises on it. History cannot be given over the protocol.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from duplex_bench.contract.card_settings import settings_from
from duplex_bench.contract.push import Detection
from duplex_bench.contract.types import OpenRequest, Spec, TransportError, UnsupportedError
from duplex_bench.systems.adapters.opus_chat import OpusChatSession
from duplex_bench.systems.adapters.stream_session import Address, ServedModel
from duplex_bench.systems.adapters.wire import Connector, WireClosedError, websockets

ADDRESS_ENV: Final = "DUPLEX_BENCH_PERSONAPLEX_URL"
CONTEXT_S: Final = 240.0
SPEC: Final = Spec(
    in_rate_hz=24_000,
    out_rate_hz=24_000,
    unit_in_samples=1920,
    context_s=CONTEXT_S,
    capabilities=frozenset({"text_prompt", "voice_prompt"}),
)
# Ours: says nothing of a persona, since the server refuses to have none.
NEUTRAL_PROMPT: Final = "You are taking part in a conversation."


@dataclass(frozen=True, slots=True)
class PersonaPlexSettings:
    """What a card may set.

    Attributes:
        url: Address of the server, overridden by the variable.
        voice: A file of the server's voice folder, where a session names none.
        text_prompt: Where a session has none.
        verify_certificate: False for a server that made its certificate itself (its flag ``--ssl``).
    """

    url: str = ""
    voice: str = "NATM1.pt"
    text_prompt: str = NEUTRAL_PROMPT
    verify_certificate: bool = True

    def __post_init__(self) -> None:
        if not self.voice or not self.text_prompt.strip():
            raise ValueError("personaplex: voice and text_prompt cannot be empty, the server dies of it")


class PersonaPlexSession(OpusChatSession):
    """See ``OpusChatSession``; each session's prompts are in its address."""

    def __init__(self, settings: PersonaPlexSettings, connector: Connector) -> None:
        super().__init__(SPEC, connector, Address(ADDRESS_ENV, settings.url))
        self._settings = settings
        self._is_ready = False

    async def open(self, request: OpenRequest, detection: Detection) -> None:
        """Connect with the prompts, and wait until the server has stepped them."""
        await super().open(request, detection)
        self._is_ready = True

    def query_for(self, request: OpenRequest) -> str:
        """Persona and voice of this session.

        Raises:
            UnsupportedError: An empty prompt.
        """
        text = self._settings.text_prompt if request.prompt.text is None else request.prompt.text
        voice = self._settings.voice if request.prompt.voice is None else request.prompt.voice
        if not text.strip() or not voice:
            raise UnsupportedError("personaplex cannot take an empty text prompt or voice: leave it out")
        return "?" + urlencode({"text_prompt": text, "voice_prompt": voice})

    def meant(self, error: WireClosedError) -> Exception:
        """The server says nothing when it refuses: before the handshake the prompts are the likeliest cause."""
        if self._is_ready:
            return error
        return TransportError(
            f"{error}; the server closed before it was ready: is the voice in its --voice-prompt-dir, and does its log "
            "name a missing key?"
        )


def create(settings: Mapping[str, Any], connector: Connector | None = None) -> ServedModel:
    """PersonaPlex's server, which serves one client at a time; raises ValueError for settings that make no sense."""
    made = settings_from(PersonaPlexSettings, settings, "personaplex")
    chosen = connector or websockets(verify=made.verify_certificate)
    return ServedModel(SPEC, chosen, lambda: PersonaPlexSession(made, chosen))
