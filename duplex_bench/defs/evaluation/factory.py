"""The chain from items to figures, the same for both tracks."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import dagster as dg
import polars as pl

from duplex_bench.defs.partitions import CARDS, systems
from duplex_bench.lib.metadata import reported
from duplex_bench.lib.pipes import PipesLaunch
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.lib.stage_asset import key_of, stage_asset, stage_out
from duplex_bench.records.items import Track
from duplex_bench.stages import evaluation, summary
from duplex_bench.stages import rollouts as rollouts_of
from duplex_bench.stages.cards import card_of
from duplex_bench.stages.later_repeats import with_later_repeats
from duplex_bench.stages.later_scores import keep_later_scores
from duplex_bench.stages.report import PER_SYSTEM, system_infos, track_tables

Frame = pl.DataFrame
Out = dg.Output[pl.DataFrame]
Context = dg.AssetExecutionContext
MEASURED = ("items", "rollouts", "activity", "words")


def system_assets(track: Track) -> list[dg.AssetsDefinition]:
    """The five assets of one track that belong to one system."""
    declared = partial(stage_asset, track, partitions=systems)

    @declared(
        "rollouts",
        "Every item run on one system: what a listener heard, and how it ended.",
        kind="audio",
        ins=("items",),
        other_ins={"cards": key_of("systems", "cards")},
    )
    def rollouts(context: Context, workspace: WorkspaceResource, items: Frame, cards: Frame) -> Out:
        opened = workspace.open()
        launch = PipesLaunch(context, opened.data / "cache")
        result = rollouts_of.rollouts(opened, track, items, card_of(cards), launch)
        return reported(replace(result, counts={**result.counts, **launch.counts()}))

    @declared("activity", "When each system was heard, by gate and voice detector.", kind="audio", ins=("rollouts",))
    def activity(context: Context, workspace: WorkspaceResource, rollouts: Frame) -> Out:
        return reported(evaluation.activity(workspace.open(), track, rollouts, context.partition_key))

    @declared("words", "What each system said, word by word, with times.", kind="audio", ins=("rollouts",))
    def words(context: Context, workspace: WorkspaceResource, rollouts: Frame) -> Out:
        return reported(evaluation.words(workspace.open(), track, rollouts, context.partition_key))

    @declared("judgements", "Verdicts on answers and on speech where silence was due.", kind="judge", ins=MEASURED)
    def judgements(context: Context, workspace: WorkspaceResource, **stored: Frame) -> Out:
        opened, system = workspace.open(), context.partition_key
        items, rollouts, activity, words = (stored[name] for name in MEASURED)
        first = evaluation.judgements(opened, track, items, rollouts, activity, words, system)
        return reported(with_later_repeats(opened, track, items, rollouts, activity, words, system, first))

    @declared(
        "measurements",
        "Every metric on every window: a value or a reason.",
        kind="table",
        ins=(*MEASURED, "judgements"),
    )
    def measurements(context: Context, workspace: WorkspaceResource, **stored: Frame) -> Out:
        items, rollouts, activity, words, verdicts = (stored[name] for name in (*MEASURED, "judgements"))
        opened, system = workspace.open(), context.partition_key
        made = evaluation.measurements(opened, track, items, rollouts, activity, words, verdicts, system)
        keep_later_scores(opened, track, items, rollouts, activity, words, system)
        return reported(made)

    return [rollouts, activity, words, judgements, measurements]


def summary_assets(track: Track) -> list[dg.AssetsDefinition]:
    """The assets of one track over all systems."""
    # What is estimated beside the systems and never compared with them.
    beside = "bounds" if track == "conversation" else "transcript_reference"

    @dg.multi_asset(
        name=f"{track}_statistics",
        outs={
            "statistics": stage_out(track, "statistics", "Estimates with intervals, n of n, tie groups.", kind="table"),
            "comparisons": stage_out(track, "comparisons", "Systems in pairs on the items they share.", kind="table"),
        },
        ins={name: dg.AssetIn(key_of(track, name)) for name in ("measurements", beside)},
    )
    def statistics(workspace: WorkspaceResource, measurements: dict[str, Frame], **stored: Frame) -> Iterator[Out]:
        estimates, comparisons = summary.aggregate(workspace.open(), track, measurements, stored[beside])
        yield reported(estimates, "statistics")
        yield reported(comparisons, "comparisons")

    stored_names = ("items", *PER_SYSTEM, "statistics", "comparisons")

    @stage_asset(track, "tables", "Every table of the track, as Parquet.", kind="table", ins=stored_names)
    def tables(workspace: WorkspaceResource, **stored: Any) -> Out:
        opened = workspace.open()
        found = track_tables(track, stored, opened.profile)
        return reported(summary.tables(opened, found, system_infos(list(CARDS.values()))))

    @stage_asset(track, "figures", "Every figure of the track, as vector graphics.", kind="figure", ins=stored_names)
    def figures(workspace: WorkspaceResource, **stored: Any) -> Out:
        opened = workspace.open()
        found = track_tables(track, stored, opened.profile)
        return reported(summary.figures(opened, found, system_infos(list(CARDS.values()))))

    return [statistics, tables, figures]
