"""Synthetic sessions with the embedded voices, through files and back."""

from pathlib import Path

import pytest

from duplex_bench.conversation.generator import GeneratorSettings, generate
from duplex_bench.conversation.label_accuracy import Accuracy, accuracy_by_kind
from duplex_bench.conversation.labels import label_conversation
from duplex_bench.conversation.seamless import load_seamless
from duplex_bench.speech.engines import text_to_speech, voice_activity
from duplex_bench.speech.interfaces import VoiceActivityDetector

pytestmark = pytest.mark.engine


def test_spoken_sessions_are_labelled_as_planted(tmp_path: Path):
    settings = GeneratorSettings(n_sessions=2, minutes=0.8, sample_rate_hz=24000, voices=("narrator", "c", "d"))
    planted = {session.session_id: session for session in generate(settings, text_to_speech(), tmp_path)}
    total = Accuracy(0, 0, 0)
    for session in load_seamless(tmp_path / "corpus").sessions:
        labels = label_conversation(session.left.track, session.right.track)
        for accuracy in accuracy_by_kind(labels, planted[session.session_id].plan.events, 0.1).values():
            total += accuracy
    assert total.true > 15
    assert total.precision >= 0.95
    assert total.recall >= 0.95


def test_a_detector_hears_the_planted_pauses(tmp_path: Path):
    """The truth is in the sound: silero finds no speech in the middle of most planted pauses."""
    import soundfile

    settings = GeneratorSettings(n_sessions=1, minutes=0.8, sample_rate_hz=24000, voices=("narrator", "d"))
    (planted,) = generate(settings, text_to_speech(), tmp_path)
    session = load_seamless(tmp_path / "corpus").sessions[0]
    detector: VoiceActivityDetector = voice_activity()
    regions = {}
    for speaker in ("left", "right"):
        samples, rate = soundfile.read(session.side(speaker).audio_path, dtype="float32")
        regions[speaker] = detector.speech_regions(samples, rate) / rate
    pauses = [event for event in planted.plan.events if event.kind == "pause"]
    assert len(pauses) >= 3
    middles = [(pause.start_s + pause.end_s) / 2 for pause in pauses]
    silent = sum(
        not any(start <= middle < end for start, end in regions[pause.speaker])
        for pause, middle in zip(pauses, middles, strict=True)
    )
    assert silent / len(pauses) >= 0.9
