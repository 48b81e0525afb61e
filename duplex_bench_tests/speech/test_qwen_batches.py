"""Batches, retries and the cache, with a worker that answers by script; the real package is in test_qwen_vendor.py."""

import numpy as np
import pytest

from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.clip_cache import CachedTextToSpeech
from duplex_bench.speech.foreign import ForeignEngineError
from duplex_bench.speech.qwen_asr import QwenRecogniser
from duplex_bench.speech.qwen_settings import QwenAsrSettings, QwenTtsSettings
from duplex_bench.speech.qwen_tts import QwenTextToSpeech, QwenVoiceCloning, SpeechRefusedError, most_codes
from duplex_bench.storage.digests import generator_from
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit

RATE_HZ = 24000


def noise(duration_s):
    return (0.2 * generator_from("batch").standard_normal(round(duration_s * RATE_HZ))).astype(np.float32)


class ScriptedWorker:
    """Says every text well, except that those in ``endless`` reach the limit that many times first."""

    def __init__(self, endless=None, dies_at=None):
        self.endless = dict(endless or {})
        self.dies_at = dies_at
        self.requests = []

    def request(self, header, arrays=()):
        self.requests.append(header)
        if len(self.requests) == self.dies_at:
            raise ForeignEngineError("qwen_tts was lost")
        clips = []
        for text in header["texts"]:
            if self.endless.get(text, 0):
                self.endless[text] -= 1
                clips.append(noise((header["most_codes"] - 1) * 0.08))
            else:
                clips.append(noise(0.9))
        return {"kind": "spoken", "sample_rate_hz": RATE_HZ}, clips

    def close(self):
        pass


@pytest.fixture
def speaker(tmp_path):
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")

    def make(worker, kind=QwenTextToSpeech, **rules):
        settings = QwenTtsSettings.model_validate(
            {"model": str(model), "runtime": {"interpreter": "unused"}, "rules": {"checked_by": "", **rules}}
        )
        made = kind(settings)
        made._engine = worker
        return made

    return make


def test_voices_become_speakers_and_the_cap_is_that_of_the_longest(speaker):
    worker = ScriptedWorker()
    tts = speaker(worker)
    lines = [("Good morning.", "b"), ("Is anybody here?", "a")]
    assert [result.error for result in tts.speak_batch(lines)] == ["", ""]
    (asked,) = worker.requests
    assert dict(zip(asked["texts"], asked["speakers"], strict=True)) == {
        "Good morning.": "Aiden",
        "Is anybody here?": "Ryan",
    }
    assert asked["most_codes"] == most_codes("Is anybody here?", tts.settings.rules)
    assert asked["language"] == "English"


def test_a_missing_end_is_tried_again_with_another_seed_and_alone(speaker):
    worker = ScriptedWorker(endless={"Good morning.": 1})
    results = speaker(worker).speak_batch([("Good morning.", "a"), ("Is anybody here?", "b")])
    assert all(result.clip is not None for result in results)
    first, second = worker.requests
    assert second["texts"] == ["Good morning."]
    assert first["seed"] != second["seed"]


def test_what_no_attempt_gave_soundly_is_refused_with_each_reason(speaker):
    worker = ScriptedWorker(endless={"Good morning.": 99})
    tts = speaker(worker, attempts=2)
    with pytest.raises(SpeechRefusedError, match=r"attempt 1: no end within 25 codes .*; attempt 2: no end within"):
        tts.speak("Good morning.", "a")
    assert len(worker.requests) == 2
    with pytest.raises(SpeechRefusedError, match="attempt 2"):
        tts.speak("Good morning.", "a")
    assert len(worker.requests) == 2, "seeds are fixed: the same refusal is not computed twice"


def test_the_same_lines_are_asked_for_with_the_same_seed(speaker):
    one, two = ScriptedWorker(), ScriptedWorker()
    for worker in (one, two):
        speaker(worker).speak_batch([("Good morning.", "a"), ("Is anybody here?", "b")])
    assert one.requests == two.requests
    other = ScriptedWorker()
    speaker(other, seed=1).speak_batch([("Good morning.", "a"), ("Is anybody here?", "b")])
    assert other.requests[0]["seed"] != one.requests[0]["seed"]


def test_batches_are_no_larger_than_set_and_results_keep_their_order(speaker):
    worker = ScriptedWorker(endless={"word " * 3: 9})
    lines = [("word " * n, "a") for n in (3, 1, 2, 5, 4)]
    results = speaker(worker, batch_size=2, attempts=1).speak_batch(lines)
    assert [len(asked["texts"]) for asked in worker.requests] == [2, 2, 1]
    assert [result.clip is None for result in results] == [True, False, False, False, False]


def test_a_recogniser_that_hears_other_words_refuses(speaker):
    class HearsOtherWords:
        engine_id = "other"

        def words(self, samples, sample_rate_hz):
            return (TimedWord("banana", 0.0, 0.5),)

    tts = speaker(ScriptedWorker(), attempts=1)
    tts._make_recogniser = HearsOtherWords
    with pytest.raises(SpeechRefusedError, match="word errors: heard as 'banana'"):
        tts.speak("Good morning.", "a")


def test_unknown_voices_and_empty_texts_are_refused_before_any_work(speaker):
    worker = ScriptedWorker()
    tts = speaker(worker)
    with pytest.raises(ValueError, match="no voice 'z'"):
        tts.speak("Good morning.", "z")
    with pytest.raises(ValueError, match="nothing to say"):
        tts.speak_batch([("Good morning.", "a"), ("...", "a")])
    assert worker.requests == []


def test_an_interrupted_run_goes_on_where_it_was(speaker, tmp_path):
    store = FolderStore(tmp_path / "store")
    lines = [("word " * n, "a") for n in range(1, 6)]
    dying = ScriptedWorker(dies_at=2)
    with pytest.raises(ForeignEngineError):
        CachedTextToSpeech(speaker(dying, batch_size=2), store).speak_ahead(lines)
    worker = ScriptedWorker()
    cached = CachedTextToSpeech(speaker(worker, batch_size=2), store)
    assert cached.speak_ahead(lines) == {}
    assert sorted(text for asked in worker.requests for text in asked["texts"]) == sorted(text for text, _ in lines[2:])
    n_asked = len(worker.requests)
    assert len(cached.speak(*lines[0]).samples) > 0
    assert cached.speak_ahead(lines) == {}
    assert len(worker.requests) == n_asked


def test_what_cannot_be_said_is_told_and_not_stored(speaker, tmp_path):
    worker = ScriptedWorker(endless={"Good morning.": 99})
    cached = CachedTextToSpeech(speaker(worker, attempts=1), FolderStore(tmp_path / "store"))
    failed = cached.speak_ahead([("Good morning.", "a"), ("Is anybody here?", "b")])
    assert list(failed) == [("Good morning.", "a")]
    assert len(list((tmp_path / "store").rglob("*.flac"))) == 1


def test_cloning_sends_the_recording_once_a_batch(speaker):
    worker = ScriptedWorker()
    cloning = speaker(worker, kind=QwenVoiceCloning)
    reference = noise(2.0)
    (result,) = cloning.speak_as(["What did I say?"], reference, RATE_HZ, "these are my words")
    assert result.clip is not None
    (asked,) = worker.requests
    assert (asked["kind"], asked["reference_rate_hz"], asked["reference_text"]) == (
        "clone",
        RATE_HZ,
        "these are my words",
    )
    for useless in (np.zeros(100, dtype=np.float32), np.zeros(0, dtype=np.float32)):
        with pytest.raises(ValueError, match="the reference is empty, silent"):
            cloning.speak_as(["What did I say?"], useless, RATE_HZ)


class FixedRegions:
    engine_id = "fixed"

    def __init__(self, regions):
        self.regions = np.asarray(regions, dtype=np.int64).reshape(-1, 2)

    def speech_regions(self, samples, sample_rate_hz):
        return self.regions


class ScriptedListener:
    def __init__(self):
        self.batches = []

    def request(self, header, arrays=()):
        self.batches.append([len(piece) for piece in arrays])
        return {
            "heard": [{"text": "Well, so", "words": [["Well", 0.32, 0.64], ["so", 0.64, 0.64]]} for _ in arrays]
        }, []


@pytest.fixture
def listener():
    def make(regions, **settings):
        found = QwenRecogniser(
            FixedRegions(regions),
            QwenAsrSettings.model_validate(
                {"model": "m", "aligner": "a", "runtime": {"interpreter": "unused"}, **settings}
            ),
        )
        found._engine = ScriptedListener()
        return found

    return make


def test_without_speech_the_model_is_not_asked(listener):
    recogniser = listener([])
    assert recogniser.words(noise(2.0), RATE_HZ) == ()
    assert recogniser._engine.batches == []


def test_utterances_are_heard_in_batches_and_placed_on_the_clock_of_the_whole(listener):
    # Three regions at 16 kHz, 1 s apart; pads of 0.2 s.
    recogniser = listener([[16000, 32000], [48000, 64000], [80000, 96000]], batch_size=2)
    words = recogniser.words(noise(7.0), RATE_HZ)
    assert recogniser._engine.batches == [[22400, 22400], [22400]]
    assert [word.start_s for word in words[::2]] == pytest.approx([0.8 + 0.32, 2.8 + 0.32, 4.8 + 0.32])
    assert [word.aligned for word in words] == [True, False] * 3


def test_long_speech_is_cut_far_below_the_limit_of_the_package(listener):
    recogniser = listener([[0, 16000 * 200]], batch_size=32)
    recogniser.words(np.full(16000 * 200, 0.1, dtype=np.float32), 16000)
    (lengths,) = recogniser._engine.batches
    assert max(lengths) <= 16000 * 28
    assert sum(lengths) >= 16000 * 200
