"""What a client may ask of one response (``response.create``), read and refused as strictly as session settings."""

from dataclasses import dataclass, field
from typing import Any, Final

from duplex_bench.systems.serving.openai_config import MODALITIES, ConfigError

# Taken and without effect here: this server calls no tool and has one voice and no limit of length.
_IGNORED: Final = frozenset({"tools", "tool_choice", "max_output_tokens", "audio", "parallel_tool_calls", "prompt"})
_READ: Final = frozenset({"conversation", "input", "instructions", "output_modalities", "metadata"})
ROLES: Final = {"user": ("input_text", "input_audio"), "system": ("input_text",), "assistant": ("output_text",)}


@dataclass(frozen=True, slots=True)
class ResponseOptions:
    """Nothing is asked by default.

    Attributes:
        instructions: In place of the session's, for this response alone.
        modalities: In place of the session's.
        metadata: Handed back with the response.
        lines: (role, text) of a context of its own in place of the conversation; None for the conversation.
        aside: Whether the response is kept out of the conversation.
    """

    instructions: str | None = None
    modalities: tuple[str, ...] | None = None
    metadata: dict[str, Any] | None = None
    lines: tuple[tuple[str, str], ...] | None = None
    aside: bool = False


NOTHING: Final = ResponseOptions()


@dataclass(slots=True)
class Reader:
    """Reads the options; ``texts`` are the words of the conversation's items by id, for references to them."""

    texts: dict[str, tuple[str, str]] = field(default_factory=dict)

    def read(self, asked: dict[str, Any]) -> ResponseOptions:
        """The options in ``asked``.

        Raises:
            ConfigError: Unknown ones, or values that the API refuses.
        """
        for name in asked:
            if name not in _READ | _IGNORED:
                param = f"response.{name}"
                raise ConfigError("unknown_parameter", param, f"Unknown parameter: '{param}'.")
        modalities = asked.get("output_modalities")
        if modalities not in (None, *MODALITIES):
            raise ConfigError("invalid_value", "response.output_modalities", "choose audio or text, not both")
        if asked.get("conversation", "auto") not in ("auto", "none"):
            raise ConfigError("invalid_value", "response.conversation", "conversation is auto or none")
        given = asked.get("input")
        return ResponseOptions(
            asked.get("instructions"),
            None if modalities is None else tuple(modalities),
            asked.get("metadata"),
            None if given is None else tuple(self._line(item) for item in given),
            asked.get("conversation") == "none",
        )

    def _line(self, item: Any) -> tuple[str, str]:
        item = item if isinstance(item, dict) else {}
        if item.get("type") == "item_reference":
            if item.get("id") in self.texts:
                return self.texts[item["id"]]
            raise ConfigError("invalid_value", "response.input", f"no item {item.get('id')!r} in the conversation")
        part = (item.get("content") or [{}])[0]
        if part.get("type") not in ROLES.get(str(item.get("role")), ()) or "text" not in part:
            raise ConfigError("invalid_value", "response.input", "an item has a role and a part of text that fits it")
        return str(item["role"]), str(part["text"])
