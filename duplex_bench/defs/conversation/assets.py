"""Assets of the conversation track up to its items."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.stages import code_versions, conversation

TRACK = "conversation"


def _key(name: str) -> dg.AssetKey:
    return dg.AssetKey([TRACK, name])


def _in(*names: str) -> dict[str, dg.AssetIn]:
    return {name: dg.AssetIn(_key(name)) for name in names}


@dg.observable_source_asset(
    key=_key("sessions"),
    group_name=TRACK,
    description="The corpus of two-person recordings. Observing it generates the synthetic one if the profile asks.",
)
def sessions(workspace: WorkspaceResource) -> dg.ObserveResult:
    """Say which corpus is there, by content."""
    corpus = conversation.observe_sessions(workspace.open())
    return dg.ObserveResult(data_version=dg.DataVersion(corpus.digest), metadata=dict(corpus.counts))


@dg.observable_source_asset(
    key=_key("reviews"),
    group_name=TRACK,
    description="Approved label reviews, one per session; none is as good as some, the engine's labels then stand.",
)
def reviews(workspace: WorkspaceResource) -> dg.ObserveResult:
    """Say which reviews are approved, by content."""
    approved = conversation.observe_reviews(workspace.open())
    return dg.ObserveResult(data_version=dg.DataVersion(approved.digest), metadata=dict(approved.counts))


@dg.asset(
    key=_key("lively_sessions"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "lively_sessions"),
    kinds={"table"},
    deps=[_key("sessions")],
    description="Sessions with their six traits of liveliness; the lively ones are kept.",
)
def lively_sessions(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Load, score, select."""
    return reported(conversation.lively_sessions(workspace.open()))


@dg.asset(
    key=_key("gap_fill"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "gap_fill"),
    kinds={"audio"},
    ins=_in("lively_sessions"),
    description="Words for voiced stretches that the corpus left without any.",
)
def gap_fill(workspace: WorkspaceResource, lively_sessions: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Transcribe the gaps."""
    return reported(conversation.gap_fill(workspace.open(), lively_sessions))


@dg.asset(
    key=_key("engine_labels"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "engine_labels"),
    kinds={"table"},
    ins=_in("lively_sessions", "gap_fill"),
    description="Turns, pauses, backchannels, overlaps and failed takes, each with its rule and confidence.",
)
def engine_labels(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, gap_fill: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Label every session."""
    return reported(conversation.engine_labels(workspace.open(), lively_sessions, gap_fill))


@dg.asset(
    key=_key("review_flags"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "review_flags"),
    kinds={"table"},
    ins=_in("engine_labels", "gap_fill", "lively_sessions"),
    description="Labels that a person should look at first, and why.",
)
def review_flags(
    workspace: WorkspaceResource, engine_labels: pl.DataFrame, gap_fill: pl.DataFrame, lively_sessions: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Flag doubtful labels."""
    return reported(conversation.review_flags(workspace.open(), engine_labels, gap_fill, lively_sessions))


@dg.asset(
    key=_key("labels"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "labels"),
    kinds={"table"},
    ins=_in("engine_labels"),
    deps=[_key("reviews")],
    description="The labels in force: a person's where a session is approved, else the engine's.",
)
def labels(workspace: WorkspaceResource, engine_labels: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Put approved reviews in force."""
    return reported(conversation.labels(workspace.open(), engine_labels))


@dg.asset(
    key=_key("candidates"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "candidates"),
    kinds={"table"},
    ins=_in("lively_sessions", "gap_fill", "labels"),
    description="Every pause and turn end, with the rule that turned it down or its rank.",
)
def candidates(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, gap_fill: pl.DataFrame, labels: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Gate and rank every boundary."""
    return reported(conversation.candidates(workspace.open(), lively_sessions, gap_fill, labels))


@dg.asset(
    key=_key("points"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "points"),
    kinds={"table"},
    ins=_in("candidates"),
    description="The points of this run, drawn by hash, so that an edit moves only neighbours.",
)
def points(workspace: WorkspaceResource, candidates: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Draw the points."""
    return reported(conversation.points(workspace.open(), candidates))


@dg.asset(
    key=_key("items"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "items"),
    kinds={"table"},
    ins=_in("lively_sessions", "gap_fill", "labels", "points"),
    description="What systems are run on: the history and live stream they hear, and the sealed reference.",
)
def items(
    workspace: WorkspaceResource,
    lively_sessions: pl.DataFrame,
    gap_fill: pl.DataFrame,
    labels: pl.DataFrame,
    points: pl.DataFrame,
) -> dg.Output[pl.DataFrame]:
    """Cut stimulus and reference of every point."""
    return reported(conversation.items(workspace.open(), lively_sessions, gap_fill, labels, points))


@dg.asset(
    key=_key("bounds"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "bounds"),
    kinds={"table"},
    ins=_in("items"),
    description="Floor and ceiling of similarity: another reply of the conversation, the person's own through ASR.",
)
def bounds(workspace: WorkspaceResource, items: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Measure floor and ceiling."""
    return reported(conversation.bounds(workspace.open(), items))


# Stages of the recall probes: in the graph so that a user sees where they belong, not materialised by anything yet.
PLANNED = [
    dg.AssetSpec(
        _key(name), deps=[_key(dep) for dep in deps], group_name=TRACK, description=description, kinds={"planned"}
    )
    for name, deps, description in (
        ("identity_prompts", ("lively_sessions",), "Not built yet: who each speaker is, written once per speaker."),
        ("recall_facts", ("lively_sessions", "labels"), "Not built yet: facts stated early in a conversation."),
        ("recall_questions", ("recall_facts",), "Not built yet: the spoken question about each fact."),
        ("question_speech", ("recall_questions",), "Not built yet: the question in the user's cloned voice."),
    )
]
