"""Pairs of systems on shared windows: differences with intervals, tests with corrections, and tie groups."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.estimates import AggregateSettings, Row, bootstrap_statistic, center, known_or_none
from duplex_bench.statistics import (
    Multiplicities,
    bonferroni,
    holm,
    mcnemar_exact,
    minimum_detectable_difference,
    percentile_interval,
    replicates,
    sign_flip_test,
    tie_groups,
)
from duplex_bench.storage.digests import generator_from

SIGN_FLIP = "sign_flip"
MCNEMAR = "mcnemar_exact"
WINDOW = ["item_id", "window_id"]


def pairs_of(
    rows: pl.DataFrame,
    names: Sequence[str],
    card: MetricCard,
    draws: Multiplicities,
    settings: AggregateSettings,
    seed_names: tuple[str, str],
) -> list[Row]:
    """Rows of COMPARISONS but track, condition and metric, of every two of ``names`` that share enough windows."""
    values = {
        name: rows.filter((pl.col("system") == name) & pl.col("value").is_not_null()).select(
            *WINDOW, "cluster", "value"
        )
        for name in names
    }
    found: list[Row] = []
    marginal: list[Row] = []
    for a, b in combinations(names, 2):
        shared = values[a].join(values[b], on=WINDOW, suffix="_b").sort(WINDOW)
        n_clusters = shared["cluster"].n_unique()
        if shared.height < max(card.minimum_n, 1) or n_clusters < 2:
            continue
        ours, theirs = shared["value"].to_numpy(), shared["value_b"].to_numpy()
        clusters = shared["cluster"].to_numpy()
        ours_again, theirs_again = (
            replicates(side, clusters, bootstrap_statistic(card), draws) for side in (ours, theirs)
        )
        low, high = percentile_interval(ours_again - theirs_again, settings.level)
        rng = generator_from("sign-flip/1", *seed_names, card.id, a, b)
        by_cluster = shared.group_by("cluster").agg((pl.col("value") - pl.col("value_b")).mean().alias("d"))
        pair: Row = {
            "system_a": a,
            "system_b": b,
            "difference": center(ours, card) - center(theirs, card),
            "low": known_or_none(low),
            "high": known_or_none(high),
            "n_pairs": shared.height,
            "n_clusters": n_clusters,
            "minimum_detectable": _detectable(by_cluster.sort("cluster")["d"].to_numpy(), settings),
        }  # fmt: skip
        p = sign_flip_test(ours - theirs, clusters, rng=rng, n_permutations=settings.n_permutations)
        found.append({**pair, "p": p, "p_corrected": None, "correction": "holm", "test": SIGN_FLIP})
        if card.statistic == "rate" and np.isin(ours, (0.0, 1.0)).all() and np.isin(theirs, (0.0, 1.0)).all():
            p = mcnemar_exact(int(((ours == 1) & (theirs == 0)).sum()), int(((ours == 0) & (theirs == 1)).sum()))
            marginal.append({**pair, "p": p, "correction": "bonferroni", "test": MCNEMAR})
    for row, corrected in zip(found, holm([row["p"] for row in found]), strict=True):
        row["p_corrected"] = known_or_none(corrected)
    family = max(len(marginal) * settings.paper_metrics, 1)
    for row in marginal:
        row["p_corrected"] = bonferroni(row["p"], family)
        row["correction"] = f"bonferroni over {family}"
    return found + marginal


def _detectable(differences: npt.NDArray[np.float64], settings: AggregateSettings) -> float | None:
    """Smallest detectable difference by the observed spread; None where clusters all differ by the same.

    A spread of 0 in a few clusters says nothing about the next cluster: 0 would promise what no sample can.
    """
    spread = float(np.std(differences, ddof=1))
    if spread == 0.0:
        return None
    return known_or_none(minimum_detectable_difference(len(differences), spread, settings.power, settings.level))


def write_tie_groups(estimates: list[Row], pairs: list[Row], card: MetricCard, alpha: float) -> None:
    """Write tie groups into ``estimates``: systems that the headline test does not tell apart share one."""
    if card.direction == "none":
        return
    place = {row["system"]: index for index, row in enumerate(estimates)}
    p_values = np.full((len(place), len(place)), np.nan)
    for pair in pairs:
        if pair["test"] == SIGN_FLIP:
            a, b = place[pair["system_a"]], place[pair["system_b"]]
            p_values[a, b] = p_values[b, a] = pair["p_corrected"]
    goodness = [
        np.nan if row["estimate"] is None else -abs(row["estimate"] - (card.target or 0.0))
        if card.direction == "target" else row["estimate"]
        for row in estimates
    ]  # fmt: skip
    groups = tie_groups(goodness, p_values, alpha=alpha, higher_is_better=card.direction != "lower")
    for row, group in zip(estimates, groups, strict=True):
        row["tie_group"] = group
