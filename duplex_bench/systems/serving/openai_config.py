"""Session settings of the OpenAI realtime server: defaults, merging, and strict refusal of what the API refuses."""

import copy
from typing import Any, Final

PERSONA: Final = "You are a helpful assistant. Talk quickly and warmly. (The server's own persona.)"
# Ours is stricter than the vendor is known to be: a typo fails a test instead of measuring a default.
_SESSION_KEYS: Final = frozenset(
    {"type", "instructions", "output_modalities", "audio", "tools", "tool_choice", "max_output_tokens", "truncation",
     "tracing", "include", "prompt", "parallel_tool_calls", "model"}
)  # fmt: skip
MODALITIES: Final = (["audio"], ["text"])
# The session object of these models has one key more; the others refuse it.
REASONING_MODELS: Final = ("gpt-realtime-2",)
_EFFORTS: Final = ("minimal", "low", "medium", "high", "xhigh")
_BETA_KEYS: Final = frozenset(
    {"modalities", "voice", "turn_detection", "input_audio_format", "output_audio_format", "input_audio_transcription",
     "max_response_output_tokens"}
)  # fmt: skip
_VAD: Final[dict[str, dict[str, Any]]] = {
    "server_vad": {"threshold": 0.5, "prefix_padding_ms": 300, "silence_duration_ms": 200, "idle_timeout_ms": None,
                   "create_response": True, "interrupt_response": True},
    "semantic_vad": {"eagerness": "auto", "create_response": True, "interrupt_response": True},
}  # fmt: skip


class ConfigError(ValueError):
    """A refused update: ``code``, ``param`` and text go into the error event."""

    def __init__(self, code: str, param: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.param = param


def default_session(session_id: str, model: str, now: int) -> dict[str, Any]:
    """The session as it is greeted."""
    return {
        "type": "realtime",
        "object": "realtime.session",
        "id": session_id,
        "model": model,
        "expires_at": now + 3600,
        "instructions": PERSONA,
        "output_modalities": ["audio"],
        "max_output_tokens": "inf",
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 24000}, "noise_reduction": None, "transcription": None,
                      "turn_detection": {"type": "server_vad", **_VAD["server_vad"]}},
            "output": {"format": {"type": "audio/pcm", "rate": 24000}, "voice": "marin", "speed": 1.0},
        },
    }  # fmt: skip


def merged(session: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """``session`` with ``update`` applied by presence; nothing is applied if anything is refused.

    Raises:
        ConfigError: Beta shapes, unknown keys, or values the API refuses.
    """
    for name in update:
        if name in _BETA_KEYS:
            raise ConfigError("beta_api_shape_disabled", f"session.{name}", f"{name} is a beta shape")
        if name not in _SESSION_KEYS and not (name == "reasoning" and _reasons(session)):
            raise ConfigError("unknown_parameter", f"session.{name}", f"Unknown parameter: 'session.{name}'.")
    if update.get("type") != "realtime":
        raise ConfigError("missing_required_parameter", "session.type", "Missing required parameter: 'session.type'.")
    result = copy.deepcopy(session)
    if "reasoning" in update and (update["reasoning"] or {}).get("effort") not in _EFFORTS:
        raise ConfigError("invalid_value", "session.reasoning.effort", f"effort is one of {', '.join(_EFFORTS)}")
    for name in ("tools", "tool_choice", "max_output_tokens", "truncation", "reasoning"):
        if name in update:
            result[name] = update[name]
    if "instructions" in update:
        result["instructions"] = update["instructions"] or PERSONA
    if "output_modalities" in update:
        if update["output_modalities"] not in MODALITIES:
            raise ConfigError("invalid_value", "session.output_modalities", "choose audio or text, not both")
        result["output_modalities"] = update["output_modalities"]
    audio = update.get("audio") or {}
    for side in ("input", "output"):
        for name, value in (audio.get(side) or {}).items():
            param = f"session.audio.{side}.{name}"
            if name not in result["audio"][side]:
                raise ConfigError("unknown_parameter", param, f"Unknown parameter: '{param}'.")
            if name == "format" and value != {"type": "audio/pcm", "rate": 24000}:
                raise ConfigError("invalid_value", param, "this server takes audio/pcm at 24000 alone")
            result["audio"][side][name] = _detection(value) if name == "turn_detection" else value
    return result


def _detection(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    param = "session.audio.input.turn_detection"
    kind = value.get("type") if isinstance(value, dict) else None
    if kind not in _VAD:
        raise ConfigError("invalid_value", f"{param}.type", "server_vad, semantic_vad, or null for the whole object")
    unknown = set(value) - set(_VAD[kind]) - {"type"}
    if unknown:
        raise ConfigError("unknown_parameter", f"{param}.{min(unknown)}", f"Unknown parameter for {kind}")
    if value.get("idle_timeout_ms") is not None:
        raise ConfigError("invalid_value", f"{param}.idle_timeout_ms", "this server never prompts by itself: null")
    return {"type": kind, **_VAD[kind], **value}


def _reasons(session: dict[str, Any]) -> bool:
    return str(session["model"]).startswith(REASONING_MODELS)
