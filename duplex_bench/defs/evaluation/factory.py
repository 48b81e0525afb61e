"""The chain from items to figures, the same for both tracks."""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import polars as pl

from duplex_bench.defs.partitions import CARDS, systems
from duplex_bench.lib.metadata import reported
from duplex_bench.lib.resources import WorkspaceResource
from duplex_bench.records.items import Track
from duplex_bench.stages import code_versions, evaluation, summary
from duplex_bench.stages import rollouts as rollouts_of
from duplex_bench.stages.cards import card_of
from duplex_bench.stages.report import PER_SYSTEM, system_infos, track_tables


def _key(track: Track, name: str) -> dg.AssetKey:
    return dg.AssetKey([track, name])


def evaluation_assets(track: Track) -> list[dg.AssetsDefinition]:
    """Assets of one track: five partitioned by system, then four over all systems."""

    @dg.asset(
        key=_key(track, "rollouts"),
        group_name=track,
        code_version=code_versions.of(track, "rollouts"),
        description="Every item run on one system: what a listener heard, and how it ended.",
        kinds={"audio"},
        partitions_def=systems,
        ins={"items": dg.AssetIn(_key(track, "items")), "cards": dg.AssetIn(dg.AssetKey(["systems", "cards"]))},
    )
    def rollouts(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, items: pl.DataFrame, cards: pl.DataFrame
    ) -> dg.Output[pl.DataFrame]:
        del context
        return reported(rollouts_of.rollouts(workspace.open(), track, items, card_of(cards)))

    @dg.asset(
        key=_key(track, "activity"),
        group_name=track,
        code_version=code_versions.of(track, "activity"),
        description="When each system was heard, by energy gate and voice detector.",
        kinds={"audio"},
        partitions_def=systems,
        ins={"rollouts": dg.AssetIn(_key(track, "rollouts"))},
    )
    def activity(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, rollouts: pl.DataFrame
    ) -> dg.Output[pl.DataFrame]:
        return reported(evaluation.activity(workspace.open(), track, rollouts, context.partition_key))

    @dg.asset(
        key=_key(track, "words"),
        group_name=track,
        code_version=code_versions.of(track, "words"),
        description="What each system said, word by word, with times.",
        kinds={"audio"},
        partitions_def=systems,
        ins={"rollouts": dg.AssetIn(_key(track, "rollouts"))},
    )
    def words(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, rollouts: pl.DataFrame
    ) -> dg.Output[pl.DataFrame]:
        return reported(evaluation.words(workspace.open(), track, rollouts, context.partition_key))

    measured = {name: dg.AssetIn(_key(track, name)) for name in ("items", "rollouts", "activity", "words")}

    @dg.asset(
        key=_key(track, "judgements"),
        group_name=track,
        code_version=code_versions.of(track, "judgements"),
        description="Verdicts on answers and on speech where silence was due.",
        kinds={"judge"},
        partitions_def=systems,
        ins=measured,
    )
    def judgements(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        items: pl.DataFrame,
        rollouts: pl.DataFrame,
        activity: pl.DataFrame,
        words: pl.DataFrame,
    ) -> dg.Output[pl.DataFrame]:
        return reported(
            evaluation.judgements(workspace.open(), track, items, rollouts, activity, words, context.partition_key)
        )

    @dg.asset(
        key=_key(track, "measurements"),
        group_name=track,
        code_version=code_versions.of(track, "measurements"),
        description="Every metric on every window: a value or a reason.",
        kinds={"table"},
        partitions_def=systems,
        ins={**measured, "judgements": dg.AssetIn(_key(track, "judgements"))},
    )
    def measurements(
        context: dg.AssetExecutionContext,
        workspace: WorkspaceResource,
        items: pl.DataFrame,
        rollouts: pl.DataFrame,
        activity: pl.DataFrame,
        words: pl.DataFrame,
        judgements: pl.DataFrame,
    ) -> dg.Output[pl.DataFrame]:
        return reported(
            evaluation.measurements(
                workspace.open(), track, items, rollouts, activity, words, judgements, context.partition_key
            )
        )

    bounds_in = {"bounds": dg.AssetIn(_key(track, "bounds"))} if track == "conversation" else {}

    @dg.multi_asset(
        outs={
            "statistics": dg.AssetOut(
                key=_key(track, "statistics"),
                group_name=track,
                code_version=code_versions.of(track, "statistics"),
                description="Estimates with intervals, n scored of n expected, tie groups.",
                kinds={"table"},
            ),
            "comparisons": dg.AssetOut(
                key=_key(track, "comparisons"),
                group_name=track,
                code_version=code_versions.of(track, "comparisons"),
                description="Systems against one another on the items they share, paired.",
                kinds={"table"},
            ),
        },
        ins={"measurements": dg.AssetIn(_key(track, "measurements")), **bounds_in},
        name=f"{track}_statistics",
        group_name=track,
    )
    def statistics(
        workspace: WorkspaceResource, measurements: dict[str, pl.DataFrame], **bounds: pl.DataFrame
    ) -> Iterator[dg.Output[pl.DataFrame]]:
        estimates, comparisons = summary.aggregate(workspace.open(), track, measurements, bounds.get("bounds"))
        yield reported(estimates, "statistics")
        yield reported(comparisons, "comparisons")

    fan_in = {
        "items": dg.AssetIn(_key(track, "items")),
        **{name: dg.AssetIn(_key(track, name)) for name in PER_SYSTEM},
        "statistics": dg.AssetIn(_key(track, "statistics")),
        "comparisons": dg.AssetIn(_key(track, "comparisons")),
    }

    @dg.asset(
        key=_key(track, "tables"),
        group_name=track,
        code_version=code_versions.of(track, "tables"),
        description="Every table of the track, as Parquet.",
        kinds={"table"},
        ins=fan_in,
    )
    def tables(workspace: WorkspaceResource, **stored: Any) -> dg.Output[pl.DataFrame]:
        return reported(summary.tables(workspace.open(), track_tables(track, stored)))

    @dg.asset(
        key=_key(track, "figures"),
        group_name=track,
        code_version=code_versions.of(track, "figures"),
        description="Every figure of the track, as vector graphics.",
        kinds={"figure"},
        ins=fan_in,
    )
    def figures(workspace: WorkspaceResource, **stored: Any) -> dg.Output[pl.DataFrame]:
        infos = system_infos(list(CARDS.values()))
        return reported(summary.figures(workspace.open(), track_tables(track, stored), infos))

    return [rollouts, activity, words, judgements, measurements, statistics, tables, figures]
