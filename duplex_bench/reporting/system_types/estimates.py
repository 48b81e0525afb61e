"""Estimates of a type of system: every system counts alike, and whole conversations or scenarios are resampled.

The interval holds for these systems on other conversations, not for other systems of the type.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.estimates import center, resampled
from duplex_bench.reporting.inputs import ADDRESSING, SystemInfo, SystemType, TrackTables
from duplex_bench.reporting.system_types.claims import (
    ENDPOINTER,
    FULL_DUPLEX,
    TYPE_TITLES,
    TYPES,
    Against,
    Alike,
    Between,
    Contrast,
    Ranked,
    Within,
)
from duplex_bench.statistics import (
    alike,
    multiplicities,
    no_spread_interval,
    percentile_interval,
    sign_flip_tests,
    spearman,
)
from duplex_bench.storage.digests import generator_from

Floats = npt.NDArray[np.float64]

# Fewer systems have too few orders for a correlation to mean anything (ours).
LEAST_RANKED: Final = 4
# Resamples without a correlation (a side is constant) that are put up with (ours).
_MOST_UNDEFINED: Final = 0.2


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval; ``p`` is of cluster sign flips, None where there is no such test.

    ``inner`` is the narrower interval by which two one-sided tests call a difference small enough.
    ``value`` is None where nothing can be said, and ``why`` says why.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    inner: tuple[float, float] | None = None
    p: float | None = None
    n_systems: int = 0
    n: int = 0
    n_clusters: int = 0
    why: str = ""


@dataclass(frozen=True, slots=True)
class _Part:
    """One system's scored windows of a metric: the estimate, its replicates, and sum and number by cluster."""

    value: float
    replicates: Floats
    sums: Floats
    sizes: Floats
    n: int


def _limits(card: MetricCard | None, least: float, most: float) -> tuple[float, float] | None:
    """The least and most that a rate, or a difference of rates, can be; None for other metrics."""
    return (least, most) if card is not None and card.statistic == "rate" else None


class TypeStatistics:
    """Statistics over the systems of each type of one track.

    Args:
        tables: Of the track; measurements of one repeat.
        systems: What is known about them; references and those without a type are left out.
    """

    def __init__(self, tables: TrackTables, systems: Sequence[SystemInfo]) -> None:
        self._level = tables.aggregation.level
        self._cards = {card.id: card for card in tables.cards}
        ran = set(tables.rollouts["system"])
        self.members: dict[SystemType, tuple[SystemInfo, ...]] = {
            kind: tuple(one for one in systems if one.type == kind and not one.reference and one.name in ran)
            for kind in TYPES
        }
        names = [one.name for members in self.members.values() for one in members]
        scored = tables.measurements.filter(pl.col("value").is_not_null() & pl.col("system").is_in(names))
        if tables.track == "multiparty":
            # Other acoustics are the same scenes again.
            scored = scored.filter(pl.col("condition").is_in(ADDRESSING))
        self._scored = scored.select("system", "metric", "condition", "item_id", "window_id", "cluster", "value")
        labels = self._scored["cluster"].unique().sort().to_numpy()
        self._draws = multiplicities(labels, generator_from("types/1", tables.track), tables.aggregation.n_resamples)
        self._track = tables.track

    def of_type(self, metric: str, kind: SystemType) -> Estimate:
        """The mean over the systems of a type of their estimates of one metric."""
        card = self._cards.get(metric)
        parts = self._parts(card, kind)
        if card is None or not parts:
            return Estimate(why=self._none(metric, (kind,)))
        value = float(np.mean([part.value for part in parts]))
        return self._made(value, self._mean_replicates(parts), parts, None, limits=_limits(card, 0.0, 1.0))

    def contrast(self, wanted: Contrast) -> Estimate:
        """The number that a claim is about."""
        if isinstance(wanted, Between):
            return self._between(wanted)
        if isinstance(wanted, Within):
            return self._within(wanted)
        if isinstance(wanted, Against):
            return self._against(wanted)
        return self._ranked(wanted) if isinstance(wanted, Ranked) else self._alike(wanted)

    def _between(self, wanted: Between) -> Estimate:
        card = self._cards.get(wanted.metric)
        ours, theirs = (self._parts(card, kind) for kind in (FULL_DUPLEX, ENDPOINTER))
        if not ours or not theirs:
            return Estimate(why=self._none(wanted.metric, TYPES))
        value = float(np.mean([part.value for part in ours]) - np.mean([part.value for part in theirs]))
        again = self._mean_replicates(ours) - self._mean_replicates(theirs)
        p = self._p(self._by_cluster(ours) - self._by_cluster(theirs))
        return self._made(value, again, [*ours, *theirs], p, limits=_limits(card, -1.0, 1.0))

    def _within(self, wanted: Within) -> Estimate:
        keys = ["system", "item_id", "window_id", "cluster"]
        names = [one.name for one in self.members[wanted.of]]
        mine = self._scored.filter(pl.col("system").is_in(names))
        first, second = (mine.filter(pl.col("metric") == name) for name in (wanted.first, wanted.second))
        both = first.join(second.select(*keys, pl.col("value").alias("other")), on=keys)
        both = both.with_columns(pl.col("value") - pl.col("other"))
        card = self._cards.get(wanted.first)
        parts = [self._part(both.filter(pl.col("system") == name), card) for name in names if card is not None]
        held = [part for part in parts if part is not None]
        if not held:
            return Estimate(why=self._none(wanted.first, (wanted.of,)))
        value = float(np.mean([part.value for part in held]))
        p = self._p(self._by_cluster(held))
        return self._made(value, self._mean_replicates(held), held, p, limits=_limits(card, -1.0, 1.0))

    def _against(self, wanted: Against) -> Estimate:
        card = self._cards.get(wanted.metric)
        parts = self._parts(card, wanted.of)
        if card is None or not parts:
            return Estimate(why=self._none(wanted.metric, (wanted.of,)))
        value = float(np.mean([part.value for part in parts])) - wanted.value
        names = [one.name for one in self.members[wanted.of]]
        rows = self._scored.filter((pl.col("metric") == card.id) & pl.col("system").is_in(names))
        side = (pl.col("value") - wanted.value).sign() if card.statistic == "median" else pl.col("value") - wanted.value
        summed = rows.with_columns(side.alias("side")).group_by("cluster").agg(pl.col("side").sum())
        p = self._p(summed.sort("cluster")["side"].to_numpy().astype(np.float64))
        limits = _limits(card, -wanted.value, 1 - wanted.value)
        return self._made(value, self._mean_replicates(parts) - wanted.value, parts, p, limits=limits)

    def _ranked(self, wanted: Ranked) -> Estimate:
        pairs = [
            (first, second)
            for one in self.members[wanted.of]
            for first, second in [tuple(self._of_system(one.name, name) for name in (wanted.first, wanted.second))]
            if first is not None and second is not None
        ]
        if len(pairs) < LEAST_RANKED:
            why = f"it needs {LEAST_RANKED} such systems with both measured, and there are {len(pairs)}"
            return Estimate(n_systems=len(pairs), why=why)
        rho = spearman([first.value for first, _ in pairs], [second.value for _, second in pairs]).rho
        if np.isnan(rho):
            return Estimate(n_systems=len(pairs), why="the systems do not differ in one of the two")
        firsts, seconds = (np.column_stack([pair[side].replicates for pair in pairs]) for side in (0, 1))
        again = np.array([spearman(one, other).rho for one, other in zip(firsts, seconds, strict=True)])
        if np.isnan(again).mean() > _MOST_UNDEFINED:
            return Estimate(n_systems=len(pairs), why="in many resamples the systems do not differ in one of the two")
        return self._made(float(rho), again, [part for pair in pairs for part in pair], None, len(pairs))

    def _alike(self, wanted: Alike) -> Estimate:
        card = self._cards.get(wanted.metric)
        names = [one.name for members in self.members.values() for one in members]
        sides = []
        for condition in ADDRESSING:
            rows = self._scored.filter((pl.col("metric") == wanted.metric) & (pl.col("condition") == condition))
            sides.append([None if card is None else self._part(rows.filter(pl.col("system") == name), card)
                          for name in names])  # fmt: skip
        both = [(one, other) for one, other in zip(*sides, strict=True) if one is not None and other is not None]
        if not both:
            return Estimate(why=self._none(wanted.metric, ()))
        named, unnamed = ([pair[side] for pair in both] for side in (0, 1))
        value = float(np.mean([one.value - other.value for one, other in both]))
        again = self._mean_replicates(named) - self._mean_replicates(unnamed)
        p = self._p(self._by_cluster(named) - self._by_cluster(unnamed))
        return self._made(value, again, [*named, *unnamed], p, len(both), limits=_limits(card, -1.0, 1.0))

    def _parts(self, card: MetricCard | None, kind: SystemType) -> list[_Part]:
        if card is None:
            return []
        found = (self._of_system(one.name, card.id) for one in self.members[kind])
        return [part for part in found if part is not None]

    def _of_system(self, system: str, metric: str) -> _Part | None:
        card = self._cards.get(metric)
        rows = self._scored.filter((pl.col("metric") == metric) & (pl.col("system") == system))
        return None if card is None else self._part(rows, card)

    def _part(self, rows: pl.DataFrame, card: MetricCard) -> _Part | None:
        # As in the leaderboard: fewer windows are no estimate.
        if rows.height < max(card.minimum_n, 1):
            return None
        rows = rows.sort("item_id", "window_id", "condition")
        values, index = rows["value"].to_numpy(), self._draws.index(rows["cluster"].to_numpy())
        k = len(self._draws.labels)
        sums, sizes = (np.bincount(index, weights, k).astype(np.float64) for weights in (values, None))
        return _Part(center(values, card), resampled(values, index, card, self._draws), sums, sizes, rows.height)

    @staticmethod
    def _mean_replicates(parts: Sequence[_Part]) -> Floats:
        # A resample in which a system has no window says nothing about the type.
        again: Floats = np.array([part.replicates for part in parts]).mean(axis=0)
        return again

    @staticmethod
    def _by_cluster(parts: Sequence[_Part]) -> Floats:
        """Mean over systems of the mean in each cluster (k,), NaN where no system has a window in it."""
        with np.errstate(invalid="ignore"):
            means = np.array([part.sums / part.sizes for part in parts])
        held = ~np.isnan(means)
        return np.where(held.any(axis=0), np.nansum(means, axis=0) / np.maximum(held.sum(axis=0), 1), np.nan)

    def _p(self, by_cluster: Floats) -> float | None:
        rng = generator_from("types-sign-flip/1", self._track)
        p = float(sign_flip_tests(by_cluster[:, None], rng=rng)[0])
        return None if np.isnan(p) else p

    @staticmethod
    def _clusters(parts: Sequence[_Part]) -> int:
        return int((np.sum([part.sizes for part in parts], axis=0) > 0).sum())

    def _made(
        self,
        value: float,
        again: Floats,
        parts: Sequence[_Part],
        p: float | None,
        n_systems: int | None = None,
        limits: tuple[float, float] | None = None,
    ) -> Estimate:
        n, clusters = sum(part.n for part in parts), self._clusters(parts)
        systems = len(parts) if n_systems is None else n_systems
        if clusters < 2:
            why = "all windows are of one cluster"
            return Estimate(value, p=p, n_systems=systems, n=n, n_clusters=clusters, why=why)
        if limits is not None and alike(again):
            # Resampling would call it certain.
            low, high = no_spread_interval(value, clusters, *limits, self._level)
            inner = no_spread_interval(value, clusters, *limits, 2 * self._level - 1)
            return Estimate(value, low, high, (inner.low, inner.high), p, systems, n, clusters)
        low, high = percentile_interval(again, self._level, clusters)
        inner = percentile_interval(again, 2 * self._level - 1, clusters)
        return Estimate(value, low, high, (inner.low, inner.high), p, systems, n, clusters)

    def _none(self, metric: str, kinds: Sequence[SystemType]) -> str:
        absent = [TYPE_TITLES[kind] for kind in kinds if not self.members[kind]]
        if absent:
            return f"this run has no {' and no '.join(absent)} system"
        if not self._scored.filter(pl.col("metric") == metric).height:
            title = self._cards[metric].title if metric in self._cards else metric
            return f"this run did not measure it ({title})"
        return "no system of the type has a score"
