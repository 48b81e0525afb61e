"""``systems/cards``: editing a card marks that system's rollouts stale, and no other's."""

import os
from pathlib import Path

import dagster as dg
import polars as pl

from duplex_bench.defs.partitions import CARDS, DATA_FOLDER, systems
from duplex_bench.lib.metadata import reported
from duplex_bench.stages.cards import card_named, card_table
from duplex_bench.systems.card import SystemCard


@dg.asset(
    key=["systems", "cards"],
    group_name="systems",
    partitions_def=systems,
    code_version="1",
    kinds={"toml"},
    description="The card of a system: what is run, with which settings. One partition per card.",
)
def cards(context: dg.AssetExecutionContext) -> dg.Output[pl.DataFrame]:
    """Read one card."""
    return reported(card_table(card_here(context.partition_key)))


def card_here(name: str) -> SystemCard:
    """The card of a partition, as this machine has it.

    Raises:
        ValueError: it is on the machine that handed the run over, and not, or not readable, on this one.
    """
    if name in CARDS:
        return CARDS[name]
    folder = Path(DATA_FOLDER) / "systems"
    try:
        return card_named(folder, name)
    except ValueError as error:
        where = f"{folder} on {os.uname().nodename}"
        raise ValueError(f"{where}: {error}. Every worker must see the same cards (docs/cluster.md)") from None
