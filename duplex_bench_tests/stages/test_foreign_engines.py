"""Engines that run in an environment of their own: batches before the stage, no pool, gap fill by another engine."""

from dataclasses import replace

import pytest

from duplex_bench.speech import engines
from duplex_bench.speech.interfaces import SpeechResult
from duplex_bench.stages import conversation, corpus, multiparty
from duplex_bench.stages import pool as pool_module
from duplex_bench.stages.workspace import Workspace

pytestmark = pytest.mark.unit

# Before the quick engines of these tests take its place.
TEXT_TO_SPEECH = engines.text_to_speech
SPEAKER, LISTENER = "qwen3-tts:tts.toml", "qwen3-asr:asr.toml"


class InBatches:
    """Another engine's clips, four at a time; texts with a word of ``refused`` cannot be said."""

    engine_id = "in batches/1"
    batch_size = 4

    def __init__(self, inner, refused=()):
        self.inner = inner
        self.voices = inner.voices
        self.refused = refused
        self.batches = []
        self.alone = []

    def speak(self, text, voice):
        self.alone.append((text, voice))
        if self._is_refused(text):
            raise ValueError(f"{text!r}: no end")
        return self.inner.speak(text, voice)

    def speak_batch(self, lines):
        self.batches.append(list(lines))
        return [
            SpeechResult(None, "no end") if self._is_refused(text) else SpeechResult(self.inner.speak(text, voice))
            for text, voice in lines
        ]

    def _is_refused(self, text):
        return any(word in text for word in self.refused)


@pytest.fixture
def workspace(quick_engines, small_workspace, tmp_path, monkeypatch):
    """A workspace whose profile names foreign engines, and where starting a pool is an error."""
    plain = small_workspace(tmp_path)
    monkeypatch.setattr(pool_module, "pool", lambda _n=None: pytest.fail("each process would load the model again"))
    speech = replace(plain.profile.speech, text_to_speech=SPEAKER, gap_fill=LISTENER)
    return Workspace(tmp_path, replace(plain.profile, speech=speech))


@pytest.fixture
def say_in_batches(monkeypatch):
    def use(**options):
        voices = InBatches(engines.text_to_speech("noise"), **options)
        monkeypatch.setattr(engines, "_text_to_speech", lambda _name: voices)
        monkeypatch.setattr(engines, "text_to_speech", TEXT_TO_SPEECH)
        return voices

    return use


def test_utterances_are_spoken_in_batches_once(workspace, say_in_batches):
    voices = say_in_batches()
    pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
    spoken = multiparty.utterance_speech(workspace, pairs)
    lines = [line for batch in voices.batches for line in batch]
    assert spoken.frame.height == len(lines) == len(set(lines)) > 8
    assert max(map(len, voices.batches)) == 4
    assert voices.alone == []
    n_batches = len(voices.batches)
    again = multiparty.utterance_speech(workspace, pairs)
    assert again.frame.equals(spoken.frame)
    assert len(voices.batches) == n_batches


def test_what_cannot_be_said_is_counted_and_the_rest_goes_on(workspace, say_in_batches):
    pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
    refused = multiparty.scripts_of(pairs)[0].utterances[0].text
    say_in_batches(refused=(refused,))
    spoken = multiparty.utterance_speech(workspace, pairs)
    assert spoken.counts["failed"] == 1
    assert refused not in spoken.frame["text"].to_list()
    assert spoken.frame.height > 8


def test_gaps_are_filled_by_the_engine_that_the_profile_names(workspace, monkeypatch):
    asked = []
    quick = engines.recogniser("quick")
    monkeypatch.setattr(engines, "recogniser", lambda name="whisper-base", store=None: asked.append(name) or quick)
    lively = conversation.lively_sessions(workspace).frame
    asked.clear()
    # A clean corpus has no gap: two stretches of each side are taken for wordless.
    monkeypatch.setattr(
        corpus, "wordless_stretches", lambda session, speaker, _least_s: list(session.side(speaker).speech[:2])
    )
    filled = conversation.gap_fill(workspace, lively)
    assert set(asked) == {LISTENER}
    assert filled.counts["gaps"] == 4
    assert filled.frame.height >= 4
