"""Which assets a run materialises, in which order: shared inputs, then each system, then what stands over all."""

from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

SHARED = {
    "multiparty": (
        "scenarios", "pairs", "utterance_speech", "scenes", "items", "inventory", "construction",
        "transcript_reference", "transcript_decisions",
    ),
    "conversation": (
        "sessions", "reviews", "lively_sessions", "gap_fill", "engine_labels", "review_flags", "labels", "candidates",
        "points", "identity_prompts", "recall_facts", "recall_questions", "question_speech", "items", "bounds",
        "inventory", "corpus_figures",
    ),
}  # fmt: skip
PER_SYSTEM = ("rollouts", "activity", "words", "judgements", "measurements")
READ_BY_REPORT = frozenset(
    {
        "items",
        "bounds",
        "inventory",
        "corpus_figures",
        "construction",
        "transcript_reference",
        "transcript_decisions",
    }
)
OVER_ALL = ("statistics", "comparisons", "tables", "figures")
OBSERVED = (dg.AssetKey(["conversation", "sessions"]), dg.AssetKey(["conversation", "reviews"]))
REPORT = tuple(dg.AssetKey(["results", name]) for name in ("voice_quality", "recogniser_quality", "report"))


@dataclass(frozen=True, slots=True)
class Part:
    """One Dagster run: what it materialises, for which system if it belongs to one."""

    label: str
    keys: tuple[dg.AssetKey, ...]
    system: str | None = None
    reads: tuple[tuple[dg.AssetKey, str | None], ...] = ()

    @property
    def writes(self) -> tuple[dg.AssetKey, ...]:
        """Assets whose tables the part writes; outside sources have none."""
        return tuple(key for key in self.keys if key not in OBSERVED)


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
    reads = tuple((dg.AssetKey([track, "items"]), None) for track in tracks)
    return Part(f"{system} ({', '.join(tracks)})", tuple(keys), system, reads)


def summary_part(tracks: Sequence[str], systems: Sequence[str]) -> Part:
    """Statistics, tables and figures of the tracks, and the report."""
    keys: list[dg.AssetKey] = []
    for track in tracks:
        keys += _keys(track, OVER_ALL)
    if "conversation" in tracks:
        keys += _keys("conversation", ("gate_calibration",))
    reads: list[tuple[dg.AssetKey, str | None]] = [(dg.AssetKey(["conversation", "candidates"]), None)]
    for track in tracks:
        reads += [(dg.AssetKey([track, name]), None) for name in SHARED[track] if name in READ_BY_REPORT]
        reads += [(dg.AssetKey([track, name]), system) for name in PER_SYSTEM for system in systems]
    return Part(f"report ({', '.join(tracks)})", (*keys, *REPORT), reads=tuple(reads))


def release_part() -> Part:
    """The public bundle; made when it is asked for, since it copies what every system said."""
    return Part("release", (dg.AssetKey(["results", "release"]),))
