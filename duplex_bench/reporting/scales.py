"""The scale of a metric's bars and panels: made for the systems that are evaluated, with room for what bounds them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import polars as pl

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.reporting.inputs import SystemInfo

Side = Literal["", "left", "right"]


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of a scale, in the metric's unit."""

    low: float
    high: float

    def side(self, value: float) -> Side:
        """On which side of the scale a value lies; empty where it lies on it."""
        return "left" if value < self.low else "right" if value > self.high else ""

    def per_cent(self, value: float | None) -> float | None:
        """Where a value lies, 0 to 100; what is off the scale lies at its end, what is missing nowhere."""
        if value is None or value != value:
            return None
        return round(100.0 * min(max((value - self.low) / (self.high - self.low), 0.0), 1.0), 2)


def scale_of(statistics: pl.DataFrame, card: MetricCard, systems: Sequence[SystemInfo]) -> Scale:
    """0 to 1 for rates; else from the least to the greatest bound, with a margin, 0 and the target.

    A rule that always speaks would stretch the scale of a latency until systems fall together: reference policies
    count only where nothing else was scored.
    """
    if card.statistic == "rate":
        return Scale(0.0, 1.0)
    rows = statistics.filter(pl.col("metric") == card.id)
    policies = [one.name for one in systems if one.reference and one.family == "policy"]
    values = _known(rows.filter(~pl.col("system").is_in(policies))) or _known(rows)
    if card.target is not None:
        values.append(card.target)
    if not values:
        return Scale(0.0, 1.0)
    low, high = min([*values, 0.0]), max(values)
    margin = 0.06 * (high - low) or 0.5
    return Scale(low - (margin if low < 0 else 0.02 * (high - low)), high + margin)


def _known(rows: pl.DataFrame) -> list[float]:
    return [v for name in ("estimate", "low", "high") for v in rows[name].to_list() if v is not None and v == v]
