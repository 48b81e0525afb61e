"""Records to JSON text and back, validated by pydantic."""

from typing import Any, TypeVar

from pydantic import TypeAdapter

from duplex_bench.storage.digests import canonical_json

Record = TypeVar("Record")

_adapters: dict[Any, TypeAdapter[Any]] = {}


def to_json(record: Any) -> str:
    """Canonical JSON of a frozen record: equal records give equal text."""
    return canonical_json(record)


def from_json(kind: type[Record], text: str | bytes) -> Record:
    """The record of type ``kind`` that ``text`` describes.

    Raises:
        pydantic.ValidationError: the text does not describe one (a ValueError).
    """
    if kind not in _adapters:
        _adapters[kind] = TypeAdapter(kind)
    loaded: Record = _adapters[kind].validate_json(text)
    return loaded
