"""Checks of the multiparty track's construction."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import passed_or_not
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.stages.multiparty import scene_faults
from duplex_bench.stages.multiparty_construction import failed_checks


@dg.asset_check(
    asset=dg.AssetKey(["multiparty", "scenes"]),
    description="No clipping, gaps as scheduled, turns in order, no human speech in answer windows.",
)
def scenes_as_planned(scenes: pl.DataFrame) -> dg.AssetCheckResult:
    """Count and name the faults that were found when the scenes were built."""
    faults = scene_faults(scenes)
    return passed_or_not(not faults, {"scenes": scenes.height, "faults": len(faults), "first": (*faults, "none")[0]})


@dg.asset_check(
    asset=dg.AssetKey(["multiparty", "construction"]),
    description="Words of every voice are recognised, boundaries agree with the detector, nothing clips.",
)
def construction_within_limits(workspace: WorkspaceResource, construction: pl.DataFrame) -> dg.AssetCheckResult:
    """Name the construction checks that did not pass."""
    failed = failed_checks(workspace.open(), construction)
    names = ", ".join(str(row["check"]) for row in failed) or "none"
    return passed_or_not(not failed, {"failed": len(failed), "which": names}, severity="WARN")


CHECKS = [scenes_as_planned, construction_within_limits]
