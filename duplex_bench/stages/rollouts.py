"""Every item run on one system: what is planned, what is done already, and how each run ended."""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import polars as pl

from duplex_bench.records import tables
from duplex_bench.records.items import Protocol, Stimulus, Track
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.rollouts import RolloutRecord
from duplex_bench.rollout import realtime
from duplex_bench.rollout.frame_stepped import DRIVER_VERSION
from duplex_bench.rollout.plan import StreamPlan, plan_for
from duplex_bench.rollout.record import EVENTS_KIND, execution_key, read_events
from duplex_bench.stages import rollout_tasks
from duplex_bench.stages.pool import pool
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.rollout_costs import paid_sessions
from duplex_bench.stages.rollout_tasks import RolloutTask
from duplex_bench.stages.shared_sessions import SharedSessions, shares_a_loop
from duplex_bench.stages.work import IN_FLIGHT_PER_RUN, Task, WorkDone, resume
from duplex_bench.stages.worker_rollouts import WorkerRollouts
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.digests import history_words_digest
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.happenings import Value
from duplex_bench.storage.ledger import ItemLedger
from duplex_bench.storage.serial import from_json
from duplex_bench.systems.card import SystemCard, missing_env
from duplex_bench.systems.environments import not_set_up
from duplex_bench.systems.workers import Launch, plain_launch


@dataclass(frozen=True, slots=True)
class PlannedRollout:
    """One run of one system on one item: its key says all that its result depends on."""

    item_id: str
    protocol: Protocol
    stimulus_digest: str
    stimulus: str
    live_s: float
    plan: StreamPlan
    repeat: int
    rollout_key: str


def planned_rollouts(workspace: Workspace, items: pl.DataFrame, card: SystemCard) -> Iterator[PlannedRollout]:
    """Every run that the profile asks for, in the order of the items, repeats together."""
    settings = workspace.profile.rollout
    for row in items.iter_rows(named=True):
        plan = plan_for(row["protocol"], settings.protocols)
        words = history_words_digest(from_json(Stimulus, row["stimulus"])) if card.word_times else None
        for repeat in range(settings.repeats):
            key = execution_key(
                card.execution_digest(),
                row["stimulus_digest"],
                plan,
                repeat,
                card.adapter_version,
                card.model_id,
                card.epoch,
                realtime.DRIVER_VERSION if card.driver == "realtime" else DRIVER_VERSION,
                words,
            )
            yield PlannedRollout(
                row["item_id"],
                row["protocol"],
                row["stimulus_digest"],
                row["stimulus"],
                row["live_s"],
                plan,
                repeat,
                key,
            )


def why_not(card: SystemCard, track: Track, protocol: Protocol) -> str | None:
    """Why a system takes no part in a stimulus, or None."""
    if track not in card.tracks:
        return f"the card names no {track} track"
    return None if protocol in card.protocols else f"the card names no {protocol} protocol"


def rollout_ledger(workspace: Workspace, track: Track, system: str) -> ItemLedger:
    """The ledger of finished runs of one system on one track."""
    return workspace.ledger(f"{track}/rollouts/{system}")


def rollouts(
    workspace: Workspace, track: Track, items: pl.DataFrame, card: SystemCard, launch: Launch = plain_launch
) -> StageResult:
    """Run ``card``'s system on every item: one row per item and repeat, whatever the outcome.

    ``launch`` is around the life of each worker, if the system has an environment of its own.
    """
    missing = missing_env(card, os.environ)
    if missing:
        raise ValueError(f"system {card.name} cannot run here: set {', '.join(missing)} in the environment")
    undone = not_set_up(card, workspace.data / "cache")
    if undone is not None:
        raise ValueError(f"system {card.name} cannot run here: {undone}")
    planned = list(planned_rollouts(workspace, items, card))
    attempts = workspace.profile.rollout.attempts
    tasks = [
        Task(
            one.rollout_key,
            one.item_id,
            RolloutTask(one.rollout_key, one.stimulus, one.plan, one.repeat, attempts, card.word_times),
        )
        for one in planned
        if why_not(card, track, one.protocol) is None
    ]
    ledger = rollout_ledger(workspace, track, card.name)
    waiting = _waiting(planned, ledger, tasks)
    texts = sum(text_items(one) for one in waiting) if card.provider else 0
    with paid_sessions(workspace, card, ledger, sum(map(listened_s, waiting)), texts) as paid:
        done = _resumed(workspace, track, card, ledger, tasks, launch)
        paid({key: done.payloads[key] for key in done.computed})
    rows = [_row(one, card, track, done) for one in planned]
    frame = frame_of(rows, tables.ROLLOUTS)
    by_outcome = {f"outcome_{name}": count for name, count in frame["outcome"].value_counts().iter_rows()}
    totals = {
        "audio_minutes": round(float(frame["timeline_s"].sum()) / 60, 2),
        "compute_s": round(float(frame["compute_s"].sum()), 2),
    }
    return StageResult(frame, {**done.counts(), **by_outcome, **totals}, preview=frame.drop("listener_audio", "events"))


def _waiting(planned: list[PlannedRollout], ledger: ItemLedger, tasks: list[Task]) -> list[PlannedRollout]:
    waiting = {task.key for task in tasks} - set(ledger.finished())
    return [one for one in planned if one.rollout_key in waiting]


def text_items(one: PlannedRollout) -> int:
    """How many turns of history a run begins with: some vendors charge for each."""
    return len(from_json(Stimulus, one.stimulus).history)


def listened_s(one: PlannedRollout) -> float:
    """The longest that a run is listened to."""
    return one.live_s + (one.plan.cap_s or one.plan.silence_after_s + one.plan.extra_silence_s)


def _resumed(
    workspace: Workspace, track: Track, card: SystemCard, ledger: ItemLedger, tasks: list[Task], launch: Launch
) -> WorkDone:
    resumed = partial(
        resume,
        ledger,
        f"{track} rollouts {card.name}",
        tasks,
        final=rollout_tasks.is_final,
        details=partial(_told_of, workspace.blobs, track, card),
        in_flight=max(IN_FLIGHT_PER_RUN, card.max_inflight),
    )
    if card.environment.kind != "none":
        # The work is done in the workers: here a thread each drives them.
        with WorkerRollouts(workspace.data, card, launch) as workers, ThreadPoolExecutor(card.max_inflight) as threads:
            return resumed(workers.run, threads)
    if shares_a_loop(card):
        # A thread each prepares and stores items; the sessions themselves are all in one loop beside them.
        with ThreadPoolExecutor(card.max_inflight) as threads, SharedSessions(workspace.data, card) as sessions:
            return resumed(sessions.run, threads)
    return resumed(
        rollout_tasks.run_rollout,
        # What else a realtime session does is not known (an adapter of the user's own, an engine behind it): there are
        # as many as the card allows, a process each.
        pool(card.max_inflight if card.driver == "realtime" else workspace.profile.processes),
        (str(workspace.data), card.model_dump_json(), card.name),
    )


def _told_of(blobs: BlobStore, track: Track, card: SystemCard, payload: str) -> dict[str, Value]:
    """What logs and metrics are told of a rollout that ended."""
    record = from_json(RolloutRecord, payload)
    told: dict[str, Value] = {
        "track": track,
        "system": card.name,
        "outcome": record.outcome.value,
        "reason": record.reason or None,
        "repeat": record.repeat,
        "attempts": record.attempts,
        "wall_s": round(record.wall_s, 3),
        "compute_s": round(record.compute_s, 3),
        "timeline_s": round(record.timeline_s, 3),
    }
    if card.driver == "realtime" and record.events is not None:
        for event in read_events(record.events, blobs):
            if event["kind"] == "pacing":
                sends = event["sends"]
                told |= {f"lateness_{name}": sends[name] for name in ("p99_ms", "worst_ms", "edges_ms", "counts")}
    return told


def _stored_whole(workspace: Workspace, payloads: Sequence[str]) -> set[str]:
    """Records whose audio and events are in the store: one that lost a write after the fact costs a rerun, no run."""
    blobs = workspace.blobs
    needs: dict[str, tuple[str, ...]] = {}
    for payload in payloads:
        record = from_json(RolloutRecord, payload)
        kinds = ((record.listener_audio, "flac"), (record.events, EVENTS_KIND))
        needs[payload] = tuple(blobs.key(digest, kind) for digest, kind in kinds if digest is not None)
    gone = workspace.store.missing(sorted({key for keys in needs.values() for key in keys}))
    return {payload for payload, keys in needs.items() if not gone.intersection(keys)}


def _row(one: PlannedRollout, card: SystemCard, track: Track, done: WorkDone) -> dict[str, object]:
    if one.rollout_key in done.payloads:
        record = from_json(RolloutRecord, done.payloads[one.rollout_key])
    else:
        outcome, reason = Outcome.TRANSPORT_ERROR, done.failed.get(one.rollout_key, "")
        unfit = why_not(card, track, one.protocol)
        if unfit is not None:
            outcome, reason = Outcome.NOT_APPLICABLE, unfit
        record = RolloutRecord(
            rollout_key=one.rollout_key,
            system=card.name,
            stimulus_digest=one.stimulus_digest,
            repeat=one.repeat,
            outcome=outcome,
            reason=reason,
            listener_audio=None,
            sample_rate_hz=0,
            timeline_s=0.0,
            input_s=0.0,
            events=None,
            compute_s=0.0,
            wall_s=0.0,
        )
    row: dict[str, object] = {name: getattr(record, name) for name in tables.ROLLOUTS if name != "item_id"}
    return {**row, "item_id": one.item_id, "system": card.name, "outcome": str(record.outcome)}
