"""From a question to the request body that each provider expects. Pure: what is built here is what is cached."""

import re
from dataclasses import dataclass
from typing import Any, Final, Literal

from duplex_bench.storage.digests import digest_value
from duplex_bench.textmodels.settings import ANTHROPIC_VERSION, ModelSettings

WIRE_VERSION: Final = 1
# Model names of OpenAI's that reason; they generally reject a temperature.
_REASONING: Final = re.compile(r"(o\d|gpt-5)")
_SAMPLING_FREE_VERSIONS: Final = frozenset({"2026-10-21"})
_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation with the model."""

    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class TextRequest:
    """A question. ``sample`` tells apart independent answers to the same question (a second run, say)."""

    turns: tuple[Turn, ...]
    system: str = ""
    name: str = "answer"
    sample: int = 0


@dataclass(frozen=True, slots=True)
class WireRequest:
    """What is sent: ``path`` below the base URL and the JSON ``body``; ``notes`` say what could not be sent."""

    path: str
    body: dict[str, Any]
    api_version: str = ""
    notes: tuple[str, ...] = ()


def wire_request(settings: ModelSettings, request: TextRequest, schema: dict[str, Any]) -> WireRequest:
    """The request of ``settings.vendor`` that asks for JSON of ``schema``."""
    if settings.vendor == "anthropic":
        return _anthropic(settings, request, schema)
    if settings.vendor == "gemini":
        return _gemini(settings, request, schema)
    return _openai(settings, request, schema)


def cache_key(settings: ModelSettings, wire: WireRequest, request: TextRequest, base_url: str) -> str:
    """Digest of the whole request: address, path, version and body, the sample and the epoch."""
    return digest_value(
        "textmodel", WIRE_VERSION, settings.vendor, base_url.rstrip("/"), wire.path, wire.api_version, wire.body,
        request.sample, settings.epoch,
    )  # fmt: skip


def _openai(settings: ModelSettings, request: TextRequest, schema: dict[str, Any]) -> WireRequest:
    own = settings.vendor == "openai"
    system = [{"role": "system", "content": request.system}] if request.system else []
    named = _NAME.sub("_", request.name)[:64]
    body: dict[str, Any] = {
        "model": settings.model,
        "messages": [*system, *({"role": turn.role, "content": turn.text} for turn in request.turns)],
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": named, "schema": schema, "strict": True},
        },
        # Servers that speak the protocol know the older name of the limit.
        ("max_completion_tokens" if own else "max_tokens"): settings.max_output_tokens,
    }
    notes: tuple[str, ...] = ()
    if settings.temperature is not None:
        if own and _REASONING.match(settings.model):
            notes = (f"temperature not sent: {settings.model} reasons and takes none",)
        else:
            body["temperature"] = settings.temperature
    if settings.effort:
        body["reasoning_effort"] = settings.effort
    return WireRequest("/chat/completions", body, notes=notes)


def _anthropic(settings: ModelSettings, request: TextRequest, schema: dict[str, Any]) -> WireRequest:
    version = settings.api_version or ANTHROPIC_VERSION
    output: dict[str, Any] = {"format": {"type": "json_schema", "schema": schema}}
    if settings.effort:
        output["effort"] = settings.effort
    body: dict[str, Any] = {
        "model": settings.model,
        "max_tokens": settings.max_output_tokens,
        "messages": [{"role": turn.role, "content": turn.text} for turn in request.turns],
        "output_config": output,
    }
    if request.system:
        body["system"] = request.system
    notes: tuple[str, ...] = ()
    if settings.temperature is not None:
        if version in _SAMPLING_FREE_VERSIONS:
            notes = (f"temperature not sent: API version {version} refuses sampling parameters",)
        else:
            body["temperature"] = settings.temperature
    return WireRequest("/v1/messages", body, version, notes)


def _gemini(settings: ModelSettings, request: TextRequest, schema: dict[str, Any]) -> WireRequest:
    roles = {"user": "user", "assistant": "model"}
    generation: dict[str, Any] = {
        "responseMimeType": "application/json",
        "responseJsonSchema": schema,
        "maxOutputTokens": settings.max_output_tokens,
    }
    if settings.temperature is not None:
        generation["temperature"] = settings.temperature
    body: dict[str, Any] = {
        "contents": [{"role": roles[turn.role], "parts": [{"text": turn.text}]} for turn in request.turns],
        "generationConfig": generation,
    }
    if request.system:
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    notes = ("effort not sent: it is no setting of this protocol here",) if settings.effort else ()
    return WireRequest(f"/v1beta/models/{settings.model}:generateContent", body, notes=notes)
