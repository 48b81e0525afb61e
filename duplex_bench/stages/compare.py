"""Two systems on the windows they share: difference, interval, tests, and where they differ most (design 10)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.aggregate import Aggregates, AggregateSettings, statistics_table
from duplex_bench.reporting.comparisons import MCNEMAR, SIGN_FLIP, WINDOW
from duplex_bench.reporting.estimates import center
from duplex_bench.reporting.inputs import ADDRESSING, POOLED
from duplex_bench.stages import scoring
from duplex_bench.stages.profile import StatisticsSettings
from duplex_bench.stages.stored_run import required, systems_with, tracks_run
from duplex_bench.stages.workspace import Workspace
from duplex_bench.statistics.intervals import SAME, alike

PAIRED_SCHEMA = {
    "track": pl.String, "metric": pl.String, "title": pl.String, "unit": pl.String, "condition": pl.String,
    "value_a": pl.Float64, "value_b": pl.Float64, "difference": pl.Float64, "low": pl.Float64, "high": pl.Float64,
    "p_sign_flip": pl.Float64, "p_mcnemar": pl.Float64, "n_pairs": pl.Int64, "n_differ": pl.Int64,
    "n_clusters": pl.Int64, "minimum_detectable": pl.Float64, "spread": pl.Boolean, "method": pl.String,
    "better": pl.String, "reason": pl.String,
}  # fmt: skip
EXAMPLES_SCHEMA = {
    "track": pl.String, "metric": pl.String, "condition": pl.String, "item_id": pl.String, "window_id": pl.String,
    "value_a": pl.Float64, "value_b": pl.Float64, "measurement_a": pl.String, "measurement_b": pl.String,
    "link_a": pl.String, "link_b": pl.String,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Compared:
    """Two systems side by side.

    Attributes:
        system_a: the first.
        system_b: the second; differences are a minus b.
        pairs: one row by metric and condition, in the schema ``PAIRED_SCHEMA``: the card's statistic of either side
            on shared windows, their difference with its interval and the method of that, whether the difference
            varies from cluster to cluster, on how many of the windows the two differ, p-values of this one
            comparison (not corrected for others), the smallest difference that could have been seen, who is better
            where the interval, if there is one, excludes zero and the sign-flip test is below its level (under a
            target, where one also lies nearer to it), else the reason why nobody is said to be.
        examples: windows where the two differ most, in the schema ``EXAMPLES_SCHEMA``, links relative to the report.
    """

    system_a: str
    system_b: str
    pairs: pl.DataFrame
    examples: pl.DataFrame


def compare(
    workspace: Workspace, system_a: str, system_b: str, metrics: Sequence[str] = (), n_examples: int = 5
) -> Compared:
    """Compare two systems of a run from their stored measurements.

    Args:
        workspace: the run.
        system_a: name of the first.
        system_b: name of the second.
        metrics: ids of metric cards; none takes the headline metrics.
        n_examples: windows listed by metric and condition.

    Raises:
        ValueError: a name or metric that is not there, one name twice, or no track that both were run on.
    """
    if system_a == system_b:
        raise ValueError(f"{system_a} twice: name two systems")
    run = {track: systems_with(workspace, track, "measurements") for track in tracks_run(workspace)}
    known = sorted({name for names in run.values() for name in names})
    for name in (system_a, system_b):
        if name not in known:
            raise ValueError(f"{name!r} has no measurements here: there are {', '.join(known)}")
    shared = [track for track, names in run.items() if {system_a, system_b} <= set(names)]
    if not shared:
        raise ValueError(f"{system_a} and {system_b} were not run on one track: run duplex-bench run for both")
    cards = {track: _cards(track, metrics) for track in shared}
    if not any(cards.values()):
        there = sorted(card.id for track in shared for card in scoring.metric_cards(track))
        raise ValueError(f"no metric {', '.join(metrics)} on {' or '.join(shared)}: there are {', '.join(there)}")
    pairs: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    for track in shared:
        both = [required(workspace, track, "measurements", name) for name in (system_a, system_b)]
        found = paired(track, both, (system_a, system_b), cards[track], workspace.profile.statistics, n_examples)
        pairs += found[0]
        examples += found[1]
    return Compared(
        system_a, system_b, pl.DataFrame(pairs, schema=PAIRED_SCHEMA), pl.DataFrame(examples, schema=EXAMPLES_SCHEMA)
    )


def paired(
    track: Track,
    both: Sequence[pl.DataFrame],
    names: tuple[str, str],
    cards: Sequence[MetricCard],
    settings: StatisticsSettings,
    n_examples: int = 0,
    played: tuple[str, str] | None = None,
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows of ``PAIRED_SCHEMA`` and of ``EXAMPLES_SCHEMA`` for two tables of measurements.

    Args:
        track: of the tables.
        both: schema MEASUREMENTS, one a side; column ``system`` holds the name of the side.
        names: of the sides, in this order.
        cards: the metrics wanted.
        settings: level and resamples.
        n_examples: windows listed by metric and condition.
        played: names of the systems in the links; None takes ``names``.
    """
    pairs: list[dict[str, Any]] = []
    examples: list[dict[str, Any]] = []
    tests = _tests(settings, track, pl.concat(both))
    for card in cards:
        for condition, windows in _conditions(track, _shared(both, card)):
            pairs.append(_pair(track, card, condition, windows, tests, names, settings))
            if condition != POOLED:
                examples += _examples(track, card, condition, windows, played or names, n_examples)
    return pairs, examples


def _cards(track: Track, metrics: Sequence[str]) -> list[MetricCard]:
    return [card for card in scoring.metric_cards(track) if (card.id in metrics if metrics else card.headline)]


def _shared(both: Sequence[pl.DataFrame], card: MetricCard) -> pl.DataFrame:
    """Windows of either system; a value is null where that system has none."""
    names = [*WINDOW, "condition", "cluster"]
    a, b = (
        table.filter(pl.col("metric") == card.id).select(*names, "value", "measurement_id", "at_s") for table in both
    )
    return a.join(b, on=names, how="full", suffix="_b", coalesce=True).sort(WINDOW)


def _conditions(track: Track, windows: pl.DataFrame) -> list[tuple[str, pl.DataFrame]]:
    found = [
        (condition, windows.filter(pl.col("condition") == condition))
        for condition in sorted(windows["condition"].unique())
    ]
    together = windows.filter(pl.col("condition").is_in(ADDRESSING))
    if track == "multiparty" and together["condition"].n_unique() > 1:
        found.append((POOLED, together))
    return found


def _tests(settings: StatisticsSettings, track: Track, rows: pl.DataFrame) -> Aggregates:
    # One comparison by itself: nothing to correct over.
    chosen = AggregateSettings(
        n_resamples=settings.n_resamples, level=settings.level, paper_metrics=1, all_metrics_in_pairs=True
    )
    return statistics_table(rows, scoring.metric_cards(track), track=track, settings=chosen)


def _pair(
    track: Track,
    card: MetricCard,
    condition: str,
    windows: pl.DataFrame,
    tests: Aggregates,
    systems: tuple[str, str],
    settings: StatisticsSettings,
) -> dict[str, Any]:
    both = windows.drop_nulls(["value", "value_b"])
    row: dict[str, Any] = dict.fromkeys(PAIRED_SCHEMA)
    row |= {
        "track": track, "metric": card.id, "title": card.title, "unit": card.unit, "condition": condition,
        "n_pairs": both.height, "n_clusters": both["cluster"].n_unique(),
    }  # fmt: skip
    if both.height:
        row["value_a"], row["value_b"] = (center(both[name].to_numpy(), card) for name in ("value", "value_b"))
        row["difference"] = row["value_a"] - row["value_b"]
        row["n_differ"] = int((np.abs((both["value"] - both["value_b"]).to_numpy()) > SAME).sum())
    here = (pl.col("metric") == card.id) & (pl.col("condition") == condition)
    by_test = {test["test"]: test for test in tests.comparisons.filter(here).iter_rows(named=True)}
    if SIGN_FLIP not in by_test:
        row["reason"] = (
            f"{both.height} of {windows.height} windows have a value for both, in {row['n_clusters']} clusters: "
            f"at least {max(card.minimum_n, 1)} in 2 are needed"
        )
        return row
    found = by_test[SIGN_FLIP]
    low, high = found["low"], found["high"]
    # The table names the two in the order of the alphabet. Zero is added so that minus zero becomes zero.
    if found["system_a"] != systems[0] and low is not None and high is not None:
        low, high = 0.0 - high, 0.0 - low
    row |= {
        "low": low, "high": high, "p_sign_flip": _known(found["p"]),
        "p_mcnemar": _known(by_test[MCNEMAR]["p"]) if MCNEMAR in by_test else None,
        "minimum_detectable": found["minimum_detectable"], "spread": _has_spread(both, card),
    }  # fmt: skip
    row["method"] = _method(row, settings)
    groups = dict(tests.statistics.filter(here).select("system", "tie_group").iter_rows())
    row["better"], row["reason"] = _better(row, card, systems, 1 - settings.level, groups)
    return row


def _known(p: float | None) -> float | None:
    return None if p is None or np.isnan(p) else p


def _has_spread(both: pl.DataFrame, card: MetricCard) -> bool:
    """Whether the difference varies: from cluster to cluster, of a median from window to window."""
    apart = both.select("cluster", (pl.col("value") - pl.col("value_b")).alias("apart"))
    if card.statistic != "median":
        apart = apart.group_by("cluster").mean()
    return not alike(apart["apart"].to_numpy())


def _method(row: dict[str, Any], settings: StatisticsSettings) -> str:
    """How the interval was made, in words."""
    if row["spread"]:
        return f"{100 * settings.level:g} % cluster bootstrap"
    why = "no window differs" if row["n_differ"] == 0 else "every cluster differs by the same"
    if row["low"] is None:
        return f"no interval: {why}"
    return f"{100 * settings.level:g} % Wilson bound over {row['n_clusters']} clusters: {why}"


def _better(
    row: dict[str, Any],
    card: MetricCard,
    systems: tuple[str, str],
    alpha: float,
    groups: Mapping[str, int | None],
) -> tuple[str | None, str | None]:
    if card.direction == "none":
        return None, "this metric has no better or worse"
    low, high, p = row["low"], row["high"], row["p_sign_flip"]
    if row["n_differ"] == 0:
        return None, "no window differs"
    if p is None:
        return None, "no test"
    # Without spread a metric that is no rate has no interval: the test alone tells.
    within = low is not None and high is not None and low <= 0 <= high
    if within or not p < alpha:
        return None, "not told apart"
    a_is_better = row["difference"] > 0
    if card.direction == "lower":
        a_is_better = not a_is_better
    if card.direction == "target":
        if len(set(groups.values())) < 2:
            return None, "neither is shown to lie nearer to the target"
        target = card.target or 0.0
        a_is_better = abs(row["value_a"] - target) < abs(row["value_b"] - target)
    return systems[0 if a_is_better else 1], None


def _examples(
    track: Track, card: MetricCard, condition: str, windows: pl.DataFrame, systems: tuple[str, str], limit: int
) -> list[dict[str, Any]]:
    # Jinja and the site's templates load with it: not when the command starts.
    from duplex_bench.reporting.site.pages import play_link

    differing = windows.with_columns((pl.col("value") - pl.col("value_b")).abs().alias("apart"))
    differing = differing.filter(pl.col("apart") > 0).sort("apart", *WINDOW, descending=[True, False, False])
    return [
        {
            "track": track, "metric": card.id, "condition": condition, "item_id": row["item_id"],
            "window_id": row["window_id"], "value_a": row["value"], "value_b": row["value_b"],
            "measurement_a": row["measurement_id"], "measurement_b": row["measurement_id_b"],
            "link_a": play_link(row["item_id"], systems[0], row["at_s"]),
            "link_b": play_link(row["item_id"], systems[1], row["at_s_b"]),
        }
        for row in differing.head(limit).iter_rows(named=True)
    ]  # fmt: skip
