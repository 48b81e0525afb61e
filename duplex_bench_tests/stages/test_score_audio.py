"""Recordings with planted onsets: every latency comes back, with labels exactly, by our own engines within 0.1 s."""

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import soundfile
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.audio.files import AudioFileError
from duplex_bench.audio.gate import DEFAULT_GATE
from duplex_bench.conversation.annotations import AnnotationError
from duplex_bench.conversation.labels import LabelRules
from duplex_bench.reporting.inputs import ReportInputError
from duplex_bench.reporting.tables import load_run
from duplex_bench.stages import recording_engines
from duplex_bench.stages.recording_audio import prepare
from duplex_bench.stages.recording_engines import EdgedVoiceActivity, SpeechSettings
from duplex_bench.stages.recording_scores import ScoreAudioSettings, merged
from duplex_bench.stages.recording_speech import speech_of
from duplex_bench.stages.score_audio import score, score_audio
from duplex_bench.storage.object_store import FolderStore

RATE = 16000
RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
NOISE = np.random.default_rng(7).normal(size=60 * RATE).astype(np.float32) * 0.05
SETTINGS = ScoreAudioSettings()


class Planted:
    """Noise for speech at stated seconds, with the words that labels give for it."""

    def __init__(self) -> None:
        self.spoken = {"user": [], "system": []}

    def say(self, who: str, start_s: float, end_s: float, text: str) -> "Planted":
        self.spoken[who].append((start_s, end_s, text))
        return self

    def track(self, who: str, duration_s: float) -> np.ndarray:
        samples = np.zeros(round(duration_s * RATE), dtype=np.float32)
        for start_s, end_s, _ in self.spoken[who]:
            first, last = round(start_s * RATE), round(end_s * RATE)
            samples[first:last] = NOISE[first:last]
        return samples

    def write(self, folder: Path, duration_s: float) -> tuple[Path, Path, Path]:
        for who in self.spoken:
            soundfile.write(folder / f"{who}.wav", self.track(who, duration_s), RATE, subtype="PCM_16")
        labels = {
            who: {"words": [word for row in rows for word in words_of(*row)]} for who, rows in self.spoken.items()
        }
        (folder / "labels.json").write_text(json.dumps(labels))
        return folder / "user.wav", folder / "system.wav", folder / "labels.json"


def words_of(start_s: float, end_s: float, text: str) -> list[dict]:
    tokens = text.split()
    edges = np.linspace(start_s, end_s, len(tokens) + 1)
    return [
        {"word": token, "start": float(a), "end": float(b)}
        for token, a, b in zip(tokens, edges[:-1], edges[1:], strict=True)
    ]


def dialogue() -> Planted:
    return (
        Planted()
        .say("user", 1.0, 2.5, "what is the capital of france")
        .say("system", 3.2, 5.0, "the capital of france is paris")  # 0.7 s after the turn end
        .say("user", 6.0, 7.5, "i would like to book")
        .say("user", 9.0, 10.5, "a table for four people")  # after a pause of 1.5 s without a word of the system
        .say("system", 11.4, 14.0, "a table for four is reserved now")  # 0.9 s
        .say("user", 16.0, 18.0, "the thing i wanted to say")
        .say("system", 18.6, 19.2, "go on")  # takes the pause after 0.6 s, and gives way
        .say("user", 20.4, 22.0, "is about the old garden")
        .say("system", 22.8, 26.8, "the garden was planted many years ago and")  # 0.8 s, stops 0.6 s after 26.2
        .say("user", 26.2, 28.0, "wait please stop that now")
        .say("system", 29.0, 35.0, "all right let us talk about the weather of the week")  # 1.0 s
        .say("user", 31.0, 31.4, "yes")  # a backchannel that the system talks through
        .say("user", 36.2, 38.0, "my number is five five five")
        .say("system", 38.6, 43.0, "thank you i have written down your number")  # 0.6 s, while the user goes on
        .say("user", 40.2, 41.4, "seven two nine four")
    )


@pytest.fixture
def files(tmp_path):
    return dialogue().write(tmp_path, 45.0)


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "data" / "store")


def by_metric(scored, metric):
    return [(one.at_s, one.score.value) for one in scored.measurements if one.metric == metric]


def values(scored, metric):
    return [value for _, value in by_metric(scored, metric) if value is not None]


@pytest.mark.unit
def test_every_planted_moment_comes_back(files, store):
    scored = score(*files, store, SETTINGS)
    assert values(scored, "turn_end_latency") == pytest.approx([0.7, 0.9, 0.8, 1.0, 0.6, -2.8])
    assert values(scored, "pause_silent") == [1.0, 0.0]
    assert values(scored, "pause_takeover") == [0.0, 1.0]
    assert values(scored, "takeover_latency") == pytest.approx([0.6])
    assert values(scored, "interruption_stop_latency") == pytest.approx([0.6])
    assert values(scored, "interruption_stopped") == [1.0, 0.0]
    assert values(scored, "backchannel_kept_on") == [1.0]


@pytest.mark.unit
def test_takeovers_that_labels_call_turn_ends_are_found(files, store):
    scored = score(*files, store, SETTINGS)
    # The pause that was taken, the interruption within 5 s of the turn end, and the number that was talked over.
    assert [at for at, value in by_metric(scored, "floor_taken_while_going") if value == 1.0] == pytest.approx(
        [18.6, 22.8, 38.6], abs=0.011
    )
    assert values(scored, "floor_taken_while_going") == [0.0, 1.0, 1.0, 1.0]
    assert values(scored, "pause_takeover") == [0.0, 1.0]


@pytest.mark.unit
def test_with_the_paper_rule_short_answers_are_failed_takes(files, store):
    rules = replace(SETTINGS, labels=LabelRules())
    assert len(values(score(*files, store, rules), "turn_end_latency")) < 6
    assert len(values(score(*files, store, SETTINGS), "turn_end_latency")) == 6


@pytest.mark.unit
def test_one_file_with_both_channels_scores_the_same(files, store, tmp_path):
    user, system, labels = files
    both = np.stack([soundfile.read(path)[0] for path in (user, system)], axis=1)
    soundfile.write(tmp_path / "both.wav", both, RATE, subtype="PCM_16")
    one = score(tmp_path / "both.wav", None, labels, store, SETTINGS)
    two = score(user, system, labels, store, SETTINGS)
    assert [(m.metric, m.score, m.at_s) for m in one.measurements] == [
        (m.metric, m.score, m.at_s) for m in two.measurements
    ]


@pytest.mark.unit
def test_labels_beside_the_files_are_taken_and_named(files, store, tmp_path):
    user, system, labels = files
    found = json.loads(labels.read_text())
    (tmp_path / "user.json").write_text(json.dumps({"anna": found["user"]}))
    (tmp_path / "system.json").write_text(json.dumps({"bot": found["system"]}))
    scored = score(user, system, None, store, SETTINGS)
    assert values(scored, "takeover_latency") == pytest.approx([0.6])
    assert {"user.json was read as labels", "system.json was read as labels"} <= set(scored.notes)


@pytest.mark.unit
def test_a_file_that_names_the_system_first_is_read_the_right_way_round(files, store, tmp_path):
    user, system, labels = files
    found = json.loads(labels.read_text())
    turned = tmp_path / "turned.json"
    turned.write_text(json.dumps({"assistant": found["system"], "caller": found["user"]}))
    scored = score(user, system, turned, store, SETTINGS)
    assert values(scored, "takeover_latency") == pytest.approx([0.6])
    assert any("'caller' as the user" in note for note in scored.notes)


@pytest.mark.unit
def test_labels_of_one_speaker_say_what_is_wanted(files, store, tmp_path):
    user, system, _ = files
    alone = tmp_path / "alone.json"
    alone.write_text('{"anna": {"words": []}}')
    with pytest.raises(AnnotationError, match=r"alone\.json.*two speakers"):
        score(user, system, alone, store, SETTINGS)


@pytest.mark.unit
def test_the_page_its_tables_and_a_second_run(files, tmp_path):
    out = tmp_path / "out"
    for _ in range(2):
        summary = score_audio(*files, out, tmp_path / "data", SETTINGS)
    text = summary.index.read_text()
    assert "While the user was still going" in text
    assert "0:38.6" in text
    assert 'href="track-' not in text
    tables = load_run(out)
    row = tables["summary"].row(by_predicate=pl.col("metric") == "turn_end_latency", named=True)
    assert (row["n_scored"], row["n_windows"]) == (6, 6)
    assert row["estimate"] == pytest.approx(0.75)
    alone = tables["summary"].row(by_predicate=pl.col("metric") == "interruption_stop_latency", named=True)
    assert alone["estimate"] == pytest.approx(0.6)
    assert "no estimate" in alone["reason"]
    assert set(tables["labels"]["speaker"]) == {"user", "system"}
    media = list((out / "media").iterdir())
    assert len(media) == 1
    assert soundfile.info(media[0]).channels == 2


@pytest.mark.unit
def test_a_folder_that_is_no_report_is_refused_before_any_work(files, tmp_path):
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "thesis.txt").write_text("mine")
    with pytest.raises(ReportInputError, match="name another folder"):
        score_audio(*files, tmp_path / "taken", tmp_path / "data", SETTINGS)
    assert not (tmp_path / "data").exists()


@pytest.mark.unit
def test_files_of_other_rates_and_lengths_are_matched(store, tmp_path):
    burst = dialogue().track("user", 45.0)
    soundfile.write(tmp_path / "u.wav", burst, RATE)
    slow = np.repeat(dialogue().track("system", 45.0), 3)[: 44 * 3 * RATE]
    soundfile.write(tmp_path / "s.wav", slow, 3 * RATE)
    found = prepare(tmp_path / "u.wav", tmp_path / "s.wav", store, DEFAULT_GATE)
    assert found.sample_rate_hz == 24_000
    assert found.duration_s == pytest.approx(44.0, abs=1e-3)
    assert found.gate_s("user")[0, 0] == pytest.approx(1.0, abs=0.021)
    assert found.gate_s("system")[0, 0] == pytest.approx(3.2, abs=0.021)
    assert any("u.wav is 1.000 s longer than s.wav" in note for note in found.notes)
    assert sum("was resampled" in note for note in found.notes) == 2


def saved(folder, samples, rate=RATE, subtype="PCM_16"):
    path = folder / "bad.wav"
    soundfile.write(path, samples, rate, subtype=subtype)
    return path


def broken_nan(folder):
    samples = np.zeros((RATE, 2), dtype=np.float32)
    samples[500, 1] = np.nan
    return saved(folder, samples, subtype="FLOAT")


@pytest.mark.unit
@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: folder / "missing.wav", "no such file"),
        (lambda folder: saved(folder, np.zeros((0, 2))), "holds no samples"),
        (lambda folder: saved(folder, NOISE[:RATE]), "second file"),
        (broken_nan, "sample 500 is NaN"),
        (lambda folder: saved(folder, np.stack([NOISE[:RATE]] * 2, axis=1)), "one channel saved twice"),
    ],
)
def test_bad_audio_names_file_and_remedy(make, said, store, tmp_path):
    path = make(tmp_path)
    with pytest.raises(AudioFileError, match=said) as raised:
        prepare(path, None, store, DEFAULT_GATE)
    assert path.name in str(raised.value)
    assert not list(store.root.glob(".writing-*"))


@pytest.mark.unit
def test_two_channels_and_a_second_file_are_refused(files, store, tmp_path):
    stereo = saved(tmp_path, np.stack([NOISE[:RATE], NOISE[RATE : 2 * RATE]], axis=1))
    with pytest.raises(AudioFileError, match="one two-channel file alone"):
        prepare(stereo, files[1], store, DEFAULT_GATE)


@pytest.mark.unit
def test_clipped_telephone_audio_is_scored_with_a_warning(store, tmp_path):
    loud = np.clip(np.stack([NOISE[:RATE] * 60, NOISE[RATE : 2 * RATE]], axis=1), -1, 1)
    notes = prepare(saved(tmp_path, loud, rate=8000), None, store, DEFAULT_GATE).notes
    assert any(note.startswith("user's channel") and "clipped" in note for note in notes)
    assert sum("telephone band" in note for note in notes) == 2


@pytest.mark.unit
def test_memory_does_not_grow_with_the_recording(store, tmp_path):
    path = tmp_path / "hours.wav"
    block = np.stack([NOISE[: 8000 * 10], NOISE[8000 * 10 : 8000 * 20]], axis=1)
    with soundfile.SoundFile(path, "w", 8000, 2, "PCM_16") as stream:
        for _ in range(120):
            stream.write(block)
    tracemalloc.start()
    try:
        found = prepare(path, None, store, DEFAULT_GATE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.duration_s == 1200.0
    assert peak < 20e6 < found.n_samples * 2 * 4


@pytest.mark.engine
def test_beyond_the_limit_only_silence_at_pauses_is_scored(store, tmp_path):
    path = tmp_path / "alone.flac"
    path.write_bytes((RECORDINGS / "michaelandsickmichael.flac").read_bytes())
    chosen = replace(SETTINGS, speech=SpeechSettings(max_words_s=10.0))
    scored = score(path, None, None, store, chosen)
    assert scored.session.left.speech[0][0] < 2.0
    assert not scored.session.right.words
    scores = {one.metric: one.score for one in scored.measurements}
    assert scores.pop("pause_silent").value == 1.0
    assert all("cut the recording" in one.reason for one in scores.values())
    assert {"turn_end_latency", "pause_takeover", "floor_taken_while_going"} <= set(scores)


@pytest.mark.engine
def test_planted_speech_through_our_own_engines(store, tmp_path, monkeypatch):
    from duplex_bench.audio.resample import resample
    from duplex_bench.speech.engines import text_to_speech

    monkeypatch.setattr(recording_engines, "_WORTH_PROCESSES", 1000)
    voices = text_to_speech()
    tracks = {"user": [], "system": []}

    def say(who, at_s, text, most_s=60.0):
        spoken = voices.speak(text, "a" if who == "user" else "b")
        clip = resample(spoken.samples, spoken.sample_rate_hz, 24_000)
        clip = clip[: round(most_s * 24_000)]
        # Where the cut falls into a gap between words, the sound ends before it.
        clip = clip[: np.flatnonzero(np.abs(clip) > 0.02)[-1] + 1]
        tracks[who].append((round(at_s * 24_000), clip))
        return at_s + len(clip) / 24_000

    end_s = say("user", 1.0, "What is the capital of France?")
    end_s = say("system", end_s + 0.7, "The capital of France is Paris.")
    end_s = say("user", end_s + 1.0, "Where was the garden planted?")
    long = "The garden was planted many years ago by a family that loved roses."
    end_s = say("system", end_s + 0.9, long, most_s=3.0)
    end_s = say("user", end_s - 0.6, "Please stop talking about the garden right now.")
    for who, clips in tracks.items():
        samples = np.zeros(round((end_s + 1.5) * 24_000), dtype=np.float32)
        for start, clip in clips:
            samples[start : start + len(clip)] = clip
        soundfile.write(tmp_path / f"{who}.wav", samples, 24_000)
    chosen = replace(SETTINGS, speech=SpeechSettings(recogniser="whisper-tiny.en"))
    scored = score(tmp_path / "user.wav", tmp_path / "system.wav", None, store, chosen)
    assert values(scored, "turn_end_latency") == pytest.approx([0.7, 0.9], abs=0.1)
    assert values(scored, "interruption_stop_latency") == pytest.approx([0.6], abs=0.03)
    assert values(scored, "response_rate") == [1.0, 1.0, 0.0]
    assert "Paris" in " ".join(word.text for word in scored.session.right.words)


@pytest.mark.engine
def test_what_was_recognised_is_not_recognised_again(store, monkeypatch):
    monkeypatch.setattr(recording_engines, "_WORTH_PROCESSES", 1000)
    chosen = SpeechSettings(recogniser="whisper-tiny.en")
    hertz = RECORDINGS / "jfk_16k.flac"
    samples, rate = soundfile.read(hertz, dtype="float32")
    samples = samples[: 4 * rate]
    first = recording_engines.ChunkedRecogniser(chosen, store).words(samples, rate)
    assert "fellow" in " ".join(word.text for word in first).lower()

    def never(*_):
        raise AssertionError("recognised again")

    monkeypatch.setattr(recording_engines, "hear", never)
    assert recording_engines.ChunkedRecogniser(chosen, store).words(samples, rate) == first


@pytest.mark.unit
def test_a_stretch_that_fails_says_so_and_what_to_do(store, monkeypatch):
    def fails(*_):
        raise ValueError("no model")

    monkeypatch.setattr(recording_engines, "hear", fails)
    recogniser = recording_engines.ChunkedRecogniser.__new__(recording_engines.ChunkedRecogniser)
    recogniser._settings, recogniser._store = SpeechSettings(), store
    recogniser._recogniser = type("Named", (), {"engine_id": "named/1"})()
    with pytest.raises(recording_engines.RecordingError, match=r"1\.00 s .*no model.*run the same again"):
        recogniser.words(np.concatenate([np.zeros(RATE, np.float32), NOISE[:RATE]]), RATE)


class FixedVoice:
    engine_id = "fixed/1"

    def __init__(self, regions):
        self.regions = np.asarray(regions, dtype=np.int64).reshape(-1, 2)

    def speech_regions(self, samples, sample_rate_hz):
        return self.regions


@pytest.mark.unit
def test_edges_go_to_the_gate_where_it_is_near():
    samples = np.zeros(4 * RATE, dtype=np.float32)
    samples[RATE : 2 * RATE] = NOISE[:RATE]
    late = EdgedVoiceActivity(FixedVoice([[RATE + 300, 2 * RATE + 900]]), DEFAULT_GATE, 0.1)
    start, stop = late.speech_regions(samples, RATE)[0] / RATE
    assert start == pytest.approx(1.0, abs=0.021)
    assert stop == pytest.approx(2.0, abs=0.021)


@pytest.mark.unit
def test_in_noise_the_detector_keeps_its_edges():
    voice = FixedVoice([[RATE, 2 * RATE]])
    edged = EdgedVoiceActivity(voice, DEFAULT_GATE, 0.1).speech_regions(NOISE[: 4 * RATE], RATE)
    np.testing.assert_array_equal(edged, voice.regions)


def spans(most):
    edges = st.lists(st.integers(0, most), unique=True, min_size=0, max_size=12).map(sorted)
    return edges.map(lambda found: np.asarray(found[: len(found) // 2 * 2], dtype=np.int64).reshape(-1, 2))


@pytest.mark.unit
@settings(deadline=None)  # the machine may be busy
@given(spans(40_000), spans(40_000))
def test_moved_edges_stay_near_apart_and_in_order(regions, gated):
    voice = EdgedVoiceActivity(FixedVoice(regions), DEFAULT_GATE, 0.1)
    moved = voice.edged(regions, gated, RATE)
    assert (np.abs(moved - regions) <= 1600).all()
    assert (np.diff(moved.reshape(-1)) >= 0).all()
    assert (moved[:, 1] > moved[:, 0]).all()


@pytest.mark.unit
@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.01, 5)).map(lambda pair: (pair[0], pair[0] + pair[1]))))
def test_merged_spans_cover_the_same_time_once(rows):
    joined = merged(rows)
    assert (joined[1:, 0] > joined[:-1, 1]).all()
    for start, end in rows:
        assert ((joined[:, 0] <= start) & (joined[:, 1] >= end)).sum() == 1
    assert set(joined.reshape(-1).tolist()) <= {edge for row in rows for edge in row}


@pytest.mark.unit
def test_real_labels_of_words_on_a_real_recording(store):
    recording = prepare(RECORDINGS / "michaelandsickmichael.flac", None, store, DEFAULT_GATE)
    speech = speech_of(recording, [RECORDINGS / "michaelandsickmichael.flac"], None, store, DEFAULT_GATE)
    assert speech.no_words is None
    assert any("'michael' as the user" in note for note in speech.notes)
    assert {one.where for one in speech.session.corrections} == {"user", "system"}
