"""A card's settings as an adapter's dataclass: what is unknown, missing or of another kind is named.

It lies with the contract since adapters in environments of self-hosted models use it: they have nothing else of ours.
"""

from collections.abc import Mapping
from dataclasses import MISSING, fields
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Settings = TypeVar("Settings")


def settings_from(kind: type[Settings], settings: Mapping[str, Any], name: str) -> Settings:
    """``kind(**settings)``, checked; what the values mean is for ``kind`` to check when it is made.

    Args:
        kind: a dataclass; its fields are the settings, and those without a default are needed.
        settings: the card's table.
        name: whose settings they are, for messages.

    Raises:
        ValueError: an unknown or missing setting, or a value of another kind than the field's.
    """
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    unknown = sorted(settings.keys() - known.keys())
    if unknown:
        raise ValueError(f"{name}: unknown settings {unknown}; known are {sorted(known)}")
    needed = {one.name for one in known.values() if one.default is MISSING and one.default_factory is MISSING}
    missing = sorted(needed - settings.keys())
    if missing:
        raise ValueError(f"{name}: settings {missing} are needed; known are {sorted(known)}")
    hints = get_type_hints(kind)
    given = {}
    for key, value in settings.items():
        # TOML has lists only.
        given[key] = tuple(value) if get_origin(hints[key]) is tuple and isinstance(value, list) else value
        if not _fits(given[key], hints[key]):
            raise ValueError(f"{name}: setting {key} = {value!r}: give {_told(hints[key])}")
    return kind(**given)


def _fits(value: object, hint: Any) -> bool:
    origin, inside = get_origin(hint), get_args(hint)
    if origin is Literal:
        return value in inside
    if origin in {Union, UnionType}:
        return any(_fits(value, one) for one in inside)
    if origin is tuple:
        return isinstance(value, tuple) and all(_fits(one, inside[0]) for one in value)
    if hint is Any or hint is None:
        return True
    if hint in {int, float} and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else origin or hint)


def _told(hint: Any) -> str:
    names = {str: "a text", int: "a whole number", float: "a number", bool: "true or false"}
    if get_origin(hint) is Literal:
        return " or ".join(map(repr, get_args(hint)))
    if get_origin(hint) is tuple:
        return f"a list, each {_told(get_args(hint)[0])}"
    return names.get(hint, str(hint))
