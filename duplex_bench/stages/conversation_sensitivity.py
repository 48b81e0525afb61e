"""Tables that score stored pauses again under other boundaries or another detector (P2 table 11; design 8)."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import polars as pl

from duplex_bench.conversation.measures import MeasureError, Spans, classify_pause
from duplex_bench.conversation.sensitivity import (
    AS_LABELLED,
    StoredPause,
    TakeoverRow,
    stored_pause,
    takeover_under_shifts,
)
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.stages.measured import Measured, measured
from duplex_bench.statistics import rate_interval
from duplex_bench.storage.digests import generator_from

DETECTORS: Final = ("energy gate", "voice detector")


def sensitivity_tables(tables: TrackTables) -> list[Table]:
    """Takeover rate under moved boundaries, and under either detector; none for another track or without pauses."""
    if tables.track != "conversation":
        return []
    systems = tables.rollouts["system"].unique().sort()
    scored = {system: _pauses(tables, system) for system in systems}
    found = [_shifts(tables, scored), _detectors(scored)]
    return [table for table in found if table.frame.height]


def stored_pauses(tables: TrackTables) -> dict[str, list[StoredPause]]:
    """Every scored pause of every system with what was measured on it."""
    return {
        system: [_stored(one, one.gate_s) for one in _pauses(tables, system) if one.gate_s is not None]
        for system in tables.rollouts["system"].unique().sort()
    }


def _pauses(tables: TrackTables, system: str) -> list[Measured]:
    mine = pl.col("system") == system
    rows = measured(tables.items, tables.rollouts.filter(mine), tables.activity.filter(mine), tables.words.filter(mine))
    return [one for one in rows if one.item.condition == "pause" and one.why_not_scored is None]


def _stored(one: Measured, intervals: Spans) -> StoredPause:
    if one.transcript is None:
        raise MeasureError(f"rollout {one.rollout_key} has no words: it cannot be scored again")
    return stored_pause(one.item, intervals, one.transcript.words)


def _shifts(tables: TrackTables, scored: dict[str, list[Measured]]) -> Table:
    rows: list[dict[str, object]] = []
    for system, mine in scored.items():
        pauses = [_stored(one, one.gate_s) for one in mine if one.gate_s is not None]
        if not pauses:
            continue
        labelled: float | None = None
        for row in takeover_under_shifts(pauses):
            low, high = _interval(tables, system, row)
            labelled = row.rate if labelled is None else labelled
            rows.append(
                {"system": system, "boundary": row.group, "n": row.n, "takeovers": row.n_takeover, "rate": row.rate,
                 "low": low, "high": high,
                 "change": None if row.rate is None or labelled is None else row.rate - labelled}
            )  # fmt: skip
    return Table(
        "conversation-boundary-shifts",
        "Conversation: takeovers under moved boundaries",
        "The labelled pause moved at its end or start, scored again from stored intervals and words; no rollout runs "
        "again. change: against the boundary as labelled. Rollouts without audio count as no takeover.",
        pl.DataFrame(
            rows,
            schema={"system": pl.String, "boundary": pl.String, "n": pl.Int64, "takeovers": pl.Int64,
                    "rate": pl.Float64, "low": pl.Float64, "high": pl.Float64, "change": pl.Float64},
        ),
    )  # fmt: skip


def _interval(tables: TrackTables, system: str, row: TakeoverRow) -> tuple[float | None, float | None]:
    if row.rate is None or len(set(row.clusters)) < 2:
        return None, None
    # A number that the leaderboard gives too has the interval that it has there.
    stored = tables.statistics.filter(
        (pl.col("system") == system) & (pl.col("metric") == "pause_takeover") & (pl.col("n_scored") == row.n)
    )
    if row.group == AS_LABELLED and stored.height == 1 and stored["estimate"][0] == row.rate:
        return stored["low"][0], stored["high"][0]
    found = rate_interval(
        np.asarray(row.outcomes), np.asarray(row.clusters),
        rng=generator_from("boundary-shifts/1", system, row.group),
        n_resamples=tables.analysis.n_resamples, level=tables.analysis.level,
    )  # fmt: skip
    return found.low, found.high


def _detectors(scored: dict[str, list[Measured]]) -> Table:
    """The same pauses under the energy gate and under the voice detector: a second opinion on the gate (ours)."""
    rows: list[dict[str, object]] = []
    for system, mine in scored.items():
        kept = [one for one in mine if one.gate_s is not None and one.vad_s is not None]
        if not kept:
            continue
        by_detector = [_outcomes(kept, [one.gate_s for one in kept]), _outcomes(kept, [one.vad_s for one in kept])]
        agree = sum(a == b for a, b in zip(*by_detector, strict=True)) / len(kept)
        for name, outcomes in zip(DETECTORS, by_detector, strict=True):
            shares = {
                kind: sum(outcome == kind for outcome in outcomes) / len(kept)
                for kind in ("silent", "wordless", "takeover", "after")
            }
            rows.append({"system": system, "detector": name, "n": len(kept), **shares, "same_outcome": agree})
    return Table(
        "conversation-detectors",
        "Conversation: pauses under either detector",
        "Outcomes of the same rollouts by the energy gate, which scores, and by the voice detector (ours). "
        "same_outcome: share of rollouts on which the two agree.",
        pl.DataFrame(
            rows,
            schema={"system": pl.String, "detector": pl.String, "n": pl.Int64, "silent": pl.Float64,
                    "wordless": pl.Float64, "takeover": pl.Float64, "after": pl.Float64, "same_outcome": pl.Float64},
        ),
    )  # fmt: skip


def _outcomes(rollouts: Sequence[Measured], intervals: Sequence[Spans | None]) -> list[str]:
    found: list[str] = []
    for one, spans in zip(rollouts, intervals, strict=True):
        pause = _stored(one, [] if spans is None else spans)
        found.append(classify_pause(pause.gate_s, pause.word_times_s, pause.pause_s).outcome)
    return found
