"""Tables of scores: leaderboard, pairwise comparisons, conditions against each other."""

import polars as pl

from duplex_bench.reporting.aggregate import condition_differences
from duplex_bench.reporting.formats import tie_letter
from duplex_bench.reporting.inputs import POOLED, Table, TrackTables


def leaderboard(tables: TrackTables) -> Table:
    """Headline metrics of one track: one row per system, condition and metric, with interval, n of n and tie group.

    Returns:
        Columns system, condition, metric, title, unit, direction, estimate, low, high, q1, q3, n_scored, n_expected,
        n_clusters, tie (letters), reason (why there is no estimate), method.
    """
    cards = pl.DataFrame(
        [(card.id, card.title, card.unit, card.direction, order) for order, card in enumerate(tables.headline_cards)],
        schema={"metric": pl.String, "title": pl.String, "unit": pl.String, "direction": pl.String, "order": pl.Int64},
        orient="row",
    )
    frame = (
        tables.statistics.join(cards, on="metric", how="inner")
        .with_columns(pl.col("tie_group").map_elements(tie_letter, return_dtype=pl.String).alias("tie"))
        .sort("order", "condition", "system")
        .select(
            "system",
            "condition",
            "metric",
            "title",
            "unit",
            "direction",
            "estimate",
            "low",
            "high",
            "q1",
            "q3",
            "n_scored",
            "n_expected",
            "n_clusters",
            "tie",
            "reason",
            "method",
        )
    )
    return Table(
        id=f"{tables.track}-leaderboard",
        title=f"{tables.title}: leaderboard",
        caption=(
            f"{_n_text(tables)} Intervals are {tables.level_text} by resampling whole clusters; systems that share a "
            "letter within a metric and condition are not separable. Metrics are never added up to one total."
        ),
        frame=frame,
    )


def pairwise(tables: TrackTables) -> Table:
    """Every paired comparison of two systems on the windows that both have a score for.

    Returns:
        The rows of COMPARISONS with the metric's title, in a stable order.
    """
    titles = {card.id: card.title for card in tables.cards}
    frame = tables.comparisons.with_columns(
        pl.col("metric").replace_strict(titles, default=pl.col("metric"), return_dtype=pl.String).alias("title")
    ).sort("metric", "condition", "system_a", "system_b", "test")
    return Table(
        id=f"{tables.track}-pairwise",
        title=f"{tables.title}: systems in pairs",
        caption=(
            f"Difference is system a minus system b on shared windows (n pairs), with a {tables.level_text} paired "
            "cluster bootstrap interval; where no cluster differs from another, resampling would call it certain: of a "
            "rate the Wilson bound over clusters stands there, of others no interval. Headline test: sign flips by "
            "cluster of the mean difference (also where the difference is of medians), Holm over the pairs. "
            "Paper-comparable test: exact two-sided McNemar, Bonferroni. The minimum detectable difference is what "
            f"this many clusters find with {100 * tables.aggregation.power:g} % power."
        ),
        frame=frame,
    )


def condition_comparison(tables: TrackTables) -> Table:
    """Conditions side by side: one row per system and metric, an estimate, interval and n for each condition.

    Returns:
        Columns system, metric, then for each condition its estimate, low, high, n_scored, and the difference of
        the first two with its interval. Metrics that exist in one condition only are left out.
    """
    single = tables.statistics.filter(pl.col("condition") != POOLED)
    conditions = sorted(single["condition"].unique())
    shared = single.group_by("metric").agg(pl.col("condition").n_unique().alias("k")).filter(pl.col("k") > 1)["metric"]
    single = single.filter(pl.col("metric").is_in(shared.to_list()))
    frame = single.select("system", "metric").unique().sort("metric", "system")
    for condition in conditions:
        part = single.filter(pl.col("condition") == condition).select(
            "system",
            "metric",
            *(pl.col(name).alias(f"{condition}_{name}") for name in ("estimate", "low", "high", "n_scored")),
        )
        frame = frame.join(part, on=["system", "metric"], how="left")
    change = condition_differences(tables.measurements, tables.cards, track=tables.track, settings=tables.aggregation)
    frame = frame.join(
        change.select("system", "metric", "difference", "low", "high", "n_clusters"),
        on=["system", "metric"],
        how="left",
    )
    return Table(
        id=f"{tables.track}-conditions",
        title=f"{tables.title}: conditions side by side",
        caption=(
            f"{_n_text(tables)} Conditions: {', '.join(conditions) or 'none'}. Denominators are per condition, since "
            "event counts may differ. Difference is the first condition minus the second, over all windows of "
            "either, resampling clusters with what they hold of both (not only windows with a value in both: the "
            f"table of addressing has those); intervals are {tables.level_text}."
        ),
        frame=frame.sort("metric", "system"),
    )


def _n_text(tables: TrackTables) -> str:
    clusters = tables.items["cluster"].n_unique()
    unit = "scenarios" if tables.track == "multiparty" else "conversations"
    return f"{tables.items.height} items from {clusters} {unit}."
