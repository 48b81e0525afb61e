"""``duplex-bench regenerate``: labels to items anew after a review, and exactly what that changed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import dagster as dg
import polars as pl
from rich.table import Table

from duplex_bench.cli.console import console, error_console, progress_bars
from duplex_bench.cli.run import choose, environment
from duplex_bench.stages import regeneration, rejected_windows, reviews

# What hangs on a label, in the order in which it is made; the job regenerate_points makes the same.
REGENERATED = (
    "reviews", "labels", "candidates", "points", "identity_prompts", "recall_facts", "recall_questions",
    "question_speech", "items", "bounds", "inventory", "corpus_figures",
)  # fmt: skip
_SHOWN = 40
_MEANING = {
    "unchanged": "nothing to do",
    "rescored": "windows or reply moved: scored again on the rollouts there are",
    "stimulus_changed": "a system hears or reads something else: run again",
    "drawn": "new in the draw: run",
    "left": "no longer drawn: its rollouts stay stored, its scores leave the tables",
}


def regenerate(root: Path, data: Path, profile: str, systems: Sequence[str]) -> int:
    """Make labels to items anew and say what changed; returns the exit code. Rollouts are left to ``run``.

    Raises:
        ValueError: the track was never run, or a review cannot be read.
    """
    chosen = choose(root, data, profile, "conversation", systems)
    workspace = chosen.workspace
    labels = workspace.table_key(("conversation", "engine_labels"), None)
    if not workspace.store.exists(labels):
        raise ValueError(
            f"profile {profile} has no labels yet: run duplex-bench run --profile {profile} --track conversation first"
        )
    approved = reviews.approved(workspace.reviews_folder)
    before = regeneration.stored_items(workspace)
    with environment(root, data, profile):
        from duplex_bench.cli import local_run
        from duplex_bench.definitions import defs

        keys = [dg.AssetKey(["conversation", name]) for name in REGENERATED]
        with local_run.instance_of(root, data) as instance, progress_bars():
            outcome = local_run.execute(defs, instance, root, keys, label="regenerate")
    if not outcome.success:
        error_console.print(f"[red]labels could not be regenerated:[/] {outcome.error}", highlight=False)
        return 1
    after = regeneration.stored_items(workspace)
    if after is None:
        raise ValueError("the items were made but their table is not there: run duplex-bench doctor")
    found = regeneration.compare(before, after)
    console.print(f"{len(approved)} approved reviews in {workspace.reviews_folder}", highlight=False, soft_wrap=True)
    _tell_rejected(rejected_windows.kept(workspace))
    console.print(_summary(found))
    changed = found.frame.filter(pl.col("change") != "unchanged")
    if changed.height:
        named = changed.rename({"cluster": "session", "condition": "kind"}).sort("change", "session", "item_id")
        _tell_changed(named, workspace.table_key(("conversation", "regenerated"), None))
    due = {name: regeneration.rollouts_due(workspace, after, card) for name, card in chosen.cards.items()}
    told = ", ".join(f"{name} {number}" for name, number in due.items())
    console.print(f"rollouts due: {told}", highlight=False)
    if any(due.values()) or changed.height:
        console.print(
            f"[dim]Run what is due, score and report:[/] duplex-bench run --profile {profile} --track conversation",
            highlight=False,
            soft_wrap=True,
        )
    return 0


def _summary(found: regeneration.Regenerated) -> Table:
    table = Table(title="Items after the review", box=None)
    for name in ("change", "items", "meaning"):
        table.add_column(name, justify="right" if name == "items" else "left")
    for change, number in found.counts.items():
        table.add_row(change, str(number), _MEANING[change])
    return table


def _tell_rejected(rejected: Mapping[str, str]) -> None:
    """The windows that people took out of the draw, each with why."""
    if rejected:
        console.print(f"{len(rejected)} windows rejected by two people, out of the draw:", highlight=False)
    for point_id, reason in rejected.items():
        console.print(f"  {point_id}  {reason or 'no reason given'}", highlight=False, soft_wrap=True)


def _tell_changed(frame: pl.DataFrame, stored: str) -> None:
    """One line an item, whole ids, so that they can be searched for in the report."""
    for row in frame.head(_SHOWN).iter_rows(named=True):
        told = f"{row['change']:17}{row['item_id']}  {row['session']}  {row['kind']}"
        console.print(told, highlight=False, soft_wrap=True)
    if frame.height > _SHOWN:
        console.print(f"and {frame.height - _SHOWN} more in {stored}", highlight=False, soft_wrap=True)
