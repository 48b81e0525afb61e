"""Items as a table and back."""

from collections.abc import Iterable, Sequence

import polars as pl

from duplex_bench.records import tables
from duplex_bench.records.items import Item, Reference, Stimulus
from duplex_bench.storage.digests import draw_order, stimulus_digest
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.serial import from_json, to_json


def items_frame(items: Iterable[Item]) -> pl.DataFrame:
    """One row per item: the stimulus and the sealed reference as two JSON columns."""
    rows: list[dict[str, object]] = [
        {
            "item_id": item.item_id,
            "track": item.track,
            "cluster": item.cluster,
            "condition": item.condition,
            "protocol": item.stimulus.protocol,
            "stimulus_digest": stimulus_digest(item.stimulus),
            "stimulus": to_json(item.stimulus),
            "reference": to_json(item.reference),
            "licence": item.licence,
            "language": item.language,
            "live_s": item.stimulus.live.n_samples / item.stimulus.live.sample_rate_hz,
        }
        for item in items
    ]
    return frame_of(rows, tables.ITEMS)


def limited(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    """At most ``limit`` items by smallest H(seed, id), in the order given; whole clusters are not kept together."""
    if limit is None or limit >= len(items):
        return list(items)
    kept = set(draw_order(seed, [item.item_id for item in items])[:limit])
    return [item for item in items if item.item_id in kept]


def items_of(frame: pl.DataFrame) -> dict[str, Item]:
    """The items of a table, by id."""
    return {
        row["item_id"]: Item(
            item_id=row["item_id"],
            track=row["track"],
            cluster=row["cluster"],
            condition=row["condition"],
            stimulus=from_json(Stimulus, row["stimulus"]),
            reference=from_json(Reference, row["reference"]),
            licence=row["licence"],
            language=row["language"],
        )
        for row in frame.iter_rows(named=True)
    }
