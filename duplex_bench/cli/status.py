"""``duplex-bench status`` and ``systems``: what has been run, what is behind, what can be run."""

import os
from collections.abc import Sequence
from pathlib import Path

import polars as pl
from rich.table import Column, Table

from duplex_bench.cli.console import console, error_console
from duplex_bench.cli.run import TRACKS, choose
from duplex_bench.cli.under_way import show_under_way
from duplex_bench.records.items import Track
from duplex_bench.records.outcome import RETRIED_OUTCOMES
from duplex_bench.stages import checks
from duplex_bench.stages.cards import readable_cards
from duplex_bench.stages.stored_run import stored
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.card import SystemCard, missing_env
from duplex_bench.systems.environments import not_set_up


def show_status(root: Path, data: Path, profile: str, limit: int | None = None) -> None:
    """One row per track and system: rollouts by outcome, scores, and whether the stimuli are those of today."""
    chosen = choose(root, data, profile, "all", [], limit)
    workspace = chosen.workspace
    show_under_way(workspace.store)
    for track in TRACKS:
        items = stored(workspace, track, "items")
        if items is None:
            console.print(f"[yellow]{track}:[/] no items yet: run `duplex-bench run --profile {profile}`")
            continue
        table = Table(
            "system", "rollouts", "lost", "scores", "reasons", "state", title=f"{track}: {items.height} items"
        )
        for system in chosen.cards:
            table.add_row(system, *_row(workspace, track, system, items))
        console.print(table)
    report = workspace.report_folder / "index.html"
    console.print(f"report: {report if report.exists() else 'not built yet'}", highlight=False)


def _row(workspace: Workspace, track: Track, system: str, items: pl.DataFrame) -> Sequence[str]:
    rollouts = stored(workspace, track, "rollouts", system)
    measurements = stored(workspace, track, "measurements", system)
    if rollouts is None:
        return ("0", "", "", "", "[yellow]not run[/]")
    lost = rollouts.filter(pl.col("outcome").is_in([str(outcome) for outcome in RETRIED_OUTCOMES])).height
    current = checks.systems_up_to_date(items, {system: rollouts}).passed
    state = "[green]up to date[/]" if current else "[yellow]items changed: run it again[/]"
    if measurements is None:
        return (str(rollouts.height), str(lost), "", "", "[yellow]not scored[/]")
    reasons = measurements["value"].null_count()
    return (str(rollouts.height), str(lost), str(measurements.height - reasons), str(reasons), state)


def _runs_here(card: SystemCard, data: Path) -> str:
    missing = missing_env(card, os.environ)
    if missing:
        return f"[yellow]set {' and '.join(missing)}[/]"
    if not_set_up(card, data / "cache") is not None:
        return f"[yellow]systems setup {card.name}[/]"
    return "when named" if card.on_request else "yes"


def list_systems(data: Path) -> None:
    """Cards that can be run here, and those that cannot be read."""
    cards, errors = readable_cards(data / "systems")
    table = Table(Column("system", no_wrap=True), "runs here", "family", "stands in for")
    for card in cards.values():
        runs = _runs_here(card, data)
        table.add_row(card.name, runs, card.family, card.stands_in_for)
    console.print(table)
    console.print(f"your own cards go into {data / 'systems'}: see docs/adding-a-system.md", highlight=False)
    for error in errors:
        error_console.print(f"[red]skipped[/] {error.file}: {error.message}. {error.remedy}", highlight=False)
