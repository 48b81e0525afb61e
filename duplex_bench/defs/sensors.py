"""Sensors, shipped stopped: a benchmark does nothing by itself until a person says so."""

import dagster as dg

from duplex_bench.defs.jobs import regenerate_points
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.stages import conversation

# Dagster's tag of an observation that carries a data version.
DATA_VERSION_TAG = "dagster/data_version"
_REVIEWS = dg.AssetKey(["conversation", "reviews"])


@dg.sensor(
    job=regenerate_points,
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="When an approved label review or a rejected window appears or changes: observe the reviews and make "
    "labels to items anew.",
)
def label_review_sensor(
    context: dg.SensorEvaluationContext, workspace: WorkspaceResource
) -> dg.SensorResult | dg.SkipReason:
    """Compare what the reviews say with what they said when this sensor last acted."""
    try:
        found = conversation.observe_reviews(workspace.open())
    except ValueError as error:
        return dg.SkipReason(f"a review cannot be read: {error}")
    if found.digest == context.cursor:
        return dg.SkipReason(f"{found.counts['approved']} approved reviews, as before")
    if context.cursor is None and not (found.counts["approved"] or found.counts["windows_rejected"]):
        # The first look at a folder without reviews: the engine's labels are in force already.
        return dg.SensorResult(cursor=found.digest, skip_reason=dg.SkipReason("no approved review yet"))
    observation = dg.AssetObservation(_REVIEWS, metadata=dict(found.counts), tags={DATA_VERSION_TAG: found.digest})
    request = dg.RunRequest(run_key=f"reviews-{found.digest}", tags={"duplex_bench/reviews": found.digest[:16]})
    return dg.SensorResult(run_requests=[request], asset_events=[observation], cursor=found.digest)


SENSORS = [label_review_sensor]
