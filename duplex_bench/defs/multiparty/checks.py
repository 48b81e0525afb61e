"""Checks of the multiparty track's construction."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import passed_or_not
from duplex_bench.stages.multiparty import scene_faults


@dg.asset_check(
    asset=dg.AssetKey(["multiparty", "scenes"]),
    description="No clipping, gaps as scheduled, turns in order, no human speech in answer windows.",
)
def scenes_as_planned(scenes: pl.DataFrame) -> dg.AssetCheckResult:
    """Count and name the faults that were found when the scenes were built."""
    faults = scene_faults(scenes)
    return passed_or_not(not faults, {"scenes": scenes.height, "faults": len(faults), "first": (*faults, "none")[0]})


CHECKS = [scenes_as_planned]
