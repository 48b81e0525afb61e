"""Which assets a run materialises, in which order: shared inputs, then each system, then what stands over all."""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

SHARED = {
    "multiparty": ("scenarios", "pairs", "utterance_speech", "scenes", "items"),
    "conversation": (
        "sessions", "reviews", "lively_sessions", "gap_fill", "engine_labels", "review_flags", "labels", "candidates",
        "points", "items", "bounds",
    ),
}  # fmt: skip
PER_SYSTEM = ("rollouts", "activity", "words", "judgements", "measurements")
OVER_ALL = ("statistics", "comparisons", "tables", "figures")
REPORT = (dg.AssetKey(["results", "voice_quality"]), dg.AssetKey(["results", "report"]))


@dataclass(frozen=True, slots=True)
class Part:
    """One Dagster run: what it materialises, for which system if it belongs to one."""

    label: str
    keys: tuple[dg.AssetKey, ...]
    system: str | None = None


def _keys(track: str, names: Sequence[str]) -> tuple[dg.AssetKey, ...]:
    return tuple(dg.AssetKey([track, name]) for name in names)


def shared_parts(tracks: Sequence[str]) -> list[Part]:
    """The inputs of each track."""
    return [Part(f"{track} inputs", _keys(track, SHARED[track])) for track in tracks]


def system_part(system: str, tracks: Sequence[str]) -> Part:
    """One system on the tracks: its card, and rollouts to measurements."""
    keys = [dg.AssetKey(["systems", "cards"])]
    for track in tracks:
        keys += _keys(track, PER_SYSTEM)
    return Part(system, tuple(keys), system)


def summary_part(tracks: Sequence[str]) -> Part:
    """Statistics, tables and figures of the tracks, and the report."""
    keys: list[dg.AssetKey] = []
    for track in tracks:
        keys += _keys(track, OVER_ALL)
    return Part("report", (*keys, *REPORT))
