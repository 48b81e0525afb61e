"""One rollout of one item with what was measured on it, joined from the stored tables."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.items import Item
from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.records.transcripts import Transcript
from duplex_bench.stages.items import items_of
from duplex_bench.storage.serial import from_json

Intervals = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measured:
    """A rollout's item, record, speech intervals and words; the last three are None where a stage has no result."""

    item: Item
    rollout_key: str
    outcome: Outcome
    reason: str
    timeline_s: float
    gate_s: Intervals | None
    vad_s: Intervals | None
    transcript: Transcript | None

    @property
    def why_not_scored(self) -> str | None:
        """Why nothing can be scored on this rollout, or None."""
        if self.outcome not in SCORED_OUTCOMES:
            return f"{self.outcome}: {self.reason}" if self.reason else str(self.outcome)
        if self.gate_s is None or self.vad_s is None:
            return "its speech intervals could not be measured"
        if self.transcript is None:
            return "its words could not be recognised"
        return None


def measured(
    items: pl.DataFrame, rollouts: pl.DataFrame, activity: pl.DataFrame, words: pl.DataFrame, *, others: bool = False
) -> Iterator[Measured]:
    """Every planned rollout of the first repeat, in the order of the rollouts table; with ``others`` of the others."""
    known = items_of(items)
    intervals = {row["rollout_key"]: row for row in activity.iter_rows(named=True)}
    spoken = {row["rollout_key"]: row for row in words.iter_rows(named=True)}
    for row in rollouts.filter(pl.col("repeat") > 0 if others else pl.col("repeat") == 0).iter_rows(named=True):
        key = row["rollout_key"]
        found, said = intervals.get(key), spoken.get(key)
        yield Measured(
            item=known[row["item_id"]],
            rollout_key=key,
            outcome=Outcome(row["outcome"]),
            reason=row["reason"],
            timeline_s=row["timeline_s"],
            gate_s=_array(found["gate_s"]) if found else None,
            vad_s=_array(found["vad_s"]) if found else None,
            transcript=_transcript(said) if said else None,
        )


def _array(pairs: list[list[float]]) -> Intervals:
    return np.asarray(pairs, dtype=np.float64).reshape(-1, 2)


def _transcript(row: dict[str, Any]) -> Transcript:
    plain = {"rollout_key": row["rollout_key"], "engine": row["engine"], "words": row["words"]}
    return from_json(Transcript, json.dumps(plain))
