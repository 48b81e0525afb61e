"""JSON schemas that every provider accepts, from pydantic models; and the strict reading of what comes back."""

import re
from functools import cache
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

_FENCED: Final = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)
# Keywords that say nothing to a decoder, or that one provider or another refuses in strict mode: the model itself
# is validated here afterwards, so that leaving a bound out of the schema loses nothing.
_DROPPED: Final = frozenset(
    {"title", "default", "$defs", "minLength", "maxLength", "minItems", "maxItems", "pattern", "minimum", "maximum",
     "exclusiveMinimum", "exclusiveMaximum", "format", "examples"}
)  # fmt: skip


class Reply(BaseModel):
    """Base of everything a text model is asked to hand back: unknown keys are refused, values frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)


Parsed = TypeVar("Parsed", bound=Reply)


class UnreadableError(ValueError):
    """An answer that is not what was asked for; the message says how."""


@cache
def strict_schema(kind: type[Reply]) -> dict[str, Any]:
    """JSON schema of ``kind`` in the subset of all providers: every property required, no others, no references.

    The same object for the same model: do not change it.

    Raises:
        ValueError: the model refers to itself, which cannot be written without references.
    """
    whole = kind.model_json_schema()
    strict: dict[str, Any] = _strict(whole, whole.get("$defs", {}), ())
    return strict


def _strict(node: Any, definitions: dict[str, Any], within: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_strict(entry, definitions, within) for entry in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rsplit("/", 1)[-1]
        if name in within:
            raise ValueError(f"schema {name!r} refers to itself: flatten the model")
        beside = {key: value for key, value in node.items() if key == "description"}
        return {**_strict(definitions[name], definitions, (*within, name)), **beside}
    kept = {
        # Names of properties are not keywords, whatever they are called.
        key: {name: _strict(entry, definitions, within) for name, entry in value.items()}
        if key == "properties"
        else _strict(value, definitions, within)
        for key, value in node.items()
        if key not in _DROPPED
    }
    if kept.get("type") == "object" and "properties" in kept:
        kept["required"] = list(kept["properties"])
        kept["additionalProperties"] = False
    if "const" in kept:
        kept["enum"] = [kept.pop("const")]
    return kept


def read_as(kind: type[Parsed], text: str) -> Parsed:
    """The object that ``text`` is: JSON and nothing else, a code fence around the whole allowed.

    Raises:
        UnreadableError: prose, broken JSON, or JSON of another shape.
    """
    fenced = _FENCED.fullmatch(text)
    try:
        return kind.model_validate_json(fenced.group(1) if fenced else text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if first["type"] == "json_invalid":
            raise UnreadableError("the answer is not JSON") from None
        where = ".".join(str(part) for part in first["loc"]) or "the answer"
        raise UnreadableError(f"{where}: {first['msg']}") from None
