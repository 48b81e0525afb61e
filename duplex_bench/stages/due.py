"""Which systems have items to do again: items that failed or were lost, or that would come out differently today."""

from collections.abc import Iterable, Mapping
from typing import Literal

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.outcome import RETRIED_OUTCOMES, SCORED_OUTCOMES
from duplex_bench.stages.rollouts import planned_rollouts
from duplex_bench.stages.scored_with import scored_otherwise
from duplex_bench.stages.stored_run import stored
from duplex_bench.stages.stored_tables import why_unreadable
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.card import SystemCard

Only = Literal["all", "failed", "stale"]
ONLY: tuple[Only, ...] = ("all", "failed", "stale")
_TABLES = ("rollouts", "activity", "words", "judgements", "measurements")


def known_only(only: str) -> None:
    """Check the word.

    Raises:
        ValueError: none of all, failed and stale.
    """
    if only not in ONLY:
        raise ValueError(f"--only {only}: choose one of {', '.join(ONLY)}")


def has_unreadable(workspace: Workspace, track: Track, system: str) -> bool:
    """Whether a table of a system is damaged, or of a version that today's code does not read: to be made again."""
    keys = [workspace.table_key((track, name), system) for name in _TABLES]
    store = workspace.store
    return any(store.exists(key) and why_unreadable(store, key) is not None for key in keys)


def failed_items(workspace: Workspace, track: Track, system: str) -> int:
    """Items of a system that failed or were lost at some stage; 0 for a system that was never run.

    A rollout counts if it was lost, and a scored one if a later stage has no row of it.
    """
    rollouts = stored(workspace, track, "rollouts", system)
    if rollouts is None:
        return 0
    lost = rollouts.filter(pl.col("outcome").is_in([str(outcome) for outcome in RETRIED_OUTCOMES])).height
    scored = rollouts.filter(pl.col("outcome").is_in([str(outcome) for outcome in SCORED_OUTCOMES]))
    wanted = set(scored["rollout_key"])
    unmeasured = 0
    for name in ("activity", "words"):
        table = stored(workspace, track, name, system)
        unmeasured = max(unmeasured, len(wanted - set(table["rollout_key"] if table is not None else ())))
    if stored(workspace, track, "measurements", system) is None:
        unmeasured = max(unmeasured, len(wanted))
    return lost + unmeasured


def stale_items(workspace: Workspace, track: Track, card: SystemCard) -> int:
    """Rollouts of a system that today's items, card and protocol settings ask for and the table has not, and those
    whose scores were made with other settings or stages than today's.

    0 for a system that was never run: that is missing, not stale.
    """
    items, rollouts = stored(workspace, track, "items"), stored(workspace, track, "rollouts", card.name)
    if items is None or rollouts is None:
        return 0
    planned = {one.rollout_key for one in planned_rollouts(workspace, items, card)}
    there = set(rollouts["rollout_key"])
    rescored = planned & there if scored_otherwise(workspace, track, card.name) else set()
    return len(planned ^ there | rescored)


def due(
    workspace: Workspace, tracks: Iterable[Track], cards: Mapping[str, SystemCard], only: str
) -> dict[str, SystemCard]:
    """Those of ``cards`` that ``only`` means.

    Raises:
        ValueError: ``only`` is none of all, failed and stale.
    """
    known_only(only)
    if only == "all":
        return dict(cards)
    chosen = list(tracks)
    return {
        name: card
        for name, card in cards.items()
        if any(
            has_unreadable(workspace, track, name)
            or (failed_items(workspace, track, name) if only == "failed" else stale_items(workspace, track, card))
            for track in chosen
        )
    }
