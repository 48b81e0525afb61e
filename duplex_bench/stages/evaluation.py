"""From items and one system to its measurements: rollouts, activity, words, judgements, scores. Both tracks."""

import json
from collections.abc import Iterable, Iterator

import polars as pl

from duplex_bench.records import tables
from duplex_bench.records.items import Item, Track
from duplex_bench.records.outcome import SCORED_OUTCOMES
from duplex_bench.records.score import Judgement, Measurement
from duplex_bench.records.transcripts import Activity, Transcript
from duplex_bench.speech import engines
from duplex_bench.stages import judges, rollout_tasks, scoring
from duplex_bench.stages.measured import Measured, measured
from duplex_bench.stages.pool import pool
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.rollout_tasks import ListenTask
from duplex_bench.stages.work import Task, WorkDone, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import canonical_json, digest_bytes, digest_value
from duplex_bench.storage.frames import frame_of
from duplex_bench.storage.serial import from_json, to_json

# Raise when the stage's own code changes what it stores; engines, gate and metrics carry versions of their own.
ACTIVITY_VERSION = 1
WORDS_VERSION = 1


def _listened(rollout_table: pl.DataFrame) -> Iterator[tuple[str, str, str | None]]:
    scored = rollout_table.filter(pl.col("outcome").is_in([str(outcome) for outcome in SCORED_OUTCOMES]))
    listed = scored.select("rollout_key", "item_id", "listener_audio")
    yield from listed.unique("rollout_key", keep="first", maintain_order=True).iter_rows()


def activity(workspace: Workspace, track: Track, rollout_table: pl.DataFrame, system: str) -> StageResult:
    """Speech intervals of every scored rollout's listener audio."""
    profile = workspace.profile
    detector = engines.voice_activity(profile.speech.voice_activity)
    tasks = [
        Task(
            digest_value("activity", ACTIVITY_VERSION, key, audio, profile.gate, detector.engine_id),
            item_id,
            ListenTask(key, audio),
        )
        for key, item_id, audio in _listened(rollout_table)
    ]
    done = resume(
        workspace.ledger(f"{track}/activity/{system}"),
        f"{track} activity {system}",
        tasks,
        rollout_tasks.measure_activity,
        executor=pool(profile.processes),
        common=(str(workspace.data), profile.gate, profile.speech),
    )
    rows: list[dict[str, object]] = []
    for found in (from_json(Activity, text) for text in done.payloads.values()):
        row = {name: getattr(found, name) for name in tables.ACTIVITY if name != "system"}
        lists = {name: [list(pair) for pair in row[name]] for name in ("gate_s", "vad_s")}
        rows.append({**row, **lists, "system": system})
    frame = frame_of(rows, tables.ACTIVITY)
    spoken = sum(stop - start for row in rows for start, stop in row["gate_s"])  # type: ignore[attr-defined]
    return StageResult(frame, {**done.counts(), "speech_minutes": round(spoken / 60, 2)})


def words(workspace: Workspace, track: Track, rollout_table: pl.DataFrame, system: str) -> StageResult:
    """Words of every scored rollout's listener audio, with times."""
    profile = workspace.profile
    recogniser = engines.recogniser(profile.speech.recogniser, workspace.store)
    tasks = [
        Task(digest_value("words", WORDS_VERSION, key, audio, recogniser.engine_id), item_id, ListenTask(key, audio))
        for key, item_id, audio in _listened(rollout_table)
    ]
    done = resume(
        workspace.ledger(f"{track}/words/{system}"),
        f"{track} words {system}",
        tasks,
        rollout_tasks.transcribe,
        executor=pool(profile.processes),
        common=(str(workspace.data), profile.speech),
    )
    transcripts = [from_json(Transcript, text) for text in done.payloads.values()]
    rows: list[dict[str, object]] = [
        {
            "rollout_key": found.rollout_key,
            "system": system,
            "text": " ".join(word.text for word in found.words),
            "n_words": len(found.words),
            "words": [
                {"text": w.text, "start_s": w.start_s, "end_s": w.end_s, "aligned": w.aligned} for w in found.words
            ],
            "engine": found.engine,
        }
        for found in transcripts
    ]
    frame = frame_of(rows, tables.WORDS)
    unaligned = sum(not word.aligned for found in transcripts for word in found.words)
    counts = {**done.counts(), "words": int(frame["n_words"].sum()), "words_not_aligned": unaligned}
    return StageResult(frame, counts, preview=frame.drop("words"))


def judgements(
    workspace: Workspace,
    track: Track,
    items: pl.DataFrame,
    rollout_table: pl.DataFrame,
    activity_table: pl.DataFrame,
    words_table: pl.DataFrame,
    system: str,
) -> StageResult:
    """A verdict for every question that a rollout raises, by the judge that the profile names."""
    asked = asked_of(workspace, track, measured(items, rollout_table, activity_table, words_table))
    return judges.judged(workspace, track, system, asked)


def asked_of(workspace: Workspace, track: Track, ones: Iterable[Measured]) -> list[judges.Asked]:
    """What a judge is asked about rollouts that can be scored."""
    return [
        judges.Asked(one.item.item_id, one.rollout_key, question)
        for one in ones
        if one.why_not_scored is None
        for question in scoring.questions(track, one, workspace.profile)
    ]


def measurements(
    workspace: Workspace,
    track: Track,
    items: pl.DataFrame,
    rollout_table: pl.DataFrame,
    activity_table: pl.DataFrame,
    words_table: pl.DataFrame,
    judgement_table: pl.DataFrame,
    system: str,
) -> StageResult:
    """Every metric on every window of every planned rollout: a value or a reason, nothing left out."""
    ones = measured(items, rollout_table, activity_table, words_table)
    found, done = scored(workspace, track, ones, judgement_table, system)
    rows = [
        measurement_row(system, one.rollout_key, one.item, measurement)
        for one, measurements_of in found
        for measurement in measurements_of
    ]
    frame = frame_of(rows, tables.MEASUREMENTS)
    n_scored = frame.height - frame["value"].null_count()
    counts = {**done.counts(), "scores": n_scored, "reasons": frame.height - n_scored}
    return StageResult(frame, counts, preview=frame.drop("details"))


def scored(
    workspace: Workspace, track: Track, ones: Iterable[Measured], judgement_table: pl.DataFrame, system: str
) -> tuple[list[tuple[Measured, list[Measurement]]], WorkDone]:
    """Every rollout with its measurements, each scored once under one set of rules."""
    verdicts = scoring.verdicts_by_rollout(judgement_table)
    # What all rollouts share, and what all rollouts of an item share, is written out once.
    common = ",".join(
        canonical_json(part)
        for part in ("measurements", scoring.versions(track), scoring.settings(track, workspace.profile))
    )
    of_items: dict[str, str] = {}
    tasks: list[Task] = []
    for one in ones:
        given = verdicts.get(one.rollout_key, {})
        item = one.item
        if item.item_id not in of_items:
            of_items[item.item_id] = ",".join(map(canonical_json, (item.item_id, item.condition, item.reference)))
        heard = [
            one.outcome,
            one.reason,
            one.timeline_s,
            None if one.gate_s is None else one.gate_s.tolist(),
            None if one.vad_s is None else one.vad_s.tolist(),
            None if one.transcript is None else one.transcript.words,
            given,
        ]
        # The digest_value of all of them, put together from texts.
        text = ",".join([common, of_items[item.item_id], *map(canonical_json, heard)])
        key = digest_bytes(f"[{text}]".encode())
        tasks.append(Task(key, item.item_id, (one, given)))

    def score(argument: tuple[Measured, dict[str, Judgement]]) -> str:
        one, given = argument
        return to_json(scoring.score(track, one, given, workspace.profile))

    done = resume(workspace.ledger(f"{track}/measurements/{system}"), f"{track} measurements {system}", tasks, score)
    found = []
    for task in tasks:
        one, _ = task.argument  # type: ignore[misc]
        payload = done.payloads.get(task.key)
        found.append((one, [] if payload is None else from_json(list[Measurement], payload)))
    return found, done


def measurement_row(system: str, rollout_key: str, item: Item, measurement: Measurement) -> dict[str, object]:
    """One score as a row; its id is equal wherever the same rollout's same window is scored."""
    names = (rollout_key or system, item.item_id, measurement.window_id, measurement.metric)
    return {
        "measurement_id": digest_value("measurement", *names)[:24],
        "system": system,
        "item_id": item.item_id,
        "rollout_key": rollout_key,
        "window_id": measurement.window_id,
        "cluster": item.cluster,
        "condition": item.condition,
        "metric": measurement.metric,
        "metric_version": measurement.metric_version,
        "value": measurement.score.value,
        "reason": measurement.score.reason,
        "at_s": measurement.at_s,
        "details": json.dumps(measurement.details, sort_keys=True),
    }
