"""The contract's types as message headers with arrays beside them, and back."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from duplex_bench.contract.codec import CodecError
from duplex_bench.contract.types import OUT_KINDS, HistoryPart, OpenRequest, Out, Prompt, SessionStats, Spec

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]

# Fields that travel as arrays; in the header an index stands in their place.
_PCM = "pcm", "user_pcm", "assistant_pcm"


def pack_spec(spec: Spec) -> dict[str, Any]:
    """``spec`` as plain JSON data."""
    return {**_plain(spec, []), "capabilities": sorted(spec.capabilities)}


def unpack_spec(data: dict[str, Any]) -> Spec:
    """The spec that ``pack_spec`` packed; raises CodecError for unknown or missing fields."""
    fields = _known(Spec, data)
    return Spec(**{**fields, "capabilities": frozenset(fields["capabilities"])})


def pack_request(request: OpenRequest) -> tuple[dict[str, Any], list[Samples]]:
    """``request`` as plain JSON data with the history's audio beside it."""
    arrays: list[Samples] = []
    history = [_plain(part, arrays) for part in request.history]
    data = {
        "seed": request.seed,
        "stimulus_id": request.stimulus_id,
        "prompt": _plain(request.prompt, arrays),
        "history": history,
        "sampling": request.sampling,
    }
    return data, arrays


def unpack_request(data: dict[str, Any], arrays: list[Samples]) -> OpenRequest:
    """The request that ``pack_request`` packed; raises CodecError for unknown or missing fields."""
    fields = _known(OpenRequest, data)
    fields["prompt"] = Prompt(**_known(Prompt, fields["prompt"]))
    fields["history"] = tuple(_part(entry, arrays) for entry in fields["history"])
    return OpenRequest(**fields)


def pack_outs(outs: list[Out]) -> tuple[list[dict[str, Any]], list[Samples]]:
    """Outputs as plain JSON data with their audio beside them."""
    arrays: list[Samples] = []
    return [_plain(out, arrays) for out in outs], arrays


def unpack_outs(data: list[dict[str, Any]], arrays: list[Samples]) -> list[Out]:
    """The outputs that ``pack_outs`` packed; raises CodecError for unknown kinds or fields."""
    outs = [Out(**_with_arrays(_known(Out, entry), arrays)) for entry in data]
    for out in outs:
        if out.kind not in OUT_KINDS:
            raise CodecError(f"unknown kind of output {out.kind!r}")
    return outs


def pack_stats(stats: SessionStats) -> dict[str, Any]:
    """``stats`` as plain JSON data."""
    return _plain(stats, [])


def unpack_stats(data: dict[str, Any]) -> SessionStats:
    """The statistics that ``pack_stats`` packed."""
    fields = _known(SessionStats, data)
    return SessionStats(**{**fields, "warnings": tuple(fields["warnings"])})


def _part(entry: dict[str, Any], arrays: list[Samples]) -> HistoryPart:
    fields = _with_arrays(_known(HistoryPart, entry), arrays)
    words = tuple((str(text), float(start), float(end)) for text, start, end in fields.pop("words"))
    return HistoryPart(**fields, words=words)


def _plain(record: Any, arrays: list[Samples]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name in _PCM and value is not None:
            arrays.append(value)
            value = len(arrays) - 1
        data[field.name] = value
    return data


def _with_arrays(fields: dict[str, Any], arrays: list[Samples]) -> dict[str, Any]:
    for name in _PCM:
        index = fields.get(name)
        if index is not None:
            if not isinstance(index, int) or not 0 <= index < len(arrays):
                raise CodecError(f"{name} names array {index!r}, the message holds {len(arrays)}")
            fields[name] = arrays[index]
    return fields


def _known(kind: Any, data: Any) -> dict[str, Any]:
    names = {field.name for field in dataclasses.fields(kind)}
    if not isinstance(data, dict) or set(data) != names:
        found = sorted(data) if isinstance(data, dict) else type(data).__name__
        raise CodecError(f"{kind.__name__} has the fields {sorted(names)}, the message has {found}")
    return dict(data)
