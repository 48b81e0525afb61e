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
from duplex_bench.stages.cards import card_of
from duplex_bench.stages.report import PER_SYSTEM, system_infos, track_tables


def _key(track: Track, name: str) -> dg.AssetKey:
    return dg.AssetKey([track, name])


def evaluation_assets(track: Track) -> list[dg.AssetsDefinition]:
    """Assets of one track: five partitioned by system, then four over all systems."""

    def described(name: str, description: str, kinds: set[str]) -> dict[str, Any]:
        return {
            "key": _key(track, name),
            "group_name": track,
            "code_version": code_versions.of(track, name),
            "description": description,
            "kinds": kinds,
        }

    @dg.asset(
        **described("rollouts", "Every item run on one system: what a listener heard, and how it ended.", {"audio"}),
        partitions_def=systems,
        ins={"items": dg.AssetIn(_key(track, "items")), "cards": dg.AssetIn(dg.AssetKey(["systems", "cards"]))},
    )
    def rollouts(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, items: pl.DataFrame, cards: pl.DataFrame
    ) -> dg.Output[pl.DataFrame]:
        del context
        return reported(evaluation.rollouts(workspace.open(), track, items, card_of(cards)))

    @dg.asset(
        **described("activity", "When each system was heard, by energy gate and voice detector.", {"audio"}),
        partitions_def=systems,
        ins={"rollouts": dg.AssetIn(_key(track, "rollouts"))},
    )
    def activity(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, rollouts: pl.DataFrame
    ) -> dg.Output[pl.DataFrame]:
        return reported(evaluation.activity(workspace.open(), track, rollouts, context.partition_key))

    @dg.asset(
        **described("words", "What each system said, word by word, with times.", {"audio"}),
        partitions_def=systems,
        ins={"rollouts": dg.AssetIn(_key(track, "rollouts"))},
    )
    def words(
        context: dg.AssetExecutionContext, workspace: WorkspaceResource, rollouts: pl.DataFrame
    ) -> dg.Output[pl.DataFrame]:
        return reported(evaluation.words(workspace.open(), track, rollouts, context.partition_key))

    measured = {name: dg.AssetIn(_key(track, name)) for name in ("items", "rollouts", "activity", "words")}

    @dg.asset(
        **described("judgements", "Verdicts on answers and on speech where silence was due.", {"judge"}),
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
        **described("measurements", "Every metric on every window: a value or a reason.", {"table"}),
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
                **described("statistics", "Estimates with intervals, n scored of n expected, tie groups.", {"table"})
            ),
            "comparisons": dg.AssetOut(
                **described("comparisons", "Systems against one another on the items they share, paired.", {"table"})
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

    @dg.asset(**described("tables", "Every table of the track, as Parquet.", {"table"}), ins=fan_in)
    def tables(workspace: WorkspaceResource, **stored: Any) -> dg.Output[pl.DataFrame]:
        return reported(summary.tables(workspace.open(), track_tables(track, stored)))

    @dg.asset(**described("figures", "Every figure of the track, as vector graphics.", {"figure"}), ins=fan_in)
    def figures(workspace: WorkspaceResource, **stored: Any) -> dg.Output[pl.DataFrame]:
        infos = system_infos(list(CARDS.values()), track)
        return reported(summary.figures(workspace.open(), track_tables(track, stored), infos))

    return [rollouts, activity, words, judgements, measurements, statistics, tables, figures]
