"""The cast of voices, listened to by measurement."""

from functools import partial

from duplex_bench.speech import engines
from duplex_bench.speech.quality import cast_quality, quality_sentences
from duplex_bench.stages.pool import engine_pool
from duplex_bench.stages.profile import SpeechSettings
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import from_parquet, to_parquet
from duplex_bench.storage.places import open_store
from duplex_bench.storage.serial import to_json

VERSION = 2


def voice_quality(workspace: Workspace) -> StageResult:
    """Word error rate, level, pitch and distance of every voice, through the recogniser that systems are scored by."""
    speech = workspace.profile.speech
    tts = engines.text_to_speech(speech.text_to_speech)
    recogniser = engines.recogniser(speech.recogniser)
    sentences = quality_sentences()
    key = digest_value("voice_quality", VERSION, tts.engine_id, recogniser.engine_id, sentences)
    done = resume(
        workspace.ledger("results/voice_quality"),
        "voice quality",
        [Task(key, "cast", None)],
        partial(_measure, workspace),
    )
    if key not in done.payloads:
        raise ValueError(f"the voices could not be measured: {done.failed[key]}")
    frame = from_parquet(workspace.blobs.get(done.payloads[key], "parquet"))
    return StageResult(frame, {"voices": frame.height, **done.counts()})


def _measure(workspace: Workspace, _: None) -> str:
    speech = workspace.profile.speech
    tts = engines.text_to_speech(speech.text_to_speech, workspace.store)
    recogniser = engines.recogniser(speech.recogniser, workspace.store)
    sentences = [(sentence, voice) for voice in tts.voices for sentence in quality_sentences()]
    engines.speak_ahead(speech.text_to_speech, workspace.store, sentences)
    # Heard by all workers at once, so that the table below finds every word in the cache.
    tasks = [
        Task(digest_value("hearing", VERSION, tts.engine_id, recogniser.engine_id, pair), pair[1], pair)
        for pair in sentences
    ]
    resume(
        workspace.ledger("results/voice_hearing"),
        "voice hearing",
        tasks,
        hear_sentence,
        executor=engine_pool(speech.recogniser, workspace.profile.processes),
        common=(str(workspace.data), speech),
    )
    # Clips come from the cache here, so that how long they took says nothing: docs/embedded-models.md has the speeds.
    frame = cast_quality(tts, recogniser, quality_sentences()).drop("realtime_factor")
    return workspace.blobs.put(to_parquet(frame), "parquet")


def hear_sentence(data: str, speech: SpeechSettings, sentence_and_voice: tuple[str, str]) -> str:
    """Recognise one sentence of one voice through the caches of a data folder; its words as JSON."""
    store = open_store(data)
    clip = engines.text_to_speech(speech.text_to_speech, store).speak(*sentence_and_voice)
    return to_json(engines.recogniser(speech.recogniser, store).words(clip.samples, clip.sample_rate_hz))
