"""One script file per item: all that the player needs to show the item and every system's run of it."""

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from duplex_bench.records.items import Reference, Stimulus
from duplex_bench.reporting.inputs import ReportInputError, ReportInputs, TrackTables
from duplex_bench.reporting.public_filter import public_attributes, public_events, public_labels
from duplex_bench.reporting.site.media import make_media, peaks_of, stored_media
from duplex_bench.reporting.site.titles import item_title
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.serial import from_json

Row = dict[str, Any]
Both = Callable[[str, Row], bool]
# Drawn as marks; audio chunks are the waveform itself.
_UNDRAWN_EVENTS = frozenset({"audio"})
_EVENT_TIMES = ("at_s", "available_s", "heard_s", "model_time_s", "t_s")
_TOLD = ("rubric", "rubric_version", "judge", "verdict", "reason", "raw")
_EVENT_BLOB_KINDS = ("jsonl.gz", "events", "jsonl")


@dataclass(frozen=True, slots=True)
class ItemChunk:
    """What one item's script file holds, and the row it gets in the list of items."""

    item_id: str
    data: Row


@dataclass(frozen=True, slots=True)
class ItemRows:
    """Rows of one item: rollouts in order, the others by rollout, verdicts by rollout and window."""

    rollouts: list[Row]
    activity: Mapping[str, Row]
    words: Mapping[str, Row]
    measurements: Mapping[tuple[Any, ...], list[Row]]
    judgements: Mapping[tuple[Any, ...], list[Row]]


class TrackIndex:
    """The tables of a track, parted by item; rows become plain objects only for the item that is asked for.

    A run of the papers' size has millions of rows, whose objects at once would take several times the memory of the
    tables. ``systems`` are names in the order in which an item's runs are given.
    """

    def __init__(self, tables: TrackTables, systems: Sequence[str] = ()) -> None:
        self.tables = tables
        self.order = {card.id: place for place, card in enumerate(tables.cards)}
        rank = {name: place for place, name in enumerate(systems)}
        # An item's runs stand in the order of the report's rows.
        place = pl.col("system").replace_strict(rank, default=len(rank), return_dtype=pl.Int64)
        rollouts = tables.rollouts.sort(place, "system", "repeat")
        of_items = rollouts.select("rollout_key", "item_id").unique(maintain_order=True)
        self._parts = {
            "rollouts": _by_item(rollouts),
            "measurements": _by_item(tables.measurements),
            "judgements": _by_item(tables.judgements),
            # Equal stimuli of two items share a rollout, and with it what was heard.
            "activity": _by_item(tables.activity.join(of_items, on="rollout_key")),
            "words": _by_item(tables.words.join(of_items, on="rollout_key")),
        }

    def of_item(self, item_id: str) -> ItemRows:
        """All rows of one item."""
        rows = {name: parts[item_id].to_dicts() if item_id in parts else [] for name, parts in self._parts.items()}
        return ItemRows(
            rollouts=rows["rollouts"],
            activity={row["rollout_key"]: row for row in rows["activity"]},
            words={row["rollout_key"]: row for row in rows["words"]},
            measurements=_grouped(rows["measurements"], "rollout_key"),
            judgements=_grouped(rows["judgements"], "rollout_key", "window_id"),
        )


def _by_item(frame: pl.DataFrame) -> Mapping[str, pl.DataFrame]:
    return {str(item_id): part for (item_id,), part in frame.partition_by("item_id", as_dict=True).items()}


def _grouped(rows: list[Row], *names: str) -> Mapping[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[name] for name in names)].append(row)
    return groups


def item_chunks(
    inputs: ReportInputs, index: TrackIndex, folder: Path, earlier: Path | None, both_sides: Both
) -> Iterator[ItemChunk]:
    """Every item of a track with its runs; writes the media files into ``folder`` as it goes.

    ``both_sides`` says of an item and a rollout whether its player has both channels.

    Raises:
        ReportInputError: an item's stimulus or reference is not readable, naming the item.
    """
    for row in index.tables.items.sort("condition", "item_id").iter_rows(named=True):
        try:
            stimulus = from_json(Stimulus, row["stimulus"])
            reference = from_json(Reference, row["reference"])
        except ValueError as error:
            raise ReportInputError(
                f"table {index.tables.track}/items, item {row['item_id']}: stimulus or reference is unreadable "
                f"({error}): materialise items again"
            ) from error
        yield ItemChunk(row["item_id"], _item(inputs, index, row, stimulus, reference, folder, earlier, both_sides))


def _item(
    inputs: ReportInputs,
    index: TrackIndex,
    row: Row,
    stimulus: Stimulus,
    reference: Reference,
    folder: Path,
    earlier: Path | None,
    both_sides: Both,
) -> Row:
    shows_input = inputs.settings.build == "local"
    attributes = reference.attributes if shows_input else public_attributes(reference.attributes)
    heard_peaks: str | None = None
    runs = []
    found = index.of_item(row["item_id"])
    for rollout in found.rollouts:
        alone = not both_sides(row["item_id"], rollout)
        media = (
            stored_media(rollout["listener_audio"], inputs.blobs, folder)
            if alone
            else make_media(
                stimulus.live if shows_input else None,
                rollout["listener_audio"],
                blobs=inputs.blobs,
                folder=folder,
                earlier=earlier,
                timeline_s=rollout["timeline_s"] or 0.0,
                peaks_per_s=inputs.settings.peaks_per_s,
            )
        )
        if media is not None and media.heard is not None:
            heard_peaks = media.heard
        runs.append(
            {
                **_run(inputs, index, found, rollout),
                "alone": alone,
                "media": None if media is None else media.path,
                "duration": max(rollout["timeline_s"] or 0.0, 0.0 if media is None else media.duration_s),
                "peaks": None if media is None else media.system,
            }
        )
    if shows_input and runs and heard_peaks is None:
        heard_peaks = peaks_of(stimulus.live, inputs.blobs, inputs.settings.peaks_per_s)
    live_s = stimulus.live.n_samples / stimulus.live.sample_rate_hz
    return {
        "id": row["item_id"],
        "title": item_title(row["item_id"], row["condition"], row["cluster"], attributes),
        "track": row["track"],
        "condition": row["condition"],
        "cluster": row["cluster"],
        "protocol": row["protocol"],
        "licence": row["licence"],
        "language": row["language"],
        "stimulus": row["stimulus_digest"],
        "source": stimulus.live.source,
        "live_s": live_s,
        "per_s": inputs.settings.peaks_per_s,
        "heard": heard_peaks,
        "gold": reference.gold_answer if shows_input else None,
        "reply": reference.human_reply.text if reference.human_reply and shows_input else None,
        "attributes": {name: str(value) for name, value in sorted(attributes.items())},
        "turns": _turns(reference) if shows_input else [],
        "windows": [
            {
                "id": window.window_id,
                "kind": window.kind,
                "start": window.start_s,
                "end": window.end_s,
                "marks": window.marks,
                "labels": window.labels if shows_input else public_labels(window.labels),
            }
            for window in reference.windows
        ],
        "runs": runs,
    }


def _turns(reference: Reference) -> list[list[Any]]:
    """Who, what, start, end, and whether it was heard: the reply of the real person is known but not played."""
    named: list[str] = []
    told = [str(reference.attributes.get(name, "")).split() for name in ("speakers", "turn_types")]
    if all(len(names) == len(reference.transcript) for names in told):
        named = [f"{speaker} {kind}" for speaker, kind in zip(*told, strict=True)]
    turns: list[list[Any]] = []
    instructed = reference.attributes.get("preamble_end_s")
    if isinstance(instructed, float) and instructed > 0:
        turns.append(["preamble", "spoken instruction", 0.0, instructed, True])
    for place, turn in enumerate(reference.transcript):
        heard = turn.role == "user"
        who = named[place] if named else "user" if heard else "the person, not played"
        turns.append([who, turn.text, turn.start_s, turn.end_s, heard])
    return turns


def _run(inputs: ReportInputs, index: TrackIndex, found: ItemRows, rollout: Row) -> Row:
    key = rollout["rollout_key"]
    public = inputs.settings.build == "public"
    events = read_events(inputs.blobs, rollout["events"])
    activity = found.activity.get(key)
    words = found.words.get(key)
    system = inputs.system(rollout["system"])
    return {
        "system": system.name,
        "title": system.title,
        "key": key,
        "repeat": rollout["repeat"],
        "outcome": rollout["outcome"],
        "reason": rollout["reason"],
        "audio": rollout["listener_audio"],
        "eventlog": rollout["events"],
        "compute_s": rollout["compute_s"],
        "gate": activity["gate_s"] if activity else None,
        "vad": activity["vad_s"] if activity else None,
        "text": words["text"] if words else None,
        "engine": words["engine"] if words else None,
        "words": [[w["text"], w["start_s"], w["end_s"], w["aligned"]] for w in words["words"] or []] if words else [],
        "events": public_events(events) if public else events,
        "scores": [_score(index, found, row) for row in _ordered(index, found.measurements.get((key,), []))],
    }


def _ordered(index: TrackIndex, rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["at_s"] or 0.0, row["window_id"], index.order[row["metric"]]))


def _score(index: TrackIndex, found: ItemRows, row: Row) -> Row:
    card = index.tables.card(row["metric"])
    judgements = found.judgements.get((row["rollout_key"], row["window_id"]), [])
    return {
        "id": row["measurement_id"],
        "metric": card.id,
        "title": card.title,
        "version": row["metric_version"],
        "statistic": card.statistic,
        "direction": card.direction,
        "unit": card.unit,
        "headline": card.headline,
        "window": row["window_id"],
        "value": row["value"],
        "reason": row["reason"],
        "at": row["at_s"],
        "details": json.loads(row["details"]) if row["details"] else {},
        "judgements": [{name: judgement[name] for name in _TOLD} for judgement in judgements],
    }


def read_events(blobs: BlobStore, digest: str | None) -> list[Row]:
    """Marks to draw from a rollout's stored event log: time in seconds, kind, text. No log gives no marks.

    Raises:
        KeyError: the log is named but not stored.
    """
    if digest is None:
        return []
    for kind in _EVENT_BLOB_KINDS:
        if blobs.store.exists(blobs.key(digest, kind)):
            data = blobs.get(digest, kind)
            break
    else:
        raise KeyError(f"event log {digest}")
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8")
    marks = []
    last: tuple[str, Any, str] | None = None
    for line in text.splitlines():
        event = json.loads(line)
        at = next((event[name] for name in _EVENT_TIMES if event.get(name) is not None), None)
        kind = str(event.get("kind", event.get("type", "event")))
        if at is not None and kind not in _UNDRAWN_EVENTS:
            note = str(event.get("text") or event.get("state") or event.get("reason") or "")
            # A system may say its state or a word at every unit: a mark is drawn where something begins.
            now = (kind, event.get("response_id"), note if kind == "state" else "")
            if now != last:
                marks.append({"t": float(at), "kind": kind, "text": note})
            last = now
    return marks
