"""Pairs of systems on shared windows: differences with intervals, tests with corrections, and tie groups."""

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.estimates import (
    AggregateSettings,
    Row,
    bootstrap_statistic,
    center,
    cluster_index,
    known_or_none,
)
from duplex_bench.statistics import (
    Interval,
    Multiplicities,
    alike,
    bonferroni,
    holm,
    mcnemar_exact,
    mean_replicates,
    minimum_detectable_difference,
    no_spread_interval,
    percentile_intervals,
    sign_flip_tests,
    tie_groups,
)
from duplex_bench.statistics.weighted_median import weighted_medians
from duplex_bench.storage.digests import generator_from

SIGN_FLIP = "sign_flip"
MCNEMAR = "mcnemar_exact"
# Key of a pair between ``pairs_of`` and ``write_tie_groups``: whether one lies nearer to the metric's target.
NEARER = "nearer"
WINDOW = ["item_id", "window_id"]
# Digits of a value (rates, seconds, ratios) that are not rounding of its arithmetic: as SAME of the statistics.
_DECIMALS: Final = 9


def pairs_of(
    rows: pl.DataFrame,
    names: Sequence[str],
    card: MetricCard,
    draws: Multiplicities,
    settings: AggregateSettings,
    seed_names: tuple[str, str],
) -> list[Row]:
    """Rows of COMPARISONS but track, condition and metric, of every two of ``names`` that share enough windows.

    All pairs of a metric and condition share their resamples and sign flips, which come from matrix products.
    """
    values, owner = _by_window(rows, names, draws)
    pairs = _comparable(values, owner, card)
    if not pairs:
        return []
    k = len(draws.labels)
    columns = [_both_present(values, pair) for pair in pairs]
    sizes = _sums([(shared, np.ones(len(owner))) for shared in columns], owner, k)
    ours = _sums([(shared, values[:, a]) for shared, (a, _) in zip(columns, pairs, strict=True)], owner, k)
    theirs = _sums([(shared, values[:, b]) for shared, (_, b) in zip(columns, pairs, strict=True)], owner, k)
    if bootstrap_statistic(card) == "mean":
        sides = [mean_replicates(sums, sizes, draws) for sums in (ours, theirs)]
    else:
        sides = [
            np.column_stack(
                [
                    weighted_medians(values[shared, pair[side]], owner[shared], draws.counts)
                    for shared, pair in zip(columns, pairs, strict=True)
                ]
            )
            for side in (0, 1)
        ]
    again = sides[0] - sides[1]
    held = sizes > 0
    intervals = percentile_intervals(again, settings.level, held.sum(axis=0).tolist())
    for place, (a, b) in enumerate(pairs):
        moved = values[columns[place], a] - values[columns[place], b]
        if alike(again[:, place] if bootstrap_statistic(card) == "mean" else moved):
            intervals[place] = without_spread(float(moved.mean()), int(held[:, place].sum()), card, settings)
    nearer = _nearer(sides, card, settings, held)
    p_values = sign_flip_tests(
        np.where(held, _rounded(ours - theirs), np.nan),
        rng=generator_from("sign-flip/2", *seed_names, card.id),
        n_permutations=settings.n_permutations,
    )
    found: list[Row] = []
    marginal: list[Row] = []
    for place, (a, b) in enumerate(pairs):
        one, other = values[columns[place], a], values[columns[place], b]
        low, high = intervals[place]
        inside = held[:, place]
        pair: Row = {
            "system_a": names[a],
            "system_b": names[b],
            "difference": center(one, card) - center(other, card),
            "low": known_or_none(low),
            "high": known_or_none(high),
            "n_pairs": int(columns[place].sum()),
            "n_clusters": int(inside.sum()),
            "minimum_detectable": _detectable((ours - theirs)[inside, place] / sizes[inside, place], settings),
        }  # fmt: skip
        found.append(
            {
                **pair,
                "p": p_values[place],
                "p_corrected": None,
                "correction": "holm",
                "test": SIGN_FLIP,
                NEARER: nearer[place],
            }
        )
        if card.statistic == "rate" and np.isin(one, (0.0, 1.0)).all() and np.isin(other, (0.0, 1.0)).all():
            p = mcnemar_exact(int(((one == 1) & (other == 0)).sum()), int(((one == 0) & (other == 1)).sum()))
            marginal.append({**pair, "p": p, "correction": "bonferroni", "test": MCNEMAR})
    for row, corrected in zip(found, holm([row["p"] for row in found]), strict=True):
        row["p_corrected"] = known_or_none(corrected)
    family = max(len(marginal) * settings.paper_metrics, 1)
    for row in marginal:
        row["p_corrected"] = bonferroni(row["p"], family)
        row["correction"] = f"bonferroni over {family}"
    return found + marginal


def _nearer(
    sides: Sequence[npt.NDArray[np.float64]],
    card: MetricCard,
    settings: AggregateSettings,
    held: npt.NDArray[np.bool_],
) -> list[bool]:
    """Of each pair (columns), whether one lies nearer to the card's target; True where the card has none.

    Systems on either side of a target may differ and be equally good: the interval of their distances must say so.
    """
    if card.direction != "target":
        return [True] * held.shape[1]
    distances = [np.abs(side - (card.target or 0.0)) for side in sides]
    bounds = percentile_intervals(distances[0] - distances[1], settings.level, held.sum(axis=0).tolist())
    return [bool(low > 0 or high < 0) for low, high in bounds]


def without_spread(difference: float, n_clusters: int, card: MetricCard, settings: AggregateSettings) -> Interval:
    """Interval where resampling would call a difference certain: of rates by Wilson's bound, of others none."""
    if card.statistic != "rate":
        return Interval(np.nan, np.nan)
    return no_spread_interval(difference, n_clusters, -1.0, 1.0, settings.level)


def _rounded(numbers: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Numbers without what their arithmetic rounded: a difference of 1e-16 s between equal outputs is none."""
    return np.round(numbers, _DECIMALS)


def _sums(
    parts: Sequence[tuple[npt.NDArray[np.bool_], npt.NDArray[np.float64]]], owner: npt.NDArray[np.int64], k: int
) -> npt.NDArray[np.float64]:
    """Sums by cluster (k, m) of each part's chosen windows."""
    sums = [np.bincount(owner[chosen], values[chosen], k) for chosen, values in parts]
    return np.column_stack(sums).astype(np.float64)


def _by_window(
    rows: pl.DataFrame, names: Sequence[str], draws: Multiplicities
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """Values (n_windows, n_systems), NaN for none, windows in sorted order; and the cluster of each window."""
    scored = rows.filter(pl.col("value").is_not_null()).select("system", *WINDOW, "cluster", "value")
    windows = scored.select(*WINDOW, "cluster").unique(WINDOW).sort(WINDOW).with_row_index("row")
    placed = scored.join(windows.select("row", *WINDOW), on=WINDOW)
    values = np.full((windows.height, len(names)), np.nan)
    for place, name in enumerate(names):
        mine = placed.filter(pl.col("system") == name)
        values[mine["row"].to_numpy(), place] = _rounded(mine["value"].to_numpy())
    return values, cluster_index(windows["cluster"], draws)


def _comparable(
    values: npt.NDArray[np.float64], owner: npt.NDArray[np.int64], card: MetricCard
) -> list[tuple[int, int]]:
    """Pairs of columns that share the metric's minimum of windows, of two clusters at least."""
    return [
        pair
        for pair in combinations(range(values.shape[1]), 2)
        for shared in (_both_present(values, pair),)
        if shared.sum() >= max(card.minimum_n, 1) and len(np.unique(owner[shared])) > 1
    ]


def _both_present(values: npt.NDArray[np.float64], pair: tuple[int, int]) -> npt.NDArray[np.bool_]:
    a, b = pair
    return ~(np.isnan(values[:, a]) | np.isnan(values[:, b]))


def _detectable(differences: npt.NDArray[np.float64], settings: AggregateSettings) -> float | None:
    """Smallest detectable difference by the observed spread; None where clusters all differ by the same.

    A spread of 0 in a few clusters says nothing about the next cluster: 0 would promise what no sample can.
    """
    if alike(differences):
        return None
    spread = float(np.std(differences, ddof=1))
    return known_or_none(minimum_detectable_difference(len(differences), spread, settings.power, settings.level))


def write_tie_groups(estimates: list[Row], pairs: list[Row], card: MetricCard, alpha: float) -> None:
    """Write tie groups into ``estimates``: systems that the headline test does not tell apart share one.

    Under a target two systems are apart only if their distances to it are, too. Takes ``NEARER`` out of ``pairs``.
    """
    if card.direction == "none":
        for pair in pairs:
            pair.pop(NEARER, None)
        return
    place = {row["system"]: index for index, row in enumerate(estimates)}
    p_values = np.full((len(place), len(place)), np.nan)
    for pair in pairs:
        if pair["test"] == SIGN_FLIP and pair.pop(NEARER):
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
