"""``duplex-bench plan``: what a run would do, before it does it."""

from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from duplex_bench.cli.console import console
from duplex_bench.cli.run import Chosen, choose
from duplex_bench.stages.planning import Estimate, detectable_difference, estimate
from duplex_bench.systems.adapters.prices import usd_per_minute


def show_plan(root: Path, data: Path, profile: str, track: str, systems: Sequence[str]) -> None:
    """Items, audio, what is cached, time and cost as a range, and the smallest difference that could be seen."""
    chosen = choose(root, data, profile, track, systems)
    total_low = total_high = 0.0
    for name in chosen.tracks:
        table = Table("system", "items", "cached", "to run", "audio min", "compute min", title=f"{profile}: {name}")
        for system, card in chosen.cards.items():
            found: Estimate = estimate(chosen.workspace, name, card)
            total_low += found.compute_low_s
            total_high += found.compute_high_s
            table.add_row(
                system,
                str(found.items),
                str(found.cached),
                str(found.items - found.cached),
                f"{found.audio_minutes:.1f}",
                f"{found.compute_low_s / 60:.1f} to {found.compute_high_s / 60:.1f}",
            )
        console.print(table)
    console.print(_cost(chosen), highlight=False)
    console.print(f"compute in all: {total_low / 60:.1f} to {total_high / 60:.1f} minutes of one core", highlight=False)
    for name in chosen.tracks:
        console.print(detectable_difference(chosen.workspace, name), highlight=False)


def _cost(chosen: Chosen) -> str:
    """What the vendors of the hosted systems would be paid, as a range."""
    low = high = 0.0
    unpriced: list[str] = []
    hosted = {name: card for name, card in chosen.cards.items() if card.provider}
    for name, card in hosted.items():
        found = [estimate(chosen.workspace, track, card) for track in chosen.tracks]
        minutes = sum(one.audio_minutes * (one.items - one.cached) / one.items for one in found if one.items)
        rates = usd_per_minute(card.model_id)
        if rates is None:
            unpriced.append(name)
        else:
            low, high = low + minutes * rates[0], high + minutes * rates[1]
    if not hosted:
        return "cost: nothing, every system chosen runs on this machine"
    note = f"; no known price: {', '.join(unpriced)}" if unpriced else ""
    return f"cost of {', '.join(hosted)}: about {low:.2f} to {high:.2f} US dollars{note}"
