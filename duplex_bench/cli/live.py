"""``duplex-bench doctor --live``: one spoken question to one system, what came back, and what it cost."""

import os
from pathlib import Path

from duplex_bench.cli.console import console
from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.pacing import PacingRule
from duplex_bench.stages.cards import card_named
from duplex_bench.stages.conformance import QUESTION
from duplex_bench.stages.live_check import LiveCheck, expected_usd, live_check
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.systems.card import SystemCard, missing_env


def try_live(data: Path, profile: str, name: str) -> bool:
    """Ask, and print what came; True if it answered in sound.

    Raises:
        ValueError: No such system, it lacks a key, or it could not be made.
    """
    workspace = open_workspace(profile, data)
    card = card_named(workspace.systems_folder, name)
    missing = missing_env(card, os.environ)
    if missing:
        raise ValueError(f"system {name} cannot run here: set {' and '.join(missing)} in the environment")
    console.print(f"asking {name}: {QUESTION} ({_expected(card)})", highlight=False, soft_wrap=True)
    found = live_check(workspace, card)
    answered = found.outcome is Outcome.COMPLETED
    mark = "[green]ok  [/]" if answered else "[red]no  [/]"
    console.print(f"{mark} {name}: {_told(found)}", highlight=False, soft_wrap=True)
    for line in _facts(found, card):
        console.print(f"     {line}", highlight=False, soft_wrap=True)
    return answered


def _expected(card: SystemCard) -> str:
    expected = expected_usd(card)
    if expected is None:
        return f"paid by {card.provider}'s prices, which are not in our table"
    return f"about {expected[0]:.4f} to {expected[1]:.4f} US dollars" if card.provider else "costs nothing"


def _told(found: LiveCheck) -> str:
    if found.outcome is not Outcome.COMPLETED:
        return f"{found.outcome.value}: {found.reason}"
    latency = "" if found.latency_s is None else f" {found.latency_s:.2f} s after the question"
    return f"answered{latency}" + (f": {found.words}" if found.words else "")


def _facts(found: LiveCheck, card: SystemCard) -> list[str]:
    lines = []
    if found.model_echo:
        same = found.model_echo == card.model_id or not card.provider
        lines.append(f"it says that it runs {found.model_echo}" + ("" if same else f"; the card says {card.model_id}"))
    if found.open_s is not None:
        trip = "" if found.round_trip_s is None else f", {1000 * found.round_trip_s:.0f} ms to it and back"
        lines.append(f"ready after {found.open_s:.2f} s{trip}")
    if found.late_p99_ms is not None:
        allowed = PacingRule().p99_ms
        late = "" if found.late_p99_ms <= allowed else f": a run allows {allowed:g}, and would call it invalid"
        lines.append(f"frames sent {found.late_p99_ms:.1f} ms late at the 99th percentile{late}")
    if card.provider:
        priced = f" by the prices of {found.priced_on}" if found.priced_on else ""
        cost = "not known" if found.usd is None else f"{found.usd:.4f} US dollars{priced}"
        lines.append(f"cost: {cost}")
    return lines
