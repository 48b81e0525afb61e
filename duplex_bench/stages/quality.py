"""The cast of voices, listened to by measurement."""

from functools import partial

from duplex_bench.speech import engines
from duplex_bench.speech.quality import cast_quality, quality_sentences
from duplex_bench.stages.result import StageResult
from duplex_bench.stages.work import Task, resume
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_value
from duplex_bench.storage.frames import from_parquet, to_parquet

VERSION = 1


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
    sentences = [(sentence, voice) for voice in tts.voices for sentence in quality_sentences()]
    engines.speak_ahead(speech.text_to_speech, workspace.store, sentences)
    frame = cast_quality(tts, engines.recogniser(speech.recogniser, workspace.store), quality_sentences())
    return workspace.blobs.put(to_parquet(frame), "parquet")
