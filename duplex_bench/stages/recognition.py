"""The recogniser and the detectors, tried on sound whose words and edges are known: the report's page about them."""

import json
from functools import partial
from pathlib import Path

import polars as pl

from duplex_bench.reporting.inputs import Table
from duplex_bench.speech import engines
from duplex_bench.speech.quality import detector_controls, quality_sentences
from duplex_bench.speech.recognition import (
    SHORT_REPLIES,
    detector_table,
    edge_table,
    framed,
    hear,
    placed,
    short_table,
    word_table,
)
from duplex_bench.stages.pool import engine_pool
from duplex_bench.stages.profile import SpeechSettings
from duplex_bench.stages.quality import hear_sentence
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.summary import store_tables
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import from_parquet, to_parquet
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import to_json

VERSION = 2
EDGES = "recognition-edges"
NAMES = ("recognition-words", "recognition-short", "recognition-controls", "recognition-detectors", EDGES)


def recogniser_quality(workspace: Workspace) -> StageResult:
    """Four tables: words and their times, utterances under a second, what is no speech, detector sensitivity.

    Clips that the voices' own table had heard are not heard again, and finished tables are kept by the versions of
    all engines and of the gate.
    """
    speech = workspace.profile.speech
    tts, recogniser = engines.text_to_speech(speech.text_to_speech), engines.recogniser(speech.recogniser)
    vad = engines.voice_activity(speech.voice_activity)
    texts = (quality_sentences(), SHORT_REPLIES)
    key = digest_value(
        "recogniser_quality", VERSION, tts.engine_id, recogniser.engine_id, vad.engine_id, workspace.profile.gate, texts
    )
    done = resume(
        workspace.ledger("results/recogniser_quality"),
        "recogniser quality",
        [Task(key, "recogniser", None)],
        partial(_measure, workspace),
    )
    if key not in done.payloads:
        raise ValueError(f"the recogniser could not be measured: {done.failed[key]}")
    stored: dict[str, str] = json.loads(done.payloads[key])
    frames = {name: from_parquet(workspace.blobs.get(digest, "parquet")) for name, digest in stored.items()}
    counts: dict[str, int | float | str] = {
        "recogniser": recogniser.engine_id,
        "words": int(frames[NAMES[0]]["n_words"].sum()),
        "invented_words": int(frames[NAMES[2]]["n_words"].sum()),
        **done.counts(),
    }
    return store_tables(workspace, _tables(frames, recogniser.engine_id, vad.engine_id), counts)


def _measure(workspace: Workspace, _: None) -> str:
    speech = workspace.profile.speech
    tts = engines.text_to_speech(speech.text_to_speech, workspace.store)
    recogniser = engines.recogniser(speech.recogniser, workspace.store)
    vad = engines.voice_activity(speech.voice_activity)
    sentences = [(text, voice) for voice in tts.voices for text in quality_sentences()]
    short = [(text, voice) for voice in tts.voices for text in SHORT_REPLIES]
    engines.speak_ahead(speech.text_to_speech, workspace.store, sentences + short)
    # Heard by all workers at once, so that the tables below find every word in the cache.
    engines_of = (tts.engine_id, recogniser.engine_id)
    for work, pairs in ((hear_sentence, sentences), (hear_short, short)):
        tasks = [
            Task(digest_value("hearing", work.__name__, VERSION, *engines_of, pair), pair[1], pair) for pair in pairs
        ]
        resume(
            workspace.ledger("results/recogniser_hearing"), "recogniser hearing", tasks, work,
            executor=engine_pool(speech.recogniser, workspace.profile.processes),
            common=(str(workspace.data), speech),
        )  # fmt: skip
    heard = {
        voice: [hear(recogniser, text, tts.speak(text, voice)) for text in quality_sentences()] for voice in tts.voices
    }
    brief = [hear(recogniser, text, tts.speak(text, voice), margin_s=1.0) for text, voice in short]
    track = placed(tts, quality_sentences())
    frames = (
        word_table(heard),
        short_table(brief),
        detector_controls(vad, recogniser),
        detector_table(track, vad, workspace.profile.gate),
        edge_table(track, vad),
    )
    stored = {
        name: workspace.blobs.put(to_parquet(frame), "parquet") for name, frame in zip(NAMES, frames, strict=True)
    }
    return json.dumps(stored, sort_keys=True)


def hear_short(data: str, speech: SpeechSettings, reply_and_voice: tuple[str, str]) -> str:
    """Recognise one short reply between two seconds of silence, through the caches of a data folder."""
    store = FolderStore(Path(data) / "store")
    clip = engines.text_to_speech(speech.text_to_speech, store).speak(*reply_and_voice)
    return to_json(engines.recogniser(speech.recogniser, store).words(framed(clip), clip.sample_rate_hz))


def _tables(frames: dict[str, pl.DataFrame], recogniser: str, vad: str) -> list[Table]:
    words, short, controls, detectors, edges = (frames[name] for name in NAMES)
    return [
        Table(
            NAMES[0],
            "Recogniser: words and their times",
            f"n = {words['n_words'].sum()} words of known text in {words['n_clips'].sum()} clips, by {recogniser}. "
            "Word times: found start minus the onset that the synthesis was told to make, in clips without a word "
            "error; bias is the median, then the median and 90th percentile of the size. A voice without known onsets "
            "has no times. Errors of a voice that is hard to understand count here too.",
            words,
        ),
        Table(
            NAMES[1],
            "Recogniser: utterances under a second",
            f"n = {short['n'].sum()} replies such as 'Yes.', each between two seconds of silence, by length of the "
            "clip. heard: any word; right: exactly the word spoken; wrong: another. What is not heard here is missed "
            "when a system says it, and then counts as wordless.",
            short,
        ),
        Table(
            NAMES[2],
            "Recogniser and detectors: what is no speech",
            "Ten seconds each. n_words are words invented where nobody speaks and must be 0. vad_share, gate_share: "
            "time that the voice detector and the energy gate call active; the gate rightly opens for loud noise and "
            "tones, which is why wordless audio is an outcome of its own.",
            controls,
        ),
        Table(
            NAMES[3],
            "Detectors: sensitivity",
            "One sentence of every voice at known samples, at other levels and under white noise; voice detector "
            f"{vad}; gate as the profile sets it. speech_found: share of the speech's time; silence_called_speech: "
            "share of the time further than 0.3 s from speech. Edges are medians of found minus true, of utterances "
            "that were found.",
            detectors,
        ),
        Table(
            EDGES,
            "Voice detector: edges of known utterances",
            f"n = {edges.height} utterances found, seconds found minus true: what a label's boundary is worth that "
            "rests on this detector.",
            edges,
        ),
    ]
