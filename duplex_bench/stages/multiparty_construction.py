"""Construction checks of the multiparty track by ear: words of clips, boundaries of scenes (issue 3, item 5)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl

from duplex_bench.multiparty.checked_speech import (
    ConstructionSettings,
    HeardClip,
    boundary_summary,
    by_voice,
    misheard,
)
from duplex_bench.multiparty.construction import BoundaryError, boundary_errors
from duplex_bench.records.audio import AudioSlice
from duplex_bench.reporting.inputs import Table
from duplex_bench.speech import engines
from duplex_bench.stages.multiparty import rebuilt, scene_faults, scripts_of
from duplex_bench.stages.pool import pool
from duplex_bench.stages.profile import SpeechSettings
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.summary import store_tables
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, from_pcm16
from duplex_bench.storage.digests import digest_value, draw_order
from duplex_bench.storage.frames import from_parquet
from duplex_bench.storage.places import open_store
from duplex_bench.text.error_rate import WordErrors, word_errors

# Raise when what is stored of a heard clip or scene changes.
HEARD_VERSION = 1
CLIPPED_PEAK = 0.999


@dataclass(frozen=True, slots=True)
class ClipToHear:
    """A stored clip and what it should say."""

    clip: str
    voice: str
    text: str


def hear_clip(data: str, speech: SpeechSettings, task: ClipToHear) -> str:
    """Recognise one clip; what was heard and the word errors as JSON."""
    store = open_store(data)
    samples, rate = BlobStore(store).read_audio(task.clip)
    words = engines.recogniser(speech.recogniser, store).words(from_pcm16(samples[:, 0]), rate)
    heard = " ".join(word.text for word in words)
    return json.dumps({"heard": heard, **asdict(word_errors(task.text, heard))}, sort_keys=True)


def detect_scene(data: str, speech: SpeechSettings, live: AudioSlice) -> str:
    """Speech regions of one scene by the voice detector, in samples, as JSON."""
    samples, rate = BlobStore(open_store(data)).read_audio(live.source)
    mine = from_pcm16(samples[live.start_sample : live.stop_sample, live.channel])
    return json.dumps(engines.voice_activity(speech.voice_activity).speech_regions(mine, rate).tolist())


def construction(
    workspace: Workspace, pairs_frame: pl.DataFrame, speech: pl.DataFrame, scenes: pl.DataFrame
) -> StageResult:
    """Hear clips and scenes and compare them with what they were built from; each clip and scene is heard once."""
    settings = workspace.profile.multiparty.construction
    clips = _heard_clips(workspace, speech, settings)
    errors, n_scenes, overlapping = _boundaries(workspace, pairs_frame, scenes, settings)
    voices = by_voice(clips)
    edges = boundary_summary(errors, settings.boundary_tolerance_s)
    clipped = speech.filter(pl.col("peak") >= CLIPPED_PEAK).height
    faults = scene_faults(scenes)
    checks = _checks(voices, edges, settings, clipped, speech.height, faults, scenes.height)
    tables = [
        Table(
            "multiparty-construction",
            "Multiparty: construction checks",
            "Limits are settings of the profile (ours). P1 3.5: reviewers passed 98 to 100 % of sampled checks.",
            checks,
        ),
        Table(
            "multiparty-construction-voices",
            "Multiparty: words of clips, by voice",
            f"n = {len(clips)} of {speech.height} clips, recognised by {workspace.profile.speech.recogniser} and "
            "compared with their text, numbers and times written alike.",
            voices,
        ),
        Table(
            "multiparty-construction-boundaries",
            "Multiparty: boundaries against the voice detector",
            f"Detector minus construction, seconds, n = {n_scenes} of {scenes.height} scenes ({overlapping} with "
            "overlapping turns are not compared: their edges cannot be told apart). An edge of the detector within "
            f"0.5 s is the turn's; tolerance {settings.boundary_tolerance_s:g} s.",
            edges,
        ),
    ]
    wrong = misheard(clips)
    if wrong.height:
        tables.append(Table("multiparty-misheard", "Multiparty: clips heard otherwise", "Most errors first.", wrong))
    failed = int((~checks["passed"]).sum())
    counts: dict[str, int | float | str] = {
        "clips_heard": len(clips),
        "scenes_heard": n_scenes,
        "checks_failed": failed,
    }
    return store_tables(workspace, tables, counts)


def failed_checks(workspace: Workspace, frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows of the checks table that did not pass."""
    row = frame.row(by_predicate=pl.col("id") == "multiparty-construction", named=True)
    checks = from_parquet(workspace.blobs.get(row["parquet"], "parquet"))
    return checks.filter(~pl.col("passed")).to_dicts()


def _checks(
    voices: pl.DataFrame,
    edges: pl.DataFrame,
    settings: ConstructionSettings,
    clipped: int,
    n_clips: int,
    faults: Sequence[str],
    n_scenes: int,
) -> pl.DataFrame:
    rows: list[tuple[str, int, float | None, str, bool]] = []
    most, least = settings.most_word_errors, settings.boundary_share
    for row in voices.filter(pl.col("voice") != "all").iter_rows(named=True):
        rate = row["word_error_rate"]
        passed = rate is not None and rate <= most
        rows.append((f"words of voice {row['voice']}: error rate", row["n_clips"], rate, f"at most {most:g}", passed))
    for row in edges.iter_rows(named=True):
        share = row["within_tolerance"]
        name = f"{row['edge']}s within {settings.boundary_tolerance_s:g} s of the detector"
        rows.append((name, row["n_edges"], share, f"at least {least:g}", share is not None and share >= least))
    rows.append(("clips that reach full scale", n_clips, float(clipped), "none", clipped == 0))
    rows.append(("faults of scenes: clipping, gaps, order, windows with speech", n_scenes, float(len(faults)), "none",
                 not faults))  # fmt: skip
    schema = {"check": pl.String, "n": pl.Int64, "found": pl.Float64, "limit": pl.String, "passed": pl.Boolean}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _heard_clips(workspace: Workspace, speech: pl.DataFrame, settings: ConstructionSettings) -> list[HeardClip]:
    profile = workspace.profile
    engine_id = engines.recogniser(profile.speech.recogniser).engine_id
    tasks: list[Task] = []
    for row in speech.iter_rows(named=True):
        clip = ClipToHear(row["clip"], row["voice"], row["text"])
        key = digest_value("clip heard", HEARD_VERSION, engine_id, clip)
        tasks.append(Task(key, f"{clip.voice}: {clip.text}", clip))
    chosen = _drawn(tasks, settings.clips_checked, profile.seed)
    done = resume(
        workspace.ledger("multiparty/clips_heard"),
        "clips heard",
        chosen,
        hear_clip,
        executor=pool(profile.processes),
        common=(str(workspace.data), profile.speech),
    )
    found = []
    for task in chosen:
        if task.key in done.payloads and isinstance(task.argument, ClipToHear):
            told = json.loads(done.payloads[task.key])
            heard = told.pop("heard")
            found.append(HeardClip(task.argument.voice, task.argument.text, heard, WordErrors(**told)))
    return found


def _boundaries(
    workspace: Workspace, pairs_frame: pl.DataFrame, scenes: pl.DataFrame, settings: ConstructionSettings
) -> tuple[list[BoundaryError], int, int]:
    profile = workspace.profile
    by_id = {script.script_id: script for script in scripts_of(pairs_frame)}
    engine_id = engines.voice_activity(profile.speech.voice_activity).engine_id
    apart = scenes.filter(pl.col("acoustics") != "overlap")
    found = {row["item_id"]: rebuilt(by_id[row["script_id"]], row["scene"]) for row in apart.iter_rows(named=True)}
    tasks = [
        Task(digest_value("scene heard", HEARD_VERSION, engine_id, live.content), item_id, live)
        for item_id, (_, live) in found.items()
    ]
    chosen = _drawn(tasks, settings.scenes_checked, profile.seed)
    done = resume(
        workspace.ledger("multiparty/scenes_heard"),
        "scenes heard",
        chosen,
        detect_scene,
        executor=pool(profile.processes),
        common=(str(workspace.data), profile.speech),
    )
    errors: list[BoundaryError] = []
    heard = 0
    for task in chosen:
        if task.key in done.payloads:
            regions = np.asarray(json.loads(done.payloads[task.key]), dtype=np.int64).reshape(-1, 2)
            errors += boundary_errors(found[task.item_id][0], regions)
            heard += 1
    return errors, heard, scenes.height - apart.height


def _drawn(tasks: Sequence[Task], limit: int | None, seed: int) -> list[Task]:
    if limit is None or limit >= len(tasks):
        return list(tasks)
    kept = set(draw_order(seed, [task.item_id for task in tasks])[:limit])
    return [task for task in tasks if task.item_id in kept]
