"""From a provider's response to its text and usage. Pure, on the stored raw response."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from duplex_bench.textmodels.settings import Vendor

Fault = Literal["refused", "blocked", "truncated", "empty", "not a response"]
FINAL_FAULTS: frozenset[Fault] = frozenset({"refused", "blocked"})
"""Asking the same again would be refused again."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the provider counts them; None where it does not say. Thinking counts as output."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_input_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class RawReply:
    """What a response holds: a text, or the fault with what the provider says about it."""

    text: str | None
    fault: Fault | None
    told: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)


class _Loose(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _PromptDetails(_Loose):
    cached_tokens: int | None = None


class _OpenAIUsage(_Loose):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _OpenAIMessage(_Loose):
    content: str | None = None
    refusal: str | None = None


class _OpenAIChoice(_Loose):
    message: _OpenAIMessage
    finish_reason: str | None = None


class _OpenAIResponse(_Loose):
    choices: list[_OpenAIChoice]
    model: str = ""
    usage: _OpenAIUsage | None = None


class _AnthropicBlock(_Loose):
    type: str
    text: str = ""


class _AnthropicUsage(_Loose):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None


class _AnthropicResponse(_Loose):
    content: list[_AnthropicBlock]
    model: str = ""
    stop_reason: str | None = None
    usage: _AnthropicUsage | None = None


class _GeminiPart(_Loose):
    text: str = ""
    thought: bool = False


class _GeminiContent(_Loose):
    parts: list[_GeminiPart] = Field(default_factory=list)


class _GeminiCandidate(_Loose):
    content: _GeminiContent = Field(default_factory=_GeminiContent)
    finish_reason: str | None = Field(default=None, alias="finishReason")


class _GeminiFeedback(_Loose):
    block_reason: str = Field(default="", alias="blockReason")


class _GeminiUsage(_Loose):
    prompt: int | None = Field(default=None, alias="promptTokenCount")
    candidates: int | None = Field(default=None, alias="candidatesTokenCount")
    thoughts: int | None = Field(default=None, alias="thoughtsTokenCount")
    cached: int | None = Field(default=None, alias="cachedContentTokenCount")


class _GeminiResponse(_Loose):
    candidates: list[_GeminiCandidate] = Field(default_factory=list)
    feedback: _GeminiFeedback | None = Field(default=None, alias="promptFeedback")
    usage: _GeminiUsage | None = Field(default=None, alias="usageMetadata")
    model: str = Field(default="", alias="modelVersion")


_GEMINI_BLOCKS = frozenset({"SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"})


def read_response(vendor: Vendor, raw: str) -> RawReply:
    """Text or fault, model and usage of a response body. What is no response of the provider is a fault too."""
    readers: dict[Vendor, Callable[[Any], RawReply]] = {
        "openai": _read_openai,
        "openai_compatible": _read_openai,
        "anthropic": _read_anthropic,
        "gemini": _read_gemini,
    }
    try:
        return readers[vendor](json.loads(raw))
    except json.JSONDecodeError:
        return RawReply(None, "not a response", "the body is not JSON")
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        return RawReply(None, "not a response", f"{where}: {first['msg']}")


def _reply(text: str, model: str, usage: Usage) -> RawReply:
    if not text.strip():
        return RawReply(None, "empty", "no text in the response", model, usage)
    return RawReply(text, None, "", model, usage)


def _read_openai(data: Any) -> RawReply:
    found = _OpenAIResponse.model_validate(data)
    told = found.usage or _OpenAIUsage()
    cached = told.prompt_tokens_details.cached_tokens if told.prompt_tokens_details else None
    usage = Usage(told.prompt_tokens, told.completion_tokens, cached)
    if not found.choices:
        return RawReply(None, "empty", "no choice in the response", found.model, usage)
    choice = found.choices[0]
    if choice.message.refusal:
        return RawReply(None, "refused", choice.message.refusal[:200], found.model, usage)
    if choice.finish_reason == "content_filter":
        return RawReply(None, "blocked", "content_filter", found.model, usage)
    if choice.finish_reason == "length":
        return RawReply(None, "truncated", "length: raise max_output_tokens", found.model, usage)
    return _reply(choice.message.content or "", found.model, usage)


def _read_anthropic(data: Any) -> RawReply:
    found = _AnthropicResponse.model_validate(data)
    told = found.usage or _AnthropicUsage()
    inputs = [told.input_tokens, told.cache_read_input_tokens, told.cache_creation_input_tokens]
    total = sum(count or 0 for count in inputs) if told.input_tokens is not None else None
    usage = Usage(total, told.output_tokens, told.cache_read_input_tokens)
    if found.stop_reason == "refusal":
        return RawReply(None, "refused", "refusal", found.model, usage)
    if found.stop_reason in {"max_tokens", "model_context_window_exceeded"}:
        return RawReply(None, "truncated", f"{found.stop_reason}: raise max_output_tokens", found.model, usage)
    text = "".join(block.text for block in found.content if block.type == "text")
    return _reply(text, found.model, usage)


def _read_gemini(data: Any) -> RawReply:
    found = _GeminiResponse.model_validate(data)
    told = found.usage or _GeminiUsage()
    spoken = [count for count in (told.candidates, told.thoughts) if count is not None]
    usage = Usage(told.prompt, sum(spoken) if spoken else None, told.cached)
    if not found.candidates:
        reason = found.feedback.block_reason if found.feedback else ""
        return RawReply(None, "blocked", reason or "no candidates", found.model, usage)
    candidate = found.candidates[0]
    if candidate.finish_reason in _GEMINI_BLOCKS:
        return RawReply(None, "blocked", candidate.finish_reason or "", found.model, usage)
    if candidate.finish_reason == "MAX_TOKENS":
        return RawReply(None, "truncated", "MAX_TOKENS: raise max_output_tokens", found.model, usage)
    if candidate.finish_reason not in {"STOP", None}:
        return RawReply(None, "empty", candidate.finish_reason or "", found.model, usage)
    text = "".join(part.text for part in candidate.content.parts if not part.thought)
    return _reply(text, found.model, usage)
