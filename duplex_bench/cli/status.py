"""``duplex-bench status`` and ``systems``: what has been run, what is behind, what can be run."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import polars as pl
from rich.markup import escape
from rich.table import Column, Table

from duplex_bench.cli.console import console, tell_skipped
from duplex_bench.cli.run import TRACKS, by_default, opened
from duplex_bench.cli.under_way import show_under_way
from duplex_bench.records.items import Track
from duplex_bench.records.outcome import RETRIED_OUTCOMES
from duplex_bench.stages import checks
from duplex_bench.stages.cards import readable_cards
from duplex_bench.stages.stored_run import stored, systems_with
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import DamagedTableError
from duplex_bench.systems.card import SystemCard, missing_env
from duplex_bench.systems.environments import not_set_up

_GONE: Final = ("", "", "", "", "[yellow]its card is gone: put it back, or leave its results[/]")

_DAMAGED: Final = ("", "", "", "", "[red]a table is damaged: run it again, no work is lost[/]")


def show_status(root: Path, data: Path, profile: str, limit: int | None = None) -> None:
    """One row per track and system: rollouts by outcome, scores, and whether the stimuli are those of today."""
    workspace, cards = opened(root, data, profile, limit)
    show_under_way(workspace.store)
    due = [
        name for name in by_default(workspace, cards) if name in cards and _lacks(cards[name], workspace.data) is None
    ]
    for track in TRACKS:
        items = stored(workspace, track, "items")
        if items is None:
            console.print(f"[yellow]{track}:[/] no items yet: run `duplex-bench run --profile {profile}`")
            continue
        table = Table(
            "system", "rollouts", "lost", "scores", "reasons", "state", title=f"{track}: {items.height} items"
        )
        run = systems_with(workspace, track, "rollouts")
        for system in sorted({*run, *(name for name in due if track in cards[name].tracks)}):
            table.add_row(system, *(_row(workspace, track, system, items) if system in cards else _GONE))
        console.print(table)
    report = workspace.report_folder / "index.html"
    told = report if report.exists() else "not built yet"
    console.print(f"report: {told}", markup=False, highlight=False, soft_wrap=True)
    _tell_parts(workspace, profile, limit)


def _tell_parts(workspace: Workspace, profile: str, limit: int | None) -> None:
    """Runs of part of the profile have tables of their own, which this table does not show."""
    if limit is not None:
        return
    marked = f"{workspace.profile.name}-limit-"
    parts = sorted(path.name.removeprefix(marked) for path in workspace.report_folder.parent.glob(f"{marked}*"))
    for part in parts:
        told = f"run with --limit {part}: duplex-bench status --profile {profile} --limit {part}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)


def _row(workspace: Workspace, track: Track, system: str, items: pl.DataFrame) -> Sequence[str]:
    try:
        rollouts = stored(workspace, track, "rollouts", system)
        measurements = stored(workspace, track, "measurements", system)
    except DamagedTableError:
        return _DAMAGED
    if rollouts is None:
        return ("0", "", "", "", "[yellow]not run[/]")
    lost = rollouts.filter(pl.col("outcome").is_in([str(outcome) for outcome in RETRIED_OUTCOMES])).height
    current = checks.systems_up_to_date(items, {system: rollouts}).passed
    state = "[green]up to date[/]" if current else "[yellow]items changed: run it again[/]"
    if measurements is None:
        return (str(rollouts.height), str(lost), "", "", "[yellow]not scored[/]")
    reasons = measurements["value"].null_count()
    return (str(rollouts.height), str(lost), str(measurements.height - reasons), str(reasons), state)


def _lacks(card: SystemCard, data: Path) -> str | None:
    """What has to be done before the system of ``card`` runs here, or None."""
    missing = missing_env(card, os.environ)
    if missing:
        return f"set {' and '.join(missing)}"
    return f"systems setup {card.name}" if not_set_up(card, data / "cache") is not None else None


def list_systems(data: Path) -> None:
    """Cards that can be run here, and those that cannot be read."""
    cards, errors = readable_cards(data / "systems")
    table = Table(Column("system", no_wrap=True), "runs here", "family", "stands in for")
    for card in cards.values():
        lacking = _lacks(card, data)
        runs = f"[yellow]{lacking}[/]" if lacking else "when named" if card.on_request else "yes"
        table.add_row(card.name, runs, card.family, escape(card.stands_in_for))
    console.print(table)
    told = f"your own cards go into {data / 'systems'}: see docs/adding-a-system.md"
    console.print(told, markup=False, highlight=False, soft_wrap=True)
    tell_skipped(errors)
