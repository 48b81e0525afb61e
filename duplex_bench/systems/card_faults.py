"""What is wrong with a card, in words that name the key, what stands there, and what may stand there."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from duplex_bench.systems.card import Environment, Sweep, SystemCard

_DOCS: Final = "docs/adding-a-system.md"
_SHOWN_CHARS: Final = 80
_TABLES: Final[dict[str, type[BaseModel]]] = {"environment": Environment, "sweep": Sweep}
# A key has one fault of a setting's kind for each kind that it might have been.
_SETTINGS: Final = "settings"
_SETTING_KINDS: Final = "text, a number, true or false, or a list of texts or of numbers"

_PATTERNS: Final = {
    "name": "a-z, 0-9, - and _ alone",
    "adapter": 'module:callable, as "my_system:create"',
    "needs_env": 'names of environment variables in capitals, as ["MY_KEY"], or "A|B" for either',
    "lock_sha256": "nothing: it is worked out from the lock",
}
_KINDS: Final = {
    "string_type": "text in quotes",
    "tuple_type": 'a list, as ["..."]',
    "list_type": 'a list, as ["..."]',
    "dict_type": "a table of keys and values",
    "model_type": "a table of keys and values",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a number that is not inf or nan",
    "too_short": "at least one entry",
    "string_too_short": "some text",
}


def card_faults(error: ValidationError, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Each fault of a card as what is wrong and what to do.

    Args:
        error: What pydantic said of ``data``.
        data: The card as it was read from its file.
    """
    told: set[str] = set()
    faults = error.errors()
    for fault in faults:
        # A list whose only entry is wrong is told of that entry, not also of being empty without it.
        if fault["type"] == "too_short" and any(other["loc"][:-1] == fault["loc"] for other in faults):
            continue
        message, remedy = _fault(fault, data)
        if message not in told:
            told.add(message)
            yield message, remedy


def _fault(fault: ErrorDetails, data: Mapping[str, Any]) -> tuple[str, str]:
    place = fault["loc"][:2] if fault["loc"][:1] == (_SETTINGS,) else fault["loc"]
    where = ".".join(str(part) for part in place)
    kind = fault["type"]
    if kind == "extra_forbidden":
        return f"{where}: a card has no such key", _respelt(place)
    if kind == "missing":
        return f"{where}: is missing", _added(where, data)
    if kind == "value_error":
        return str(fault["ctx"]["error"]), f"correct it: {_DOCS} says what each key means"
    wanted = _wanted(fault, place)
    if kind == "literal_error":
        close = _closest(fault["input"], _literals(fault))
        wanted += f": did you mean {close!r}?" if close else ""
    return f"{where}: {_shown(_value(place, data))} stands there", f"write {wanted}"


def _wanted(fault: ErrorDetails, place: tuple[int | str, ...]) -> str:
    if place[0] == _SETTINGS and len(place) > 1:
        return _SETTING_KINDS
    kind = fault["type"]
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(str(place[0 if place[0] != "environment" else -1]), _PATTERNS["name"])
    if kind == "literal_error":
        return f"one of {fault['ctx']['expected']}"
    # What is left is a bound, which pydantic's own text names: "Input should be greater than 0".
    bound = fault["msg"].replace("Input should be", "a number").replace("String should have", "text of")
    return _KINDS.get(kind, bound)


def _literals(fault: ErrorDetails) -> list[str]:
    return [word.strip("'") for word in str(fault["ctx"]["expected"]).replace(" or ", ", ").split(", ")]


def _respelt(place: tuple[int | str, ...]) -> str:
    model = _TABLES.get(str(place[0]), SystemCard) if len(place) > 1 else SystemCard
    key = str(place[-1])
    close = _closest(key, list(model.model_fields))
    if close:
        return f"write {close!r}, or remove it"
    for table, other in _TABLES.items():
        if len(place) == 1 and key in other.model_fields:
            return f"move it below [{table}]"
    if len(place) > 1 and key in SystemCard.model_fields:
        return f"move it above the first line in brackets, as it belongs to the card and not to [{place[0]}]"
    return f"remove it, or move it below [settings] if it is the adapter's own: {_DOCS} lists the keys of a card"


def _added(where: str, data: Mapping[str, Any]) -> str:
    for table, entries in data.items():
        if isinstance(entries, Mapping) and where in entries:
            return f"it stands below [{table}]: move it above the first line in brackets"
    return f"add it: {_DOCS} says what it means"


def _closest(word: Any, known: list[str]) -> str | None:
    return next(iter(difflib.get_close_matches(str(word), known, n=1)), None)


def _value(place: tuple[int | str, ...], data: Any) -> Any:
    for part in place:
        try:
            data = data[part]
        except (KeyError, IndexError, TypeError):
            return data
    return data


def _shown(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."
