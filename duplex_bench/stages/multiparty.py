"""The multiparty track from scripts to items: one function per asset."""

import dataclasses
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from duplex_bench.audio.mixing import rms_dbfs
from duplex_bench.audio.resample import resample
from duplex_bench.multiparty.accounting import account
from duplex_bench.multiparty.acoustics import ACOUSTICS_VERSION, Acoustics, AcousticSettings, heard_in, layout_for
from duplex_bench.multiparty.construction import construction_faults
from duplex_bench.multiparty.grammar import generate_pairs
from duplex_bench.multiparty.items import item_of, with_request_thirds
from duplex_bench.multiparty.preamble import duty_preamble
from duplex_bench.multiparty.rules import ScoringRules
from duplex_bench.multiparty.scenario_files import read_scenarios
from duplex_bench.multiparty.scenes import PlacedTurn, Scene, SceneLayout, build_scene
from duplex_bench.multiparty.scripts import Pair, Script
from duplex_bench.multiparty.validate import pair_faults
from duplex_bench.multiparty.voices import VoiceMap
from duplex_bench.records.audio import AudioSlice
from duplex_bench.records.items import Item
from duplex_bench.speech import engines
from duplex_bench.stages.items import items_frame, limited
from duplex_bench.stages.llm_scripts import written_scenarios
from duplex_bench.stages.pool import engine_pool, pool
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.blobs import BlobStore, from_pcm16, to_pcm16
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.places import open_store
from duplex_bench.storage.serial import from_json, to_json

# Raise when the way a scene is built from the same clips changes.
SCENE_VERSION = 2
CLIP_VERSION = 1
SYNTHETIC_LICENCE = "generated text and speech (voices: Apache-2.0, CC0)"


def scenarios(workspace: Workspace) -> StageResult:
    """Scenarios from the grammar, a text model, or the user's own file: one row each, both forms as one JSON."""
    settings = workspace.profile.multiparty
    drafts: dict[str, int | float | str] = {}
    if settings.scenario_file:
        found, refused = read_scenarios(Path(settings.scenario_file))
    elif settings.engine == "llm":
        written = written_scenarios(workspace)
        found, refused, drafts = written.pairs, written.refused, written.counts
    else:
        found, refused = generate_pairs(settings.grammar), []
    if not found:
        raise ValueError("no scenario can be used:\n" + "\n".join(refused[:10]))
    rows = [
        {
            "scenario_id": pair.scenario_id,
            "domain": pair.explicit.domain,
            "family": pair.explicit.family,
            "n_humans": pair.explicit.n_humans,
            "request": pair.explicit.request.text,
            "gold_answer": pair.explicit.gold_answer,
            "pair": to_json(pair),
        }
        for pair in found
    ]
    schema = {"scenario_id": pl.String, "domain": pl.String, "family": pl.String, "n_humans": pl.Int64,
              "request": pl.String, "gold_answer": pl.String, "pair": pl.String}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema)
    counts: dict[str, int | float | str] = {
        "scenarios": frame.height,
        "domains": frame["domain"].n_unique(),
        "refused": len(refused),
        **drafts,
    }
    note = "\n".join(f"- {told}" for told in refused[:30])
    return StageResult(frame, counts, preview=frame.drop("pair"), note=note)


def _pairs(frame: pl.DataFrame) -> list[Pair]:
    return [from_json(Pair, text) for text in frame["pair"]]


def pairs(workspace: Workspace, scenarios_frame: pl.DataFrame) -> StageResult:
    """Pairs that pass every rule; one that does not is left out and named."""
    del workspace
    sound: list[Pair] = []
    refused: list[str] = []
    for pair in _pairs(scenarios_frame):
        faults = pair_faults(pair)
        if faults:
            refused += [str(fault) for fault in faults]
        else:
            sound.append(pair)
    if not sound:
        raise ValueError("no scenario passed the rules:\n" + "\n".join(refused[:10]))
    rows = [
        {
            "scenario_id": pair.scenario_id,
            "explicit_request": pair.explicit.request.text,
            "implicit_request": pair.implicit.request.text,
            "rewritten": len(pair.rewritten),
            "differing": len(pair.differing),
            "utterances": len(pair.explicit.utterances),
            "pair": to_json(pair),
        }
        for pair in sound
    ]
    frame = pl.DataFrame(rows)
    counts: dict[str, int | float | str] = {"pairs": frame.height, "refused": scenarios_frame.height - frame.height}
    note = "\n".join(f"- {told}" for told in refused[:30])
    return StageResult(frame, counts, preview=frame.drop("pair"), note=note)


def scripts_of(frame: pl.DataFrame) -> list[Script]:
    """Both scripts of every pair of a pairs table."""
    return [script for pair in _pairs(frame) for script in (pair.explicit, pair.implicit)]


@dataclass(frozen=True, slots=True)
class ClipTask:
    """One text to speak with one voice."""

    voice: str
    text: str


def speak_clip(data: str, engine: str, rate_hz: int, task: ClipTask) -> str:
    """Speak one text and store the clip; digest, length and level as JSON."""
    store = open_store(data)
    # Embedded clips are cheap to speak again; those of an engine that runs apart were spoken ahead, in batches.
    clip = engines.text_to_speech(engine, store if engines.runs_apart(engine) else None).speak(task.text, task.voice)
    samples = resample(clip.samples, clip.sample_rate_hz, rate_hz)
    digest = BlobStore(store).put_audio(to_pcm16(samples), rate_hz)
    told = {
        "clip": digest,
        "n_samples": len(samples),
        "rms_dbfs": round(float(rms_dbfs(samples)), 2),
        "peak": round(float(np.max(np.abs(samples))), 4),
    }
    return json.dumps(told, sort_keys=True)


def utterance_speech(workspace: Workspace, pairs_frame: pl.DataFrame) -> StageResult:
    """One clip for each distinct voice and text, and the spoken preamble."""
    profile = workspace.profile
    rate = profile.multiparty.layout.sample_rate_hz
    voices = VoiceMap()
    wanted = {
        (voices.voice_of(turn.speaker), turn.text) for script in scripts_of(pairs_frame) for turn in script.utterances
    }
    wanted.add((voices.preamble, duty_preamble().text))
    speech = profile.speech.text_to_speech
    engine_id = engines.text_to_speech(speech).engine_id
    tasks = [
        Task(
            digest_value("clip", CLIP_VERSION, engine_id, rate, voice, text), f"{voice}: {text}", ClipTask(voice, text)
        )
        for voice, text in sorted(wanted)
    ]
    ledger = workspace.ledger("multiparty/utterance_speech")
    spoken = ledger.finished()
    engines.speak_ahead(
        speech,
        workspace.store,
        [(text, voice) for task, (voice, text) in zip(tasks, sorted(wanted), strict=True) if task.key not in spoken],
    )
    done = resume(
        ledger,
        "utterance speech",
        tasks,
        speak_clip,
        executor=engine_pool(speech, profile.processes),
        common=(str(workspace.data), speech, rate),
    )
    rows = []
    for task in tasks:
        if task.key in done.payloads and isinstance(task.argument, ClipTask):
            told = json.loads(done.payloads[task.key])
            rows.append({"voice": task.argument.voice, "text": task.argument.text, **told})
    schema = {"voice": pl.String, "text": pl.String, "clip": pl.String, "n_samples": pl.Int64,
              "rms_dbfs": pl.Float64, "peak": pl.Float64}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema)
    minutes = round(float(frame["n_samples"].sum()) / rate / 60, 2)
    counts = {**done.counts(), "distinct_minutes": minutes}
    if not done.failed:
        counts |= _accounted(workspace, pairs_frame, frame)
    return StageResult(frame, counts, preview=frame.drop("clip"))


def _accounted(workspace: Workspace, pairs_frame: pl.DataFrame, speech: pl.DataFrame) -> dict[str, int | float | str]:
    """Pair accounting (P1 A2.4): how many rewrites changed only T, what is shared, hours with reuse and distinct."""
    voices = VoiceMap()
    lengths = {(row["voice"], row["text"]): row["n_samples"] for row in speech.iter_rows(named=True)}
    found = _pairs(pairs_frame)
    samples: dict[tuple[str, str], int] = {
        (turn.speaker, turn.text): lengths[(voices.voice_of(turn.speaker), turn.text)]
        for script in scripts_of(pairs_frame)
        for turn in script.utterances
    }
    return dataclasses.asdict(account(found, samples, workspace.profile.multiparty.layout))


@dataclass(frozen=True, slots=True)
class SceneTask:
    """A script, the clip of each of its utterances in order, the preamble's clip, and the acoustics to hear it in."""

    script: str
    clips: tuple[str, ...]
    preamble: str
    acoustics: Acoustics = "clean"


def store_scene(
    data: str, layout: SceneLayout, rules: ScoringRules, acoustic: AcousticSettings, task: SceneTask
) -> str:
    """Build one scene from its clips and store its audio; slice and boundaries as JSON."""
    blobs = BlobStore(open_store(data))
    script = from_json(Script, task.script)

    def clip(digest: str) -> np.ndarray:
        return from_pcm16(blobs.read_audio(digest)[0][:, 0])

    spoken = {turn.utterance_id: clip(found) for turn, found in zip(script.utterances, task.clips, strict=True)}
    layout = layout_for(task.acoustics, layout, acoustic)
    built = build_scene(script, spoken, clip(task.preamble), layout)
    # Gaps are silent in what was built; a room or noise fills them afterwards.
    faults = construction_faults(built, layout, rules)
    scene = heard_in(task.acoustics, built, acoustic)
    samples = to_pcm16(scene.samples)[:, None]
    source = blobs.put_audio(samples, scene.sample_rate_hz)
    live = blobs.slice_of(source, samples, scene.sample_rate_hz, 0, len(samples))
    return to_json(
        {
            "live": live,
            "turns": [[turn.start_sample, turn.stop_sample] for turn in scene.turns],
            "preamble_stop_sample": scene.preamble_stop_sample,
            "faults": [f"{fault.check}: {fault.message}" for fault in faults],
        }
    )


def scenes(workspace: Workspace, pairs_frame: pl.DataFrame, speech: pl.DataFrame) -> StageResult:
    """Continuous audio of every script, with the boundaries it was built from."""
    settings = workspace.profile.multiparty
    layout = settings.layout
    voices = VoiceMap()
    clips = {(row["voice"], row["text"]): row["clip"] for row in speech.iter_rows(named=True)}
    preamble = clips.get((voices.preamble, duty_preamble().text))
    if preamble is None:
        raise ValueError("the preamble was not spoken: materialise multiparty/utterance_speech again")
    tasks: list[Task] = []
    about: dict[str, tuple[str, str]] = {}
    silent: list[str] = []
    for script in scripts_of(pairs_frame):
        found = [clips.get((voices.voice_of(turn.speaker), turn.text)) for turn in script.utterances]
        if any(clip is None for clip in found):
            silent.append(script.script_id)
            continue
        used = tuple(clip for clip in found if clip is not None)
        for kind in settings.acoustics:
            task = SceneTask(to_json(script), used, preamble, kind)
            numbers = None if kind == "clean" else (ACOUSTICS_VERSION, settings.acoustic)
            key = digest_value("scene", SCENE_VERSION, task, layout, settings.scoring, numbers)
            item_id = script.script_id if kind == "clean" else f"{script.script_id}~{kind}"
            tasks.append(Task(key, item_id, task))
            about[item_id] = (script.script_id, kind)
    done = resume(
        workspace.ledger("multiparty/scenes"),
        "scenes",
        tasks,
        store_scene,
        executor=pool(workspace.profile.processes),
        common=(str(workspace.data), layout, settings.scoring, settings.acoustic),
    )
    rows = [
        {
            "item_id": task.item_id,
            "script_id": about[task.item_id][0],
            "acoustics": about[task.item_id][1],
            "scene": done.payloads[task.key],
            **_lengths(done.payloads[task.key]),
        }
        for task in tasks
        if task.key in done.payloads
    ]
    schema = {"item_id": pl.String, "script_id": pl.String, "acoustics": pl.String, "scene": pl.String,
              "duration_s": pl.Float64, "speech_s": pl.Float64}  # fmt: skip
    frame = pl.DataFrame(rows, schema=schema)
    counts: dict[str, int | float | str] = {
        **done.counts(),
        "without_a_clip": len(silent),
        "minutes": round(float(frame["duration_s"].sum()) / 60, 2),
    }
    note = "\n".join(f"- {error}" for error in list(done.failed.values())[:20])
    return StageResult(frame, counts, preview=frame.drop("scene"), note=note)


def _lengths(payload: str) -> dict[str, float]:
    told = json.loads(payload)
    live, turns = told["live"], told["turns"]
    rate = live["sample_rate_hz"]
    return {
        "duration_s": (live["stop_sample"] - live["start_sample"]) / rate,
        "speech_s": sum(stop - start for start, stop in turns) / rate,
    }


def rebuilt(script: Script, payload: str) -> tuple[Scene, AudioSlice]:
    """A stored scene without its samples (they are silent here), and the slice that holds them."""
    told = json.loads(payload)
    live = AudioSlice(**told["live"])
    turns = tuple(
        PlacedTurn(utterance, start, stop)
        for utterance, (start, stop) in zip(script.utterances, told["turns"], strict=True)
    )
    nothing = np.broadcast_to(np.float32(0), (live.n_samples,))
    return Scene(script, nothing, live.sample_rate_hz, turns, told["preamble_stop_sample"]), live


def items(workspace: Workspace, pairs_frame: pl.DataFrame, scenes_frame: pl.DataFrame) -> StageResult:
    """Stimulus and reference of every scene."""
    rules = workspace.profile.multiparty.scoring
    by_id = {script.script_id: script for script in scripts_of(pairs_frame)}
    built: dict[str, list[Item]] = {}
    for row in scenes_frame.sort("item_id").iter_rows(named=True):
        scene, live = rebuilt(by_id[row["script_id"]], row["scene"])
        item = item_of(
            scene, live, licence=SYNTHETIC_LICENCE, preamble=duty_preamble(), rules=rules, acoustics=row["acoustics"]
        )
        built.setdefault(row["acoustics"], []).append(item)
    # Thirds are cut within one kind of acoustics, so that adding another moves no request.
    made = [item for same in built.values() for item in with_request_thirds(same)]
    made = limited(made, workspace.profile.limit, workspace.profile.seed)
    frame = items_frame(made)
    windows: dict[str, int | float | str] = {}
    for item in made:
        for window in item.reference.windows:
            windows[f"{window.kind}_windows"] = int(windows.get(f"{window.kind}_windows", 0)) + 1
    return StageResult(frame, {"items": frame.height, **windows}, preview=frame.drop("stimulus", "reference"))


def scene_faults(scenes_frame: pl.DataFrame) -> Sequence[str]:
    """What the construction checks found wrong with stored scenes: clipping, gaps, order, windows with speech."""
    return [
        f"{row['item_id']}: {fault}"
        for row in scenes_frame.iter_rows(named=True)
        for fault in json.loads(row["scene"])["faults"]
    ]
