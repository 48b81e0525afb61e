"""Assets of the multiparty track up to its items."""

import dagster as dg
import polars as pl

from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.stages import code_versions, multiparty

TRACK = "multiparty"


def _key(name: str) -> dg.AssetKey:
    return dg.AssetKey([TRACK, name])


@dg.asset(
    key=_key("scenarios"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "scenarios"),
    kinds={"toml"},
    description="Scenarios: who says what to whom, the request, and the answer that follows from what was said.",
)
def scenarios(workspace: WorkspaceResource) -> dg.Output[pl.DataFrame]:
    """Draw scenarios from the grammar, or read the user's own."""
    return reported(multiparty.scenarios(workspace.open()))


@dg.asset(
    key=_key("pairs"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "pairs"),
    kinds={"table"},
    ins={"scenarios": dg.AssetIn(_key("scenarios"))},
    description="Each scenario in an explicit and an implicit form of the same request, validated.",
)
def pairs(workspace: WorkspaceResource, scenarios: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Pair the two forms and check every rule."""
    return reported(multiparty.pairs(workspace.open(), scenarios))


@dg.asset(
    key=_key("utterance_speech"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "utterance_speech"),
    kinds={"audio"},
    ins={"pairs": dg.AssetIn(_key("pairs"))},
    description="One clip per distinct utterance and voice, shared by both forms.",
)
def utterance_speech(workspace: WorkspaceResource, pairs: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Speak every utterance."""
    return reported(multiparty.utterance_speech(workspace.open(), pairs))


@dg.asset(
    key=_key("scenes"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "scenes"),
    kinds={"audio"},
    ins={"pairs": dg.AssetIn(_key("pairs")), "utterance_speech": dg.AssetIn(_key("utterance_speech"))},
    description="Continuous audio of every script, with the boundaries it was built from.",
)
def scenes(
    workspace: WorkspaceResource, pairs: pl.DataFrame, utterance_speech: pl.DataFrame
) -> dg.Output[pl.DataFrame]:
    """Place the clips on one timeline."""
    return reported(multiparty.scenes(workspace.open(), pairs, utterance_speech))


@dg.asset(
    key=_key("items"),
    group_name=TRACK,
    code_version=code_versions.of(TRACK, "items"),
    kinds={"table"},
    ins={"pairs": dg.AssetIn(_key("pairs")), "scenes": dg.AssetIn(_key("scenes"))},
    description="What systems are run on: the stimulus they hear, and the sealed reference.",
)
def items(workspace: WorkspaceResource, pairs: pl.DataFrame, scenes: pl.DataFrame) -> dg.Output[pl.DataFrame]:
    """Split every scene into stimulus and reference."""
    return reported(multiparty.items(workspace.open(), pairs, scenes))
