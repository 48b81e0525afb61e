"""What a label review changed: which stimuli are new to the systems, which windows alone are scored again (design 4).

A point keeps its id as long as its boundary stays; rollouts hang on the digest of what a system hears and reads. So
after a review an item either stays as it was, keeps its rollouts and is scored again (its reference changed), needs
new rollouts (its stimulus changed), or comes into the draw or leaves it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.rollouts import planned_rollouts, rollout_ledger, why_not
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame, write_frame
from duplex_bench.systems.card import SystemCard

Change = Literal["unchanged", "rescored", "stimulus_changed", "drawn", "left"]

TRACK: Track = "conversation"
CHANGES: tuple[Change, ...] = ("unchanged", "rescored", "stimulus_changed", "drawn", "left")
CHANGES_SCHEMA = {
    "item_id": pl.String, "cluster": pl.String, "condition": pl.String, "change": pl.String, "before": pl.String,
    "after": pl.String,
}  # fmt: skip
_SEEN = ("stimulus_digest", "condition", "reference")


@dataclass(frozen=True, slots=True)
class Regenerated:
    """Items before and after a review, one row each in ``frame``; ``counts`` by kind of change add up to its rows.

    Columns ``before`` and ``after`` are stimulus digests, null where there is no such item.
    """

    frame: pl.DataFrame
    counts: Mapping[Change, int]

    @property
    def new_stimuli(self) -> tuple[str, ...]:
        """Digests that no item had before: only these can need a rollout, unless word times of a history moved."""
        old = set(self.frame["before"].drop_nulls())
        return tuple(sorted(set(self.frame["after"].drop_nulls()) - old))


def compare(before: pl.DataFrame | None, after: pl.DataFrame) -> Regenerated:
    """Every item of either table with what became of it; without a table before, every item is drawn.

    Args:
        before: the items table that stood, or None.
        after: the items table made anew.
    """
    old = {} if before is None else {row["item_id"]: row for row in before.iter_rows(named=True)}
    new = {row["item_id"]: row for row in after.iter_rows(named=True)}
    rows: list[dict[str, object]] = []
    for item_id in sorted(old.keys() | new.keys()):
        was, now = old.get(item_id), new.get(item_id)
        known = now or was or {}
        rows.append(
            {
                "item_id": item_id,
                "cluster": known["cluster"],
                "condition": known["condition"],
                "change": _change(was, now),
                "before": was and was["stimulus_digest"],
                "after": now and now["stimulus_digest"],
            }
        )
    frame = pl.DataFrame(rows, schema=CHANGES_SCHEMA)
    counts: dict[Change, int] = {change: frame.filter(pl.col("change") == change).height for change in CHANGES}
    return Regenerated(frame, counts)


def _change(was: Mapping[str, object] | None, now: Mapping[str, object] | None) -> Change:
    if now is None:
        return "left"
    if was is None:
        return "drawn"
    if was["stimulus_digest"] != now["stimulus_digest"]:
        return "stimulus_changed"
    return "unchanged" if all(was[name] == now[name] for name in _SEEN) else "rescored"


def rollouts_due(workspace: Workspace, items: pl.DataFrame, card: SystemCard) -> int:
    """How many rollouts a system still owes the items: those whose key has no finished record."""
    finished = rollout_ledger(workspace, TRACK, card.name).finished()
    due = {
        one.rollout_key
        for one in planned_rollouts(workspace, items, card)
        if why_not(card, TRACK, one.protocol) is None
    }
    return len(due - finished.keys())


def stored_items(workspace: Workspace) -> pl.DataFrame | None:
    """The items table of the conversation track as it stands, or None."""
    key = workspace.table_key((TRACK, "items"), None)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None


def with_changes(workspace: Workspace, made: StageResult) -> StageResult:
    """The result of the items stage, told apart from the table that stands; to be called before it is replaced.

    What changed is stored beside the items as ``conversation/regenerated``.
    """
    before = stored_items(workspace)
    found = compare(before, made.frame)
    write_frame(workspace.store, workspace.table_key((TRACK, "regenerated"), None), found.frame)
    told = {f"since_last_{change}": number for change, number in found.counts.items()}
    return replace(made, counts={**made.counts, **told})
