"""Assets of the conversation track up to its items."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.lib.stage_asset import key_of, stage_asset
from duplex_bench.records.items import Track
from duplex_bench.stages import conversation, conversation_inventory, regeneration

TRACK: Track = "conversation"


@dg.observable_source_asset(
    key=key_of(TRACK, "sessions"),
    group_name=TRACK,
    description="The corpus of two-person recordings. Observing it generates the synthetic one if the profile asks.",
)
def sessions(workspace: WorkspaceResource) -> dg.ObserveResult:
    """Say which corpus is there, by content."""
    corpus = conversation.observe_sessions(workspace.open())
    return dg.ObserveResult(data_version=dg.DataVersion(corpus.digest), metadata=dict(corpus.counts))


@dg.observable_source_asset(
    key=key_of(TRACK, "reviews"),
    group_name=TRACK,
    description="Approved label reviews, one per session; none is as good as some, the engine's labels then stand.",
)
def reviews(workspace: WorkspaceResource) -> dg.ObserveResult:
    """Say which reviews are approved, by content."""
    approved = conversation.observe_reviews(workspace.open())
    return dg.ObserveResult(data_version=dg.DataVersion(approved.digest), metadata=dict(approved.counts))


@stage_asset(
    TRACK,
    "lively_sessions",
    "Sessions with their six traits of liveliness; the lively ones are kept.",
    kind="table",
    after=("sessions",),
)
def lively_sessions(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Load, score, select."""
    return reported(conversation.lively_sessions(workspace.open()))


@stage_asset(
    TRACK,
    "gap_fill",
    "Words for voiced stretches that the corpus left without any.",
    kind="audio",
    ins=("lively_sessions",),
)
def gap_fill(workspace: WorkspaceResource, lively_sessions: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Transcribe the gaps."""
    return reported(conversation.gap_fill(workspace.open(), lively_sessions))


@stage_asset(
    TRACK,
    "engine_labels",
    "Turns, pauses, backchannels, overlaps and failed takes, each with its rule and confidence.",
    kind="table",
    ins=("lively_sessions", "gap_fill"),
)
def engine_labels(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, gap_fill: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Label every session."""
    return reported(conversation.engine_labels(workspace.open(), lively_sessions, gap_fill))


@stage_asset(
    TRACK,
    "review_flags",
    "Labels that a person should look at first, and why.",
    kind="table",
    ins=("engine_labels", "gap_fill", "lively_sessions"),
)
def review_flags(
    workspace: WorkspaceResource, engine_labels: pl.DataFrame, gap_fill: pl.DataFrame, lively_sessions: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Flag doubtful labels."""
    return reported(conversation.review_flags(workspace.open(), engine_labels, gap_fill, lively_sessions))


@stage_asset(
    TRACK,
    "labels",
    "The labels in force: a person's where a session is approved, else the engine's.",
    kind="table",
    ins=("engine_labels",),
    after=("reviews",),
)
def labels(workspace: WorkspaceResource, engine_labels: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Put approved reviews in force."""
    return reported(conversation.labels(workspace.open(), engine_labels))


@stage_asset(
    TRACK,
    "candidates",
    "Every pause and turn end, with the rule that turned it down or its rank.",
    kind="table",
    ins=("lively_sessions", "gap_fill", "labels"),
)
def candidates(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, gap_fill: pl.DataFrame, labels: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Gate and rank every boundary."""
    return reported(conversation.candidates(workspace.open(), lively_sessions, gap_fill, labels))


@stage_asset(
    TRACK,
    "points",
    "The points of this run, drawn by hash, so that an edit moves only neighbours.",
    kind="table",
    ins=("candidates",),
)
def points(workspace: WorkspaceResource, candidates: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Draw the points."""
    return reported(conversation.points(workspace.open(), candidates))


@stage_asset(
    TRACK,
    "items",
    "What systems are run on: the history and live stream they hear, and the sealed reference.",
    kind="table",
    ins=("lively_sessions", "gap_fill", "labels", "points"),
)
def items(
    workspace: WorkspaceResource,
    lively_sessions: pl.DataFrame,
    gap_fill: pl.DataFrame,
    labels: pl.DataFrame,
    points: pl.DataFrame,
) -> dg.Output[pl.DataFrame]:
    """Cut stimulus and reference of every point."""
    opened = workspace.open()
    made = conversation.items(opened, lively_sessions, gap_fill, labels, points)
    return reported(regeneration.with_changes(opened, made))


@stage_asset(
    TRACK,
    "bounds",
    "Floor and ceiling of similarity: another reply of the conversation, the person's own through ASR.",
    kind="table",
    ins=("items",),
)
def bounds(workspace: WorkspaceResource, items: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Measure floor and ceiling."""
    return reported(conversation.bounds(workspace.open(), items))


@stage_asset(
    TRACK,
    "inventory",
    "What corpus, labels and funnel hold; agreement with reviewed labels where there are any.",
    kind="table",
    ins=("lively_sessions", "gap_fill", "engine_labels", "labels", "candidates", "points"),
)
def inventory(workspace: WorkspaceResource, **stored: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Count sessions, labels and boundaries."""
    names = ("lively_sessions", "gap_fill", "engine_labels", "labels", "candidates", "points")
    return reported(conversation_inventory.inventory(workspace.open(), *(stored[name] for name in names)))


@stage_asset(
    TRACK,
    "corpus_figures",
    "Selection by liveliness and the distributions of labels, drawn.",
    kind="figure",
    ins=("lively_sessions", "labels"),
)
def corpus_figures(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, labels: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Draw the corpus."""
    return reported(conversation_inventory.corpus_figures(workspace.open(), lively_sessions, labels))


# Stages of the recall probes: in the graph so that a user sees where they belong, not materialised by anything yet.
PLANNED = [
    dg.AssetSpec(
        key_of(TRACK, name),
        deps=[key_of(TRACK, dep) for dep in deps],
        group_name=TRACK,
        description=description,
        kinds={"planned"},
    )
    for name, deps, description in (
        ("identity_prompts", ("lively_sessions",), "Not built yet: who each speaker is, written once per speaker."),
        ("recall_facts", ("lively_sessions", "labels"), "Not built yet: facts stated early in a conversation."),
        ("recall_questions", ("recall_facts",), "Not built yet: the spoken question about each fact."),
        ("question_speech", ("recall_questions",), "Not built yet: the question in the user's cloned voice."),
    )
]
