"""Assets of the multiparty track up to its items."""

from collections.abc import Iterator

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.lib.stage_asset import key_of, stage_asset, stage_out
from duplex_bench.lib.without_keys import without_keys
from duplex_bench.records.items import Track
from duplex_bench.stages import multiparty, multiparty_construction, multiparty_inventory
from duplex_bench.stages import transcript_reference as reference

TRACK: Track = "multiparty"


@stage_asset(
    TRACK,
    "scenarios",
    "Scenarios: who says what to whom, the request, and the answer that follows from what was said.",
    kind="toml",
)
def scenarios(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Draw scenarios from the grammar, or read the user's own."""
    return reported(multiparty.scenarios(workspace.open()))


@stage_asset(
    TRACK,
    "pairs",
    "Each scenario in an explicit and an implicit form of the same request, validated.",
    kind="table",
    ins=("scenarios",),
)
def pairs(workspace: WorkspaceResource, scenarios: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Pair the two forms and check every rule."""
    return reported(multiparty.pairs(workspace.open(), scenarios))


@stage_asset(
    TRACK,
    "utterance_speech",
    "One clip per distinct utterance and voice, shared by both forms.",
    kind="audio",
    ins=("pairs",),
)
def utterance_speech(workspace: WorkspaceResource, pairs: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Speak every utterance."""
    return reported(multiparty.utterance_speech(workspace.open(), pairs))


@stage_asset(
    TRACK,
    "scenes",
    "Continuous audio of every script, with the boundaries it was built from.",
    kind="audio",
    ins=("pairs", "utterance_speech"),
)
def scenes(
    workspace: WorkspaceResource, pairs: pl.DataFrame, utterance_speech: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Place the clips on one timeline."""
    return reported(multiparty.scenes(workspace.open(), pairs, utterance_speech))


@stage_asset(
    TRACK,
    "items",
    "What systems are run on: the stimulus they hear, and the sealed reference.",
    kind="table",
    ins=("pairs", "scenes"),
)
def items(workspace: WorkspaceResource, pairs: pl.DataFrame, scenes: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Split every scene into stimulus and reference."""
    return reported(multiparty.items(workspace.open(), pairs, scenes))


@stage_asset(
    TRACK,
    "inventory",
    "What the draw holds: composition against the profile, pair and audio accounting, durations.",
    kind="table",
    ins=("pairs", "utterance_speech", "items"),
)
def inventory(
    workspace: WorkspaceResource, pairs: pl.DataFrame, utterance_speech: pl.DataFrame, items: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Count what was drawn and spoken."""
    return reported(multiparty_inventory.inventory(workspace.open(), pairs, utterance_speech, items))


@stage_asset(
    TRACK,
    "construction",
    "Clips heard by the recogniser, scenes by the voice detector, compared with what they were built from.",
    kind="audio",
    ins=("pairs", "utterance_speech", "scenes"),
)
def construction(
    workspace: WorkspaceResource, pairs: pl.DataFrame, utterance_speech: pl.DataFrame, scenes: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Hear what was built."""
    return reported(multiparty_construction.construction(workspace.open(), pairs, utterance_speech, scenes))


@dg.multi_asset(
    name="multiparty_transcript_reference",
    outs={
        "measurements": stage_out(
            TRACK, "transcript_reference", "Scores of who reads the transcript instead of hearing it.", kind="table"
        ),
        "tables": stage_out(
            TRACK, "transcript_decisions", "Its decisions, by run, and how far two runs agree.", kind="table"
        ),
    },
    ins={name: dg.AssetIn(key_of(TRACK, name)) for name in ("pairs", "items")},
)
@without_keys
def transcript_reference(
    workspace: WorkspaceResource, pairs: pl.DataFrame, items: pl.DataFrame
) -> Iterator[dg.Output[pl.DataFrame]]:
    """Decide every utterance from words alone."""
    found = reference.transcript_reference(workspace.open(), pairs, items)
    yield reported(found.measurements, "measurements")
    yield reported(found.tables, "tables")
