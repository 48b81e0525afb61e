"""Checks of the evaluation chain: what adds up, what is complete, which systems are out of date."""

from typing import Any

import dagster as dg
import polars as pl

from duplex_bench.defs.partitions import systems
from duplex_bench.lib.io_manager import WHOLE_ONLY
from duplex_bench.lib.metadata import passed_or_not
from duplex_bench.records.items import Track
from duplex_bench.stages import checks


def evaluation_checks(track: Track) -> list[dg.AssetChecksDefinition]:
    """Checks of one track's rollouts, judgements, measurements and statistics."""

    def key(name: str) -> dg.AssetKey:
        return dg.AssetKey([track, name])

    def partitioned(name: str, *more: str) -> dict[str, Any]:
        return {
            "asset": key(name),
            "partitions_def": systems,
            "additional_ins": {other: dg.AssetIn(key(other)) for other in more},
        }

    @dg.asset_check(**partitioned("rollouts", "items"), description="Every item has a rollout, and none was lost.")
    def rollouts_complete(rollouts: pl.DataFrame, items: pl.DataFrame) -> dg.AssetCheckResult:
        found = checks.rollouts_complete(rollouts, items)
        return passed_or_not(found.passed, found.numbers)

    @dg.asset_check(**partitioned("judgements"), description="Few questions were left without a verdict.")
    def verdict_share(judgements: pl.DataFrame) -> dg.AssetCheckResult:
        found = checks.verdict_share(judgements)
        return passed_or_not(found.passed, found.numbers, severity="WARN")

    @dg.asset_check(
        **partitioned("measurements", "items"), description="Every window has every metric once: a value or a reason."
    )
    def measurements_add_up(measurements: pl.DataFrame, items: pl.DataFrame) -> dg.AssetCheckResult:
        found = checks.measurements_add_up(track, measurements, items)
        return passed_or_not(found.passed, found.numbers)

    @dg.asset_check(
        asset=key("statistics"), description="Estimates lie inside their intervals, n scored within n expected."
    )
    def estimates_sane(statistics: pl.DataFrame) -> dg.AssetCheckResult:
        found = checks.estimates_sane(statistics)
        return passed_or_not(found.passed, found.numbers)

    @dg.asset_check(
        asset=key("items"),
        # A system whose table is damaged is run again after this; it would not be, if this ended the run.
        additional_ins={"rollouts": dg.AssetIn(key("rollouts"), metadata={WHOLE_ONLY: True})},
        description="Which systems were run on other stimuli than the items now hold: Dagster does not show this.",
    )
    def systems_up_to_date(items: pl.DataFrame, rollouts: dict[str, pl.DataFrame]) -> dg.AssetCheckResult:
        found = checks.systems_up_to_date(items, rollouts)
        return passed_or_not(found.passed, found.numbers, severity="WARN")

    return [rollouts_complete, verdict_share, measurements_add_up, estimates_sane, systems_up_to_date]


CHECKS = [*evaluation_checks("multiparty"), *evaluation_checks("conversation")]
