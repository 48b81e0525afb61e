"""What a report is made from: stored tables of each track, cards, and where the audio lies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

import polars as pl

from duplex_bench.records.items import Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.tables import (
    ACTIVITY,
    COMPARISONS,
    ITEMS,
    JUDGEMENTS,
    MEASUREMENTS,
    ROLLOUTS,
    STATISTICS,
    WORDS,
    Schema,
)
from duplex_bench.reporting.analysis import MultipartyAnalysis
from duplex_bench.reporting.estimates import AggregateSettings
from duplex_bench.storage.blobs import BlobStore

TRACK_TITLES: Mapping[Track, str] = {"multiparty": "Multiparty", "conversation": "Conversation"}

# What is resampled: windows of one of these are not independent.
CLUSTERS: Mapping[Track, str] = {"multiparty": "scenarios", "conversation": "conversations"}

# Conditions of the multiparty track that a scene has two forms for; other acoustics add more conditions.
ADDRESSING: Final = ("explicit", "implicit")

# The condition of a row of STATISTICS that holds both addressing forms together.
POOLED: Final = "all"

SCHEMAS: Mapping[str, Schema] = {
    "items": ITEMS,
    "rollouts": ROLLOUTS,
    "activity": ACTIVITY,
    "words": WORDS,
    "judgements": JUDGEMENTS,
    "measurements": MEASUREMENTS,
    "statistics": STATISTICS,
    "comparisons": COMPARISONS,
}


class ReportInputError(ValueError):
    """The tables given do not make a report; the message names table and column and says what to do."""


@dataclass(frozen=True, slots=True)
class TrackTables:
    """Every stored table of one track, in the schemas of ``records.tables``, and its metric cards.

    ``aggregation`` holds the level and resamples that its statistics were made with.

    Raises:
        ReportInputError: a table lacks a column of its schema, or a metric is measured that has no card.
    """

    track: Track
    items: pl.DataFrame
    rollouts: pl.DataFrame
    activity: pl.DataFrame
    words: pl.DataFrame
    judgements: pl.DataFrame
    measurements: pl.DataFrame
    statistics: pl.DataFrame
    comparisons: pl.DataFrame
    cards: tuple[MetricCard, ...]
    analysis: MultipartyAnalysis = field(default_factory=MultipartyAnalysis)
    aggregation: AggregateSettings = field(default_factory=AggregateSettings)

    def __post_init__(self) -> None:
        for name, schema in SCHEMAS.items():
            frame: pl.DataFrame = getattr(self, name)
            missing = sorted(set(schema) - set(frame.columns))
            if missing:
                raise ReportInputError(
                    f"table {self.track}/{name} lacks columns {', '.join(missing)}: materialise it again"
                )
        unknown = sorted(set(self.measurements["metric"].drop_nulls()) - {card.id for card in self.cards})
        if unknown:
            raise ReportInputError(
                f"table {self.track}/measurements has metrics without a card: {', '.join(unknown)}: give their cards"
            )

    @property
    def title(self) -> str:
        """Name of the track for people."""
        return TRACK_TITLES[self.track]

    @property
    def headline_cards(self) -> tuple[MetricCard, ...]:
        """Cards of the leaderboard, in card order."""
        return tuple(card for card in self.cards if card.headline)

    @property
    def level_text(self) -> str:
        """The level of its intervals, as captions say it."""
        return f"{100 * self.aggregation.level:g} %"

    @property
    def alpha(self) -> float:
        """Below which a corrected p-value tells two systems apart."""
        return self.aggregation.alpha

    def card(self, metric: str) -> MetricCard:
        """The card of a metric; raises KeyError if there is none."""
        for card in self.cards:
            if card.id == metric:
                return card
        raise KeyError(metric)


@dataclass(frozen=True, slots=True)
class SweepPlace:
    """Where a system stands in a sweep of one setting: whose curve, in which order, under which label."""

    name: str
    at: float
    label: str


SystemType = Literal["full_duplex", "endpointer"]


@dataclass(frozen=True, slots=True)
class SystemInfo:
    """What the report says about a system. ``group`` heads its rows in the leaderboard.

    ``reference`` marks rules and bounds (never speak, always speak, ...): they are shown, never called best.
    ``type`` is who decides when it speaks: the model itself, or an endpointer on silence; None for rules and readers.
    ``conformance`` is the level that the adapter reached in the conformance suite, where it was checked.
    """

    name: str
    title: str
    family: str = ""
    group: str = "Systems"
    reference: bool = False
    type: SystemType | None = None
    summary: str = ""
    licence: str = ""
    stands_in_for: str = ""
    conformance: str = ""
    sweep: SweepPlace | None = None
    card: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StandIn:
    """One embedded engine: what it does here and what a full-size run would use in its place."""

    role: str
    engine: str
    stands_in_for: str
    licence: str = ""
    consequence: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of the report. The caption says n and method; ``frame`` is what CSV and Parquet hold."""

    id: str
    title: str
    caption: str
    frame: pl.DataFrame


@dataclass(frozen=True, slots=True)
class SiteSettings:
    """How the site is built.

    ``build``: "local" plays everything; "public" leaves out the audio and words that systems heard (design 11).
    ``peaks_per_s``: waveform resolution in points per second (ours). ``examples``: listed windows per metric page
    and verdict (ours). ``both_sides``: about so many runs have players with both channels, by whole items drawn by
    hash, beside those that are listed as examples; the others play the system's stored audio alone (ours). At 1.5 MB
    and 0.1 s of processor time for a scene, the files of all runs of a paper-size report would take 180 GB.
    """

    build: Literal["local", "public"] = "local"
    peaks_per_s: int = 50
    examples: int = 6
    both_sides: int = 1000


@dataclass(frozen=True, slots=True)
class ReportInputs:
    """All that ``site.build_site`` needs. ``provenance`` is flat, name to text: commit, lock hash, profile digest.

    ``warnings`` are what a reader must know before believing a number: a judge that shares its maker with a system,
    results scored anew. ``unmeasured`` says by metric id why this run has no row of it.
    """

    title: str
    run_id: str
    profile: str
    tracks: tuple[TrackTables, ...]
    systems: tuple[SystemInfo, ...]
    blobs: BlobStore
    provenance: Mapping[str, str] = field(default_factory=dict)
    stand_ins: tuple[StandIn, ...] = ()
    extra_tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    settings: SiteSettings = SiteSettings()

    def __post_init__(self) -> None:
        names = [system.name for system in self.systems]
        if len(set(names)) != len(names):
            raise ReportInputError("two systems of the report have one name: give each card its own")
        for tables in self.tracks:
            unknown = sorted(set(tables.rollouts["system"].drop_nulls()) - set(names))
            if unknown:
                raise ReportInputError(
                    f"table {tables.track}/rollouts has systems without a card: {', '.join(unknown)}: list them"
                )

    def system(self, name: str) -> SystemInfo:
        """What is known about a system; raises KeyError if it has no card here."""
        for system in self.systems:
            if system.name == name:
                return system
        raise KeyError(name)
