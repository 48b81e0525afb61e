"""What a metric means, in one place, for scores, docs and report alike."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class MetricCard:
    """A metric's definition. ``statistic`` says how windows are aggregated: a rate or mean, a median with quartiles.

    ``headline`` metrics appear in the leaderboard; ``ours`` marks what the papers do not define.
    """

    id: str
    track: Literal["multiparty", "conversation"]
    title: str
    unit: str
    direction: Literal["higher", "lower", "target", "none"]
    statistic: Literal["rate", "mean", "median"]
    window: str
    denominator: str
    excluded: str
    edge_cases: str
    source: str
    version: int
    headline: bool = False
    ours: bool = False
    target: float | None = None
    minimum_n: int = 2
