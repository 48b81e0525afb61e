"""Checks of the cards."""

import dagster as dg

from duplex_bench.defs.partitions import CARD_ERRORS, CARDS
from duplex_bench.lib.metadata import passed_or_not


@dg.asset_check(asset=dg.AssetKey(["systems", "cards"]), description="Every card in every folder could be read.")
def cards_valid() -> dg.AssetCheckResult:
    """Cards that could not be read are skipped when the code location loads, and named here."""
    told = "\n".join(f"- {error.told}" for error in CARD_ERRORS)
    return passed_or_not(
        not CARD_ERRORS, {"cards": len(CARDS), "unreadable": len(CARD_ERRORS), "errors": told or "none"}
    )
