"""Latency at turn ends with and without what the harness itself waited before it asked for the reply (design 6)."""

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from duplex_bench.reporting.inputs import Table, TrackTables
from duplex_bench.rollout.record import read_events
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.systems.card import SystemCard

_LATENCY: Final = "turn_end_latency"
_WAITS: Final = ("commit_wait_s", "extra_wait_s")
_SCHEMA: Final = {
    "system": pl.String, "n": pl.Int64, "latency_s": pl.Float64, "without_waits_s": pl.Float64,
    "commit_wait_s": pl.Float64, "extra_wait_s": pl.Float64,
}  # fmt: skip


def protocol_waits(workspace: Workspace, tables: TrackTables, cards: Sequence[SystemCard]) -> Table | None:
    """Median latency of systems that were asked for their replies, as measured and less the waits; None without any.

    Args:
        workspace: Where event logs are stored.
        tables: The track.
        cards: Of the systems: those that are driven frame by frame are never asked.
    """
    asked = [card.name for card in cards if card.driver == "realtime"]
    mine = tables.measurements.filter(
        (pl.col("metric") == _LATENCY) & pl.col("value").is_not_null() & pl.col("system").is_in(asked)
    ).join(tables.rollouts.select("rollout_key", "events"), on="rollout_key", how="inner")
    rows = []
    for (system,), part in mine.sort("system", "rollout_key").group_by("system", maintain_order=True):
        found = [
            {"latency": row["value"], **waits}
            for row in part.iter_rows(named=True)
            for waits in [_waits(workspace.blobs, row["events"])]
            if waits is not None
        ]
        if not found:
            continue
        frame = pl.DataFrame(found)
        rows.append(
            {"system": system, "n": frame.height, "latency_s": frame["latency"].median(),
             "without_waits_s": (frame["latency"] - frame.select(pl.sum_horizontal(_WAITS)).to_series()).median(),
             **{name: frame[name].median() for name in _WAITS}}
        )  # fmt: skip
    if not rows:
        return None
    return Table(
        "conversation-protocol-waits",
        "Conversation: turn-end latency with and without the protocol's waits",
        "Turn ends at which a reply was requested, rollouts with words; medians. latency: as in the main results, from "
        "the turn end to the first word. without waits: less what the harness waited before it asked, until the commit "
        "was confirmed and what the protocol adds to that (P2 waits 0.5 s more for xAI, which overstates that "
        "system's own latency).",
        pl.DataFrame(rows, schema=_SCHEMA),
    )


def _waits(blobs: BlobStore, events: str | None) -> Mapping[str, float] | None:
    if events is None:
        return None
    try:
        told = read_events(events, blobs)
    except KeyError:
        # A log that the store lost: the rollout has its score, and what was waited in it is not known.
        return None
    asked = next((one for one in told if one["kind"] == "reply_requested"), None)
    return None if asked is None else {name: float(asked[name]) for name in _WAITS}
