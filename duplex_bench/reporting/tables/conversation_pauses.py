"""Takeovers in groups of pauses: by labelled length, by curation ranking, and system against system."""

import math
from collections.abc import Collection, Sequence
from itertools import combinations, pairwise
from typing import Final

import polars as pl

from duplex_bench.reporting.estimates import Row
from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.reporting.tables.conversation_results import made
from duplex_bench.reporting.tables.multiparty_windows import Rates
from duplex_bench.statistics import mcnemar_exact

TAKEOVER: Final = "pause_takeover"
# P2 names "under 0.8 s" and "over 2.5 s"; the edges between are ours.
LENGTH_EDGES_S: Final = (0.0, 0.8, 1.0, 1.5, 2.5, math.inf)
# Fewer rollouts have no rate (P2 figure 7: bins hold at least ten).
LEAST_PER_BIN: Final = 10
TERCILES: Final = ("lowest third", "middle third", "highest third")
_RATE: Final = (
    ("n", pl.Int64),
    ("takeovers", pl.Int64),
    ("rate", pl.Float64),
    ("low", pl.Float64),
    ("high", pl.Float64),
    ("reason", pl.String),
)


def pauses(tables: TrackTables) -> pl.DataFrame:
    """Scored takeover measurements with ``pause_s`` and ``ranking`` of their point."""
    attribute = pl.col("reference").str.json_path_match
    about = tables.items.select(
        "item_id",
        attribute("$.attributes.pause_s").cast(pl.Float64).alias("pause_s"),
        attribute("$.attributes.ranking").cast(pl.Float64).alias("ranking"),
    )
    scored = tables.measurements.filter((pl.col("metric") == TAKEOVER) & pl.col("value").is_not_null())
    return scored.join(about, on="item_id", how="inner").drop_nulls("pause_s")


def bin_name(low: float, high: float) -> str:
    """A bin of pause length in words."""
    if math.isinf(high):
        return f"{low:g} s and more"
    return f"under {high:g} s" if low == 0 else f"{low:g} to {high:g} s"


def by_length(tables: TrackTables, edges_s: Sequence[float] = LENGTH_EDGES_S) -> Table:
    """Takeover rate by labelled pause length (P2 figure 7)."""
    frame, rates = pauses(tables), Rates(tables)
    # Window edges lie on samples: the whole millisecond decides which bin a pause is in.
    length = pl.col("pause_s").round(3)
    rows: list[Row] = []
    for (system,), mine in frame.sort("system").group_by("system", maintain_order=True):
        for low, high in pairwise(edges_s):
            part = mine.filter((length >= low) & (length < high))
            found = {
                "system": system,
                "pause": bin_name(low, high),
                "from_s": low,
                "to_s": None if math.isinf(high) else high,
            }
            rows.append({**found, "median_pause_s": part["pause_s"].median(), **_rate(part, rates)})
    return made(
        "takeover-by-length",
        "takeovers by pause length",
        f"Share of pauses taken over, by labelled length. A bin of fewer than {LEAST_PER_BIN} rollouts has no rate. "
        "Intervals resample conversations.",
        rows,
        [("system", pl.String), ("pause", pl.String), ("from_s", pl.Float64), ("to_s", pl.Float64),
         ("median_pause_s", pl.Float64), *_RATE],
    )  # fmt: skip


def by_tercile(tables: TrackTables) -> Table:
    """Takeover rate by tercile of the curation ranking (P2 table 13); ties are broken by item id.

    The points are cut once, so that a third holds the same points for every system.
    """
    frame, rates = pauses(tables).drop_nulls("ranking"), Rates(tables)
    points = frame.select("item_id", "ranking").unique().sort("ranking", "item_id")
    cuts = [round(points.height * part / len(TERCILES)) for part in range(len(TERCILES) + 1)]
    thirds = [points.slice(first, last - first) for first, last in pairwise(cuts)]
    rows: list[Row] = []
    for (system,), mine in frame.sort("system").group_by("system", maintain_order=True):
        for name, third in zip(TERCILES, thirds, strict=True):
            part = mine.join(third.select("item_id"), on="item_id", how="semi")
            found = {"system": system, "ranking": name, "from": third["ranking"].min(), "to": third["ranking"].max()}
            rows.append({**found, **_rate(part, rates)})
    return made(
        "takeover-by-ranking",
        "takeovers by tercile of the curation ranking",
        "Whether the selection of points favours a system: pauses in thirds by the heuristic score that ranked them, "
        "the same points for every system. "
        f"Fewer than {LEAST_PER_BIN} rollouts have no rate.",
        rows,
        [("system", pl.String), ("ranking", pl.String), ("from", pl.Float64), ("to", pl.Float64), *_RATE],
    )  # fmt: skip


def _rate(part: pl.DataFrame, rates: Rates) -> Row:
    counted: Row = {"n": part.height, "takeovers": int(part["value"].sum())}
    if part.height < LEAST_PER_BIN:
        return {**counted, "reason": f"{part.height} pauses, at least {LEAST_PER_BIN} wanted"}
    found = rates.of(part, TAKEOVER)
    return {**counted, **{name: found[name] for name in ("rate", "low", "high")}}


def pairs(tables: TrackTables, references: Collection[str] = ()) -> Table:
    """Which of two systems took the same pause (P2 appendix E: the two endpointers of one system)."""
    frame = pauses(tables)
    systems = {
        str(name): part.select("item_id", "window_id", "value")
        for (name,), part in frame.group_by("system", maintain_order=True)
        if name not in references
    }
    rows: list[Row] = []
    for a, b in combinations(sorted(systems), 2):
        shared = systems[a].join(systems[b], on=["item_id", "window_id"], suffix="_b")
        if not shared.height:
            continue
        ours, theirs = shared["value"] == 1.0, shared["value_b"] == 1.0
        only_a, only_b = int((ours & ~theirs).sum()), int((~ours & theirs).sum())
        rows.append(
            {"system_a": a, "system_b": b, "n_shared": shared.height, "both": int((ours & theirs).sum()),
             "only_a": only_a, "only_b": only_b, "neither": int((~ours & ~theirs).sum()),
             "p_mcnemar": mcnemar_exact(only_a, only_b)}
        )  # fmt: skip
    return made(
        "takeover-pairs",
        "takeovers, paired",
        "On the pauses where both systems were scored: taken by both, by one, by neither. Two settings of one "
        "endpointer in a row say what that setting does to single pauses.",
        rows,
        [("system_a", pl.String), ("system_b", pl.String), ("n_shared", pl.Int64), ("both", pl.Int64),
         ("only_a", pl.Int64), ("only_b", pl.Int64), ("neither", pl.Int64), ("p_mcnemar", pl.Float64)],
    )  # fmt: skip
