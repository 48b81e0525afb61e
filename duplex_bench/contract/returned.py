"""What a system gives back, checked where it gives it back: what would be bent or lost on its way is refused here.

Runs inside foreign environments: standard library and numpy >= 1.24 only, Python >= 3.10.
"""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from duplex_bench.contract.types import OUT_KINDS, STATES, InvalidOutputError, Out, SessionStats, Spec

_SESSION_CALLS = "open", "step", "close"


def checked_system(system: Any, call: str = "new_session") -> Any:
    """``system`` if it has a spec and makes sessions by ``call``.

    Raises:
        InvalidOutputError: What the adapter's callable returned is no system.
    """
    if system is None:
        raise InvalidOutputError("the adapter's callable returned None: return the system")
    spec = getattr(system, "spec", None)
    if not isinstance(spec, Spec):
        raise InvalidOutputError(
            f"the adapter's callable returned {_kind(system)} whose spec is {_kind(spec)}: it is to be a "
            "duplex_bench.contract.types.Spec"
        )
    if not callable(getattr(system, call, None)):
        raise InvalidOutputError(
            f"the adapter's callable returned {_kind(system)}, which has no {call}(), by which its card's driver opens "
            "a session"
        )
    return system


def checked_session(session: Any) -> Any:
    """``session`` if it can be opened, stepped and closed.

    Raises:
        InvalidOutputError: What ``new_session`` returned is no session.
    """
    lacking = [name for name in _SESSION_CALLS if not callable(getattr(session, name, None))]
    if lacking:
        raise InvalidOutputError(f"new_session returned {_kind(session)}, which has no {lacking[0]}()")
    return session


def checked_outs(outs: Any) -> list[Out]:
    """``outs`` if it is a list of outputs of the right types.

    Raises:
        InvalidOutputError: Another container, or see ``checked_out``.
    """
    if not isinstance(outs, list):
        raise InvalidOutputError(f"step returned {_kind(outs)}: return a list of Out, empty if there is nothing")
    return [checked_out(out) for out in outs]


def checked_out(out: Any) -> Out:
    """``out`` if it is an output whose fields have the right types.

    Raises:
        InvalidOutputError: No ``Out``, an unknown kind or state, audio of another shape or dtype than float32 (n,), or
            a field of another type.
    """
    if not isinstance(out, Out):
        raise InvalidOutputError(f"step returned a list with {_kind(out)} in it: every entry is an Out")
    if out.kind not in OUT_KINDS:
        raise InvalidOutputError(f"unknown kind of output {out.kind!r}; known are {sorted(OUT_KINDS)}")
    if out.kind == "state" and out.state not in STATES:
        raise InvalidOutputError(f"unknown state {out.state!r}; known are {sorted(STATES)}")
    if not _is_whole(out.unit):
        raise InvalidOutputError(f"the unit of an output is {out.unit!r}: give a whole number")
    if out.kind == "audio" or out.pcm is not None:
        _check_pcm(out.pcm)
    for name in ("text", "response_id"):
        value = getattr(out, name)
        if value is not None and not isinstance(value, str):
            raise InvalidOutputError(f"{name} of an output is {value!r}: give a str, or None")
    for name in ("model_time_s", "available_s", "cost_ms"):
        value = getattr(out, name)
        if not _is_number(value) and (value is not None or name == "cost_ms"):
            raise InvalidOutputError(f"{name} of an output is {value!r}: give a finite number")
    return out


def checked_stats(stats: Any) -> SessionStats:
    """``stats`` if it is what ``close`` returns, of plain data.

    Raises:
        InvalidOutputError: Another type, or an ``extra`` that is no JSON.
    """
    if not isinstance(stats, SessionStats):
        raise InvalidOutputError(f"close returned {_kind(stats)}: return SessionStats(units=...)")
    for name in ("units", "empty_steps"):
        if not _is_whole(getattr(stats, name)):
            raise InvalidOutputError(f"close returned {name} = {getattr(stats, name)!r}: give a whole number")
    if stats.context_used_s is not None and not _is_number(stats.context_used_s):
        raise InvalidOutputError(f"close returned context_used_s = {stats.context_used_s!r}: give seconds, or None")
    try:
        json.dumps([stats.warnings, stats.extra], default=plain_number, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidOutputError(f"close returned warnings or extra that are no plain data: {error}") from error
    return stats


def plain_number(value: Any) -> Any:
    """A number of numpy as one of Python, for JSON; TypeError for all else."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{_kind(value)} is no number, text, list or dict")


def _check_pcm(pcm: Any) -> None:
    wanted = "audio is float32 of shape (n,) in [-1, 1]"
    if isinstance(pcm, (bytes, bytearray, memoryview)):
        raise InvalidOutputError(
            f"{wanted}, the system returned bytes: of 16 bit integers they are "
            "np.frombuffer(pcm, '<i2').astype(np.float32) / 32768"
        )
    if not isinstance(pcm, np.ndarray):
        raise InvalidOutputError(f"{wanted}, the system returned {_kind(pcm)}")
    if pcm.ndim != 1:
        raise InvalidOutputError(f"{wanted}, the system returned {pcm.dtype} {pcm.shape}: give one channel, flat")
    if pcm.dtype != np.float32:
        remedy = ".astype(np.float32)" + ("" if pcm.dtype.kind == "f" else f" / {_full_scale(pcm.dtype)}")
        raise InvalidOutputError(f"{wanted}, the system returned {pcm.dtype} {pcm.shape}: {remedy}")


def _full_scale(dtype: np.dtype[Any]) -> int:
    return int(2 ** (8 * dtype.itemsize - 1))


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and math.isfinite(value)


def _kind(value: Any) -> str:
    return "None" if value is None else f"something of type {type(value).__name__}"
