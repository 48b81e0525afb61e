"""Assets of the conversation track up to its items."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.lib.stage_asset import key_of, stage_asset
from duplex_bench.records.items import Track
from duplex_bench.stages import conversation, conversation_inventory, recall, recall_speech, regeneration
from duplex_bench.stages import gate_calibration as calibration

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
    description="Approved label reviews, one per session, and windows that two people rejected. None is as good as "
    "some: the engine's labels and the draw then stand.",
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
    after=("reviews",),
)
def points(workspace: WorkspaceResource, candidates: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Draw the points."""
    return reported(conversation.points(workspace.open(), candidates))


@stage_asset(
    TRACK,
    "identity_prompts",
    "Who each speaker is, for the system that plays them: written by a text model, or a template.",
    kind="table",
    ins=("lively_sessions", "gap_fill", "labels"),
)
def identity_prompts(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, gap_fill: pl.DataFrame, labels: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """One prompt a speaker."""
    return reported(recall.identity_prompts(workspace.open(), lively_sessions, gap_fill, labels))


@stage_asset(
    TRACK,
    "recall_facts",
    "Facts stated early in a conversation: found by a text model, or planted in synthetic sessions.",
    kind="table",
    ins=("lively_sessions", "gap_fill", "labels"),
)
def recall_facts(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, gap_fill: pl.DataFrame, labels: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Find what can be asked about."""
    return reported(recall.recall_facts(workspace.open(), lively_sessions, gap_fill, labels))


@stage_asset(
    TRACK,
    "recall_questions",
    "The question about each fact, or the rule that dropped it; and one general question a conversation.",
    kind="table",
    ins=("lively_sessions", "labels", "recall_facts", "identity_prompts"),
)
def recall_questions(workspace: WorkspaceResource, **stored: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Check every question."""
    names = ("lively_sessions", "labels", "recall_facts", "identity_prompts")
    return reported(recall.recall_questions(workspace.open(), *(stored[name] for name in names)))


@stage_asset(
    TRACK,
    "question_speech",
    "The questions as sound, in the voice of the person who asks: a clone, or an embedded voice.",
    kind="audio",
    ins=("lively_sessions", "recall_questions"),
)
def question_speech(
    workspace: WorkspaceResource, lively_sessions: pl.DataFrame, recall_questions: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Speak the questions."""
    return reported(recall_speech.question_speech(workspace.open(), lively_sessions, recall_questions))


@stage_asset(
    TRACK,
    "items",
    "What systems are run on: the history and live stream they hear, and the sealed reference.",
    kind="table",
    ins=("lively_sessions", "gap_fill", "labels", "points", "identity_prompts", "recall_questions", "question_speech"),
)
def items(workspace: WorkspaceResource, **stored: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Cut stimulus and reference of every point and every probe."""
    opened = workspace.open()
    sessions, filled, labels = (stored[name] for name in ("lively_sessions", "gap_fill", "labels"))
    identities = stored["identity_prompts"]
    probes = recall.recall_items(
        opened, sessions, filled, labels, identities, stored["recall_questions"], stored["question_speech"]
    )
    told = recall.identity_of(identities)
    made = conversation.items(opened, sessions, filled, labels, stored["points"], told, probes)
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


@stage_asset(
    TRACK,
    "gate_calibration",
    "The energy gate against words, per system: sweep, Otsu, AUC, controls. Off unless the profile asks for it.",
    kind="table",
    ins=("items", "rollouts"),
)
def gate_calibration(
    workspace: WorkspaceResource, items: pl.DataFrame, rollouts: dict[str, pl.DataFrame]
) -> dg.Output[pl.DataFrame]:
    """Label stored rollouts and sweep the gate."""
    return reported(calibration.gate_calibration(workspace.open(), items, rollouts))
