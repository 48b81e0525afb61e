"""``duplex-bench plan``: what a run would do, before it does it."""

import os
from collections.abc import Sequence
from pathlib import Path

from rich.table import Table

from duplex_bench.cli.console import console
from duplex_bench.cli.run import Chosen, choose
from duplex_bench.stages.planning import Estimate, detectable_difference, estimate, wall_s
from duplex_bench.stages.text_costs import spent_usd, text_costs
from duplex_bench.systems.adapters.prices import usd_per_minute, usd_per_text_item


def show_plan(
    root: Path, data: Path, profile: str, track: str, systems: Sequence[str], limit: int | None = None
) -> None:
    """Items, audio, what is cached, time and cost as a range, and the smallest difference that could be seen."""
    chosen = choose(root, data, profile, track, systems, limit, is_plan=True)
    processes = chosen.workspace.profile.processes or os.cpu_count() or 1
    total_low = total_high = wall_low = wall_high = 0.0
    for name in chosen.tracks:
        table = Table("system", "rollouts", "cached", "to run", "audio min", "compute min", title=f"{profile}: {name}")
        for system, card in chosen.cards.items():
            found: Estimate = estimate(chosen.workspace, name, card)
            total_low += found.compute_low_s
            total_high += found.compute_high_s
            low, high = wall_s(found, card, processes)
            wall_low, wall_high = wall_low + low, wall_high + high
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
    for line in _text_models(chosen):
        console.print(line, highlight=False)
    console.print(f"compute in all: {total_low / 60:.1f} to {total_high / 60:.1f} minutes of one core", highlight=False)
    console.print(
        f"by the clock: {wall_low / 60:.1f} to {wall_high / 60:.1f} minutes, one system after another, {processes} "
        "processes, sessions in real time as many at once as their cards allow; judges that are asked not counted",
        highlight=False,
        soft_wrap=True,
    )
    for name in chosen.tracks:
        console.print(detectable_difference(chosen.workspace, name), highlight=False)


def _text_models(chosen: Chosen) -> list[str]:
    """What the text models that judge, write or read would be paid, as ranges; nothing where all is embedded."""
    lines: list[str] = []
    for cost in text_costs(chosen.workspace, list(chosen.cards)):
        told = f"{cost.role} {cost.model}"
        if cost.plan is not None:
            plan = cost.plan
            told += f": up to {plan.requests - plan.cached} calls ({plan.cached} cached)"
            told += f", {plan.input_tokens_low:,} to {plan.input_tokens_high:,} tokens in"
            told += f", {plan.output_tokens_low:,} to {plan.output_tokens_high:,} out"
            if plan.usd_low is not None and plan.usd_high is not None:
                told += f", {plan.usd_low:.2f} to {plan.usd_high:.2f} US dollars"
        told += f"; {cost.note}" if cost.note else ""
        lines.append(told if cost.has_key else f"{told}; its key is not in the environment")
    budget = chosen.workspace.profile.text_calls.budget_usd
    if lines and budget is not None:
        lines.append(f"text models: {spent_usd(chosen.workspace):.2f} of {budget:.2f} US dollars spent or set aside")
    return lines


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
            texts = sum(one.text_items for one in found) * usd_per_text_item(card.model_id)
            low, high = low + minutes * rates[0] + texts, high + minutes * rates[1] + texts
    if not hosted:
        return "cost: nothing, every system chosen runs on this machine"
    note = f"; no known price: {', '.join(unpriced)}" if unpriced else ""
    return f"cost of {', '.join(hosted)}: about {low:.2f} to {high:.2f} US dollars{note}"
