"""Checks of the conversation track's labels and points."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import passed_or_not
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.stages import checks, conversation


@dg.asset_check(
    asset=dg.AssetKey(["conversation", "labels"]),
    description="No two turns of one speaker overlap, and every pause lies inside a turn.",
)
def label_invariants(labels: pl.DataFrame) -> dg.AssetCheckResult:
    """Count labels that break an invariant."""
    found = checks.label_invariants(labels)
    return passed_or_not(found.passed, found.numbers)


@dg.asset_check(
    asset=dg.AssetKey(["conversation", "points"]),
    additional_ins={"candidates": dg.AssetIn(dg.AssetKey(["conversation", "candidates"]))},
    description="Every candidate is a point or has the rule that turned it down; point ids are unique.",
)
def funnel_adds_up(workspace: WorkspaceResource, points: pl.DataFrame, candidates: pl.DataFrame) -> dg.AssetCheckResult:
    """Add the funnel up."""
    found = checks.funnel_adds_up(conversation.funnel_frame(workspace.open(), candidates), points)
    return passed_or_not(found.passed, found.numbers)


CHECKS = [label_invariants, funnel_adds_up]
