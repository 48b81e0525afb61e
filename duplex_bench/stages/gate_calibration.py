"""The gate's calibration over stored pause rollouts, as tables (P2 App. D, table 8)."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl

from duplex_bench.conversation.gate_calibration import (
    CalibrationSettings,
    Labelled,
    controls,
    label,
    level_auc,
    levels_and_labels,
    sweep,
)
from duplex_bench.records.outcome import SCORED_OUTCOMES
from duplex_bench.reporting.inputs import Table
from duplex_bench.speech import engines
from duplex_bench.stages.items import items_of
from duplex_bench.stages.pool import engine_pool
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.summary import store_tables
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, from_pcm16
from duplex_bench.storage.digests import digest_value, draw_order
from duplex_bench.storage.places import open_store

CALIBRATION_VERSION = 1
OFF = "conversation.calibration.rollouts is 0 in this profile: nothing was labelled."


@dataclass(frozen=True, slots=True)
class LabelTask:
    """One response to label."""

    audio: str


def label_response(data: str, recogniser: str, settings: CalibrationSettings, task: LabelTask) -> str:
    """Labelled utterances of a stored response, as JSON pairs of seconds."""
    store = open_store(data)
    samples, rate = BlobStore(store).read_audio(task.audio)
    hear = engines.recogniser(recogniser, store).words
    return json.dumps(label(from_pcm16(samples[:, 0]), rate, hear, settings).tolist())


def gate_calibration(workspace: Workspace, items: pl.DataFrame, rollouts: Mapping[str, pl.DataFrame]) -> StageResult:
    """Sweep of the gate against words that windows of two seconds agree on, with AUC and controls, per system."""
    profile = workspace.profile
    settings = profile.conversation.calibration
    if settings.rollouts == 0:
        result = store_tables(workspace, [], {"labelled": 0})
        return StageResult(result.frame, result.counts, note=OFF)
    pauses = {item_id: item for item_id, item in items_of(items).items() if item.condition == "pause"}
    scored = [str(outcome) for outcome in SCORED_OUTCOMES]
    engine_id = engines.recogniser(profile.speech.recogniser).engine_id
    sweeps: list[dict[str, object]] = []
    summary: list[dict[str, object]] = []
    n_labelled = 0
    for system in sorted(rollouts):
        mine = rollouts[system].filter(
            pl.col("item_id").is_in(list(pauses))
            & pl.col("outcome").is_in(scored)
            & pl.col("listener_audio").is_not_null()
            & (pl.col("repeat") == 0)
        )
        by_item = dict(mine.select("item_id", "listener_audio").iter_rows())
        drawn = draw_order(profile.seed, sorted(by_item))[: settings.rollouts]
        tasks = [
            Task(
                digest_value("calibration", CALIBRATION_VERSION, engine_id, settings, by_item[item_id]),
                item_id,
                LabelTask(by_item[item_id]),
            )
            for item_id in drawn
        ]
        done = resume(
            workspace.ledger(f"conversation/gate_calibration/{system}"),
            f"gate labels {system}",
            tasks,
            label_response,
            executor=engine_pool(profile.speech.recogniser, profile.processes),
            common=(str(workspace.data), profile.speech.recogniser, settings),
        )
        responses: list[Labelled] = []
        for task in tasks:
            if task.key in done.payloads:
                samples, rate = workspace.blobs.read_audio(by_item[task.item_id])
                window = pauses[task.item_id].reference.windows[0]
                spans = np.asarray(json.loads(done.payloads[task.key]), dtype=np.float64).reshape(-1, 2)
                responses.append(Labelled(from_pcm16(samples[:, 0]), rate, spans, (window.start_s, window.end_s)))
        if not responses:
            continue
        n_labelled += len(responses)
        sweeps += [
            {"system": system, "rollouts": len(responses), **asdict(row)}
            for row in sweep(responses, profile.gate, settings)
        ]
        levels, flags = levels_and_labels(responses, profile.gate)
        area = level_auc(responses, profile.gate)
        summary.append(
            {"what": system, "rollouts": len(responses), "windows": len(levels), "labelled_windows": int(flags.sum()),
             "auc": None if np.isnan(area) else area}
        )  # fmt: skip
    hear = engines.recogniser(profile.speech.recogniser).words
    for name, signal in controls(profile.conversation.sample_rate_hz).items():
        spans = label(signal, profile.conversation.sample_rate_hz, hear, settings)
        silent = [Labelled(signal, profile.conversation.sample_rate_hz, spans)]
        levels, flags = levels_and_labels(silent, profile.gate)
        summary.append({"what": f"control: {name}", "rollouts": 1, "windows": len(levels),
                        "labelled_windows": int(flags.sum()), "auc": None})  # fmt: skip
    schema = {
        "system": pl.String, "rollouts": pl.Int64, "setting": pl.String, "threshold": pl.Float64,
        "release_ratio": pl.Float64, "min_duration_s": pl.Float64, "utterances": pl.Int64, "matched": pl.Int64,
        "onset_bias_s": pl.Float64, "onset_error_s": pl.Float64, "takeover_rate": pl.Float64,
    }  # fmt: skip
    tables = [
        Table(
            "conversation-gate-sweep",
            "Conversation: the gate against words",
            "Labels: words on which all two-second windows over an instant agree, each window peak-normalised before "
            "it is heard. matched: labelled utterances that the gate opens for; a missed one turns a takeover into a "
            "hold. "
            "Onsets: gate minus label. Guards: voice activity stands in for Whisper's no-speech head, forced alignment "
            "for its log-probability (ours).",
            pl.DataFrame(sweeps, schema=schema),
        ),
        Table(
            "conversation-gate-levels",
            "Conversation: level as a classifier of speech",
            "AUC of the 20 ms level against the labels, per system; the controls must have no labelled window.",
            pl.DataFrame(
                summary,
                schema={"what": pl.String, "rollouts": pl.Int64, "windows": pl.Int64, "labelled_windows": pl.Int64,
                        "auc": pl.Float64},
            ),
        ),
    ]  # fmt: skip
    return store_tables(workspace, tables, {"labelled": n_labelled})
