"""What the three protocols of MiniCPM-o 4.5 share: settings, the model's voice, turns by number."""

import os
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from duplex_bench.contract.push import PushEvent
from duplex_bench.contract.types import Spec, TransportError
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.adapters import reference_audio
from duplex_bench.systems.adapters.stream_session import Address, StreamSession
from duplex_bench.systems.adapters.wire import Connector

Dialect = Literal["realtime", "demo", "vllm-omni"]
ADDRESS_ENVS: Final[dict[str, str]] = {
    "realtime": "DUPLEX_BENCH_MINICPM_O_URL",
    "demo": "DUPLEX_BENCH_MINICPM_O_DEMO_URL",
    "vllm-omni": "DUPLEX_BENCH_MINICPM_O_VLLM_URL",
}
VOICE_ENV: Final = "DUPLEX_BENCH_MINICPM_O_VOICE"
IN_RATE_HZ: Final = 16_000
OUT_RATE_HZ: Final = 24_000
# The vendor's own wording of a plain assistant is Chinese; an empty prompt is never sent.
NEUTRAL_INSTRUCTIONS: Final = "You are a person in a spoken conversation. Answer briefly, in the language you hear."


@dataclass(frozen=True, slots=True)
class MiniCpmSettings:
    """What a card may set.

    Attributes:
        dialect: ``realtime`` (the demo's service, newer), ``demo`` (older), or ``vllm-omni``.
        url: Address of the server, overridden by the variable of the dialect.
        voice: Path of a recording that lends the model its voice, overridden by the variable; without one the server
            decides (vLLM-Omni refuses).
        model: Name of the model, for vLLM-Omni.
        overlap_policy: What vLLM-Omni does with speech over the model's: ``listen_only`` or ``barge_in_on_speech``.
        verify_certificate: False for a server that made its certificate itself (the demo's gateway).
    """

    dialect: Dialect = "realtime"
    url: str = ""
    voice: str = ""
    model: str = "openbmb/MiniCPM-o-4_5"
    overlap_policy: Literal["listen_only", "barge_in_on_speech"] = "listen_only"
    verify_certificate: bool = True

    def __post_init__(self) -> None:
        if self.dialect not in get_args(Dialect):
            raise ValueError(f"minicpm-o: dialect is one of {', '.join(get_args(Dialect))}, got {self.dialect!r}")
        if self.overlap_policy not in ("listen_only", "barge_in_on_speech"):
            raise ValueError("minicpm-o: overlap_policy is listen_only or barge_in_on_speech")

    @property
    def address(self) -> Address:
        """Where the server of this dialect is."""
        return Address(ADDRESS_ENVS[self.dialect], self.url)


class MiniCpmSession(StreamSession):
    """Base of the dialects' sessions."""

    def __init__(self, spec: Spec, connector: Connector, settings: MiniCpmSettings) -> None:
        super().__init__(spec, connector, settings.address)
        self.settings = settings
        self._turn = 1
        self._speaking = False
        self._cache_tokens: int | None = None

    def voice(self) -> Samples | None:
        """The recording of the model's voice, float32 (n,) at 16 kHz, if one is named."""
        path = os.environ.get(VOICE_ENV) or self.settings.voice
        return reference_audio.load(path) if path else None

    def told_at_close(self) -> dict[str, Any]:
        """How much of the model's memory is in use, as far as the server said."""
        return {"kv_cache_tokens": self._cache_tokens}

    def unit_of_speech(self, text: object, data: object, *, over: bool) -> list[PushEvent]:
        """A unit in which the model spoke: base64 of float32 audio, words, and whether its turn is over.

        Raises:
            TransportError: The audio is none.
        """
        response = f"turn-{self._turn}"
        events = [] if self._speaking else [PushEvent("begun", response)]
        self._speaking = True
        if isinstance(text, str) and text:
            events.append(PushEvent("text", response, text=text))
        if data:
            pcm = reference_audio.from_floats(data)
            if pcm is None:
                raise TransportError("the server sent audio that is no base64 of float32 numbers")
            if len(pcm):
                events.append(PushEvent("audio", response, pcm=pcm))
        if over:
            events.append(PushEvent("done", response, data={"status": "completed"}))
            self.turn_over()
        return events

    def turn_over(self) -> None:
        """What comes next belongs to another turn."""
        if self._speaking:
            self._turn += 1
        self._speaking = False

    def note_cache(self, message: dict[str, Any]) -> None:
        """Remember how much of the model's memory is in use."""
        tokens = message.get("kv_cache_length")
        if isinstance(tokens, int):
            self._cache_tokens = tokens
