"""``systems/cards``: editing a card marks that system's rollouts stale, and no other's."""

import dagster as dg
import polars as pl

from duplex_bench.defs.partitions import CARDS, systems
from duplex_bench.lib.metadata import reported
from duplex_bench.stages.cards import card_table


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
    return reported(card_table(CARDS[context.partition_key]))
