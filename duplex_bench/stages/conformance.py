"""A card's system through the conformance suite, and the level that it reached, kept for the report."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import numpy as np

from duplex_bench.audio.resample import resample
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import System
from duplex_bench.rollout.playback import Samples
from duplex_bench.speech import engines
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.storage.serial import from_json, to_json
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.conformance import Examination, examine
from duplex_bench.systems.environments import open_system

QUESTION: Final = "What is the capital of France?"
VOICE: Final = "a"
# So that an endpointer of 2 s ends the turn and an answer comes.
_SILENCE_S: Final = 4.0


@dataclass(frozen=True, slots=True)
class StoredExamination:
    """What the suite found for one version of a card; ``checked_at`` is a UTC time in ISO form."""

    system: str
    execution_digest: str
    checked_at: str
    examination: Examination


def examine_card(card: SystemCard, data: Path, store: ObjectStore, *, keep: bool = True) -> StoredExamination:
    """Open the system of ``card``, try every rule with a spoken question, and keep what came of it.

    Args:
        card: With its paths resolved.
        data: Data folder; the contract's archive is kept below it.
        store: Cache of engines, and where the result is kept.
        keep: False where the report must not show it: the card was pointed at a server that is not the system's.

    Raises:
        SystemStartError: The system could not be made.
    """
    with open_system(card, store=store, cache_folder=data / "cache") as system:
        found = examine(system, _question(system, store), policy=card.family == "policy")
    kept = StoredExamination(card.name, card.execution_digest(), datetime.now(UTC).isoformat(timespec="seconds"), found)
    if keep:
        store.put(_key(card), to_json(kept).encode())
    return kept


def stored_examination(card: SystemCard, store: ObjectStore) -> StoredExamination | None:
    """What ``examine_card`` kept for this version of the card; None if it was not examined since it changed."""
    try:
        return from_json(StoredExamination, store.get(_key(card)))
    except KeyError:
        return None


def level_text(found: StoredExamination | None) -> str:
    """The level as a reader sees it: must, should, optional, ``none`` (breaks the contract), or not checked."""
    if found is None:
        return "not checked"
    return found.examination.level or "none"


def _key(card: SystemCard) -> str:
    return f"conformance/{card.name}/{card.execution_digest()}.json"


def _question(system: System | PushSystem, store: ObjectStore) -> Samples:
    clip = engines.text_to_speech("embedded", store).speak(QUESTION, VOICE)
    rate = system.spec.in_rate_hz
    heard = resample(clip.samples, clip.sample_rate_hz, rate)
    # The realtime driver adds the silence that a protocol asks for.
    silence = 0 if isinstance(system, PushSystem) else round(_SILENCE_S * rate)
    return np.concatenate([heard, np.zeros(silence, dtype=np.float32)]).astype(np.float32)
