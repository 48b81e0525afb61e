"""Verdicts on repeats after the first: they feed the split of variance, and no estimate (ours)."""

from dataclasses import replace
from typing import Final

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.stages import judges
from duplex_bench.stages.evaluation import asked_of
from duplex_bench.stages.measured import measured
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame, write_frame

LATER: Final = "later_judgements"


def with_later_repeats(
    workspace: Workspace,
    track: Track,
    items: pl.DataFrame,
    rollout_table: pl.DataFrame,
    activity_table: pl.DataFrame,
    words_table: pl.DataFrame,
    system: str,
    first: StageResult,
) -> StageResult:
    """``first`` with counts of what was judged on later repeats; their verdicts are kept in a table of their own.

    The judge alone is asked, not the second one. Without ``judge.later_repeats``, or with one repeat, nothing is.
    """
    key = workspace.table_key((track, LATER), system)
    if workspace.profile.rollout.repeats < 2 or not workspace.profile.judge.later_repeats:
        workspace.store.delete(key)
        return first
    ones = measured(items, rollout_table, activity_table, words_table, others=True)
    again = judges.judged(workspace, track, system, asked_of(workspace, track, ones), second=False)
    write_frame(workspace.store, key, again.frame)
    counts = {f"later_repeats_{name}": number for name, number in again.counts.items()}
    notes = [first.note, f"Later repeats:\n{again.note}" if again.note else ""]
    return replace(first, counts={**first.counts, **counts}, note="\n".join(note for note in notes if note))


def later_verdicts(workspace: Workspace, track: Track, system: str) -> pl.DataFrame | None:
    """Stored verdicts on a system's later repeats; None where none were asked for."""
    key = workspace.table_key((track, LATER), system)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None
