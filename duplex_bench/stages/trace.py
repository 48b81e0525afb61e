"""From one score the whole way back: window, item, rollout, audio, words, verdict, card, code (design 1)."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import polars as pl

from duplex_bench.judging.rubrics import RUBRIC_IDS, rubric
from duplex_bench.records.items import Item, Track
from duplex_bench.reporting.inputs import ADDRESSING, POOLED
from duplex_bench.stages import scoring
from duplex_bench.stages.cards import card_of
from duplex_bench.stages.items import items_of
from duplex_bench.stages.judges import SECOND
from duplex_bench.stages.report import facts
from duplex_bench.stages.rollouts import planned_rollouts
from duplex_bench.stages.stored_run import BESIDE, required, stored, systems_with, tracks_run
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import seed_from
from duplex_bench.storage.frames import from_parquet, read_frame
from duplex_bench.systems.card import SystemCard

Section = Mapping[str, Any]

# How many ids an error names of those that a prefix fits.
_NAMED = 4
_CHAIN = ("rollouts", "activity", "words", "judgements", "measurements")


class TraceError(ValueError):
    """No score, or more than one, has the id given; the message says what to give instead."""


@dataclass(frozen=True, slots=True)
class Lineage:
    """A score and all it came from. A section that does not exist for it holds ``reason`` alone, or is empty.

    Attributes:
        measurement: its row, with ``track`` and details parsed.
        metric: the metric card, with the version that the score was made by.
        window: the region scored, seconds on the listener timeline.
        item: its names and attributes, without the stimulus.
        stimulus: digest, protocol, length, and the recording it is cut from.
        rollout: key, outcome, seed and what it was made from, object keys of audio and events, whether they exist.
        activity: speech intervals with the settings of gate and detector.
        words: the words heard, with the engine's id.
        judgements: verdicts on this window, with rubric version and hash, and the raw reply.
        statistics: the rows of the statistics table that this score enters.
        card: the part of the system's card that decides what it does, with its digest.
        provenance: code of the stored report, else of this checkout; ``of`` says which.
        dagster: asset and path of each step in the Dagster UI.
        report: address of the window in the report.
    """

    measurement: Section
    metric: Section
    window: Section
    item: Section
    stimulus: Section
    rollout: Section
    activity: Section
    words: Section
    judgements: tuple[Section, ...]
    statistics: tuple[Section, ...]
    card: Section
    provenance: Section
    dagster: Section
    report: Section

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return dataclasses.asdict(self)


def trace(workspace: Workspace, measurement_id: str, system: str | None = None) -> Lineage:
    """The lineage of one score.

    Args:
        workspace: the run.
        measurement_id: the id, or the beginning of one that fits one score alone.
        system: whose score, where two cards share a rollout and so an id.

    Raises:
        TraceError: no score or several have that id.
        ValueError: nothing has been run, or a table of the run is missing.
    """
    track, asset, row = _found(workspace, measurement_id.strip().lower(), system)
    item = items_of(required(workspace, track, "items").filter(pl.col("item_id") == row["item_id"])).get(row["item_id"])
    if item is None:
        raise TraceError(
            f"score {row['measurement_id']} is of item {row['item_id']}, which the items table no longer has: "
            f"run duplex-bench run --profile {workspace.profile.name} --track {track}"
        )
    of_system = asset == "measurements"
    no_rollout = {"reason": f"{row['system']} is no system that was run: its scores come from {track}/{asset}"}
    card = _card(workspace, row["system"]) if of_system else None
    judged = _judgements(workspace, track, row) if of_system else ()
    return Lineage(
        measurement={**row, "track": track, "details": json.loads(row["details"])},
        metric=_metric(track, row),
        window=_window(item, row["window_id"]),
        item={
            "item_id": item.item_id, "cluster": item.cluster, "condition": item.condition, "licence": item.licence,
            "language": item.language, "gold_answer": item.reference.gold_answer,
            "attributes": dict(item.reference.attributes),
        },
        stimulus=_stimulus(workspace, track, item),
        rollout=_rollout(workspace, track, row, card) if of_system else no_rollout,
        activity=_of_rollout(workspace, track, "activity", row) if of_system else no_rollout,
        words=_of_rollout(workspace, track, "words", row) if of_system else no_rollout,
        judgements=judged,
        statistics=_statistics(workspace, track, row),
        card=_told(card) if card else {"reason": f"no card of {row['system']} is stored"},
        provenance=_provenance(workspace),
        dagster=_dagster(track, asset, row["system"]),
        report=_report(workspace, row),
    )  # fmt: skip


def _found(workspace: Workspace, wanted: str, system: str | None) -> tuple[Track, str, dict[str, Any]]:
    if not wanted:
        raise TraceError("no id given: take one from column measurement_id of a measurements table or from the report")
    hits: list[tuple[Track, str, dict[str, Any]]] = []
    for track in tracks_run(workspace):
        tables = [("measurements", name) for name in systems_with(workspace, track, "measurements")]
        for asset, name in (*tables, (BESIDE[track], None)):
            table = stored(workspace, track, asset, name)
            if table is not None:
                rows = table.filter(pl.col("measurement_id").str.starts_with(wanted))
                hits += [(track, asset, row) for row in rows.iter_rows(named=True)]
    if system is not None:
        hits = [hit for hit in hits if hit[2]["system"] == system]
    if not hits:
        of = f" of {system}" if system else ""
        raise TraceError(
            f"no score{of} of profile {workspace.profile.name} has an id that begins with {wanted!r}: take one from "
            "column measurement_id of a measurements table, or name the run's profile and folder"
        )
    ids = sorted({row["measurement_id"] for _, _, row in hits})
    if len(ids) > 1:
        more = f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
        raise TraceError(f"{wanted!r} fits {len(ids)} scores ({', '.join(ids[:_NAMED])}{more}): give more of the id")
    if len(hits) > 1:
        names = ", ".join(sorted(row["system"] for _, _, row in hits))
        raise TraceError(f"score {ids[0]} belongs to {names}, whose cards run the same: name one with --system")
    return hits[0]


def _metric(track: Track, row: Mapping[str, Any]) -> Section:
    card = next((card for card in scoring.metric_cards(track) if card.id == row["metric"]), None)
    if card is None:
        return {"id": row["metric"], "scored_by_version": row["metric_version"], "reason": "this code has no such card"}
    return {**dataclasses.asdict(card), "scored_by_version": row["metric_version"]}


def _window(item: Item, window_id: str) -> Section:
    for window in item.reference.windows:
        if window.window_id == window_id:
            return dataclasses.asdict(window)
    return {"window_id": window_id, "reason": "the item has no such window now: its labels or rules have changed"}


def _blob(workspace: Workspace, digest: str | None, kind: str) -> Section:
    if digest is None:
        return {"digest": None, "key": None, "stored": False}
    key = workspace.blobs.key(digest, kind)
    return {"digest": digest, "key": key, "stored": workspace.store.exists(key)}


def _stimulus(workspace: Workspace, track: Track, item: Item) -> Section:
    table = required(workspace, track, "items").filter(pl.col("item_id") == item.item_id)
    live = item.stimulus.live
    return {
        "digest": table["stimulus_digest"].item(),
        "protocol": item.stimulus.protocol,
        "live_s": table["live_s"].item(),
        "live": dataclasses.asdict(live),
        "recording": _blob(workspace, live.source, "flac"),
        "identity_prompt": item.stimulus.identity_prompt,
        "history_turns": len(item.stimulus.history),
    }


def _rollout(workspace: Workspace, track: Track, row: Mapping[str, Any], card: SystemCard | None) -> Section:
    table = required(workspace, track, "rollouts", row["system"]).filter(
        (pl.col("rollout_key") == row["rollout_key"]) & (pl.col("item_id") == row["item_id"])
    )
    if not table.height:
        return {"rollout_key": row["rollout_key"], "reason": "the rollouts table no longer has it: run again"}
    found = dict(table.row(0, named=True))
    found["seed"] = seed_from("rollout", found["stimulus_digest"], found["repeat"])
    found["seed_made_from"] = ["rollout", found["stimulus_digest"], found["repeat"]]
    found["listener_audio"] = _blob(workspace, found["listener_audio"], "flac")
    found["events"] = _blob(workspace, found["events"], "jsonl.gz")
    if card is not None:
        items = required(workspace, track, "items").filter(pl.col("item_id") == row["item_id"])
        planned = [one for one in planned_rollouts(workspace, items, card) if one.repeat == found["repeat"]]
        found["protocol_settings"] = dataclasses.asdict(planned[0].plan) if planned else {}
        found["key_follows_from_card_and_profile"] = any(one.rollout_key == row["rollout_key"] for one in planned)
    return found


def _of_rollout(workspace: Workspace, track: Track, name: str, row: Mapping[str, Any]) -> Section:
    table = stored(workspace, track, name, row["system"])
    found = None if table is None else table.filter(pl.col("rollout_key") == row["rollout_key"])
    if found is None or not found.height:
        return {"reason": f"no {name} of this rollout: it was not scored, or the stage failed on it"}
    return found.row(0, named=True)


def _judgements(workspace: Workspace, track: Track, row: Mapping[str, Any]) -> tuple[Section, ...]:
    found: list[Section] = []
    for name, role in (("judgements", "judge"), (SECOND, "second judge")):
        table = stored(workspace, track, name, row["system"])
        if table is None:
            continue
        mine = table.filter(
            (pl.col("rollout_key") == row["rollout_key"])
            & (pl.col("item_id") == row["item_id"])
            & (pl.col("window_id") == row["window_id"])
        )
        found += [
            {**verdict, "role": role, **_prompt(verdict["rubric"], verdict["rubric_version"])}
            for verdict in mine.iter_rows(named=True)
        ]
    return tuple(found)


def _prompt(name: str, version: int) -> Section:
    """The hash of the prompt file, which is that of the verdict only as long as the version is."""
    if name not in RUBRIC_IDS:
        return {"rubric_sha256": None}
    now = rubric(name)
    return {"rubric_sha256": now.sha256 if now.version == version else None, "rubric_version_now": now.version}


def _statistics(workspace: Workspace, track: Track, row: Mapping[str, Any]) -> tuple[Section, ...]:
    table = stored(workspace, track, "statistics")
    if table is None:
        return ()
    conditions = [row["condition"]]
    if track == "multiparty" and row["condition"] in ADDRESSING:
        conditions.append(POOLED)
    rows = table.filter(
        (pl.col("system") == row["system"])
        & (pl.col("metric") == row["metric"])
        & pl.col("condition").is_in(conditions)
    )
    return tuple(rows.iter_rows(named=True))


def _card(workspace: Workspace, system: str) -> SystemCard | None:
    key = workspace.table_key(("systems", "cards"), system)
    if not workspace.store.exists(key):
        return None
    return card_of(read_frame(workspace.store, key))


def _told(card: SystemCard) -> Section:
    return {
        "system": card.name, "title": card.title, "family": card.family, "driver": card.driver,
        "execution_digest": card.execution_digest(), "execution": card.execution_subset(),
        "stands_in_for": card.stands_in_for,
    }  # fmt: skip


def _provenance(workspace: Workspace) -> Section:
    told = workspace.report_folder / "tables" / "provenance.parquet"
    if not told.is_file():
        return {"of": "this checkout, now: no report is stored", **facts(workspace)}
    rows = from_parquet(told.read_bytes())
    name, value = rows.columns[:2]
    return {"of": "the stored report", **dict(zip(rows[name].to_list(), rows[value].to_list(), strict=True))}


def _dagster(track: Track, asset: str, system: str) -> Section:
    if asset != "measurements":
        return {asset: f"/assets/{track}/{asset}"}
    of = f"?view=partitions&partition={quote(system, safe='')}"
    paths = {name: f"/assets/{track}/{name}{of}" for name in _CHAIN}
    return {"items": f"/assets/{track}/items", **paths, "statistics": f"/assets/{track}/statistics"}


def _report(workspace: Workspace, row: Mapping[str, Any]) -> Section:
    from duplex_bench.reporting.site.pages import play_link

    # Bounds have no run in the player: the link opens the item itself.
    link = play_link(row["item_id"], row["system"] if row["rollout_key"] else None, row["at_s"])
    if not (workspace.report_folder / "play.html").is_file():
        return {"link": link, "address": None, "reason": "no report is stored: duplex-bench report builds it"}
    return {"link": link, "address": f"{workspace.report_folder.as_uri()}/{link}"}
