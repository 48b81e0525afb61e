"""The vendors' own packages, each in its environment, on checkpoints with random weights: `make test-qwen`.

What is proved: that our workers call the packages as they are, load their file formats, keep seeds, batch, notice a
missing end, and place and flag words. What is not: anything about how the released weights speak or listen.
"""

import os
import signal
import subprocess
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.speech import engines
from duplex_bench.speech.clip_cache import CachedTextToSpeech
from duplex_bench.speech.foreign import ForeignEngineError
from duplex_bench.speech.qwen_settings import QwenTtsSettings, load_settings
from duplex_bench.speech.qwen_tts import QwenTextToSpeech, QwenVoiceCloning
from duplex_bench.storage.object_store import FolderStore

# Loading torch takes half a minute where the processors are busy.
pytestmark = [pytest.mark.qwen, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
BUILDERS = Path(__file__).parent / "tiny_models"
LINES = [("Hello there.", "a"), ("Nobody knew.", "b"), ("Good morning, all of you.", "c"), ("Yes, I am.", "d")]


def interpreter(name):
    python = ROOT / ".cache" / f"venv-qwen-{name}" / "bin" / "python"
    if not python.exists():
        pytest.fail(f"{python} is not there: run `make test-qwen`, which makes it")
    return python


def build(name, *arguments):
    command = [str(interpreter(name)), str(BUILDERS / f"tiny_qwen_{name}.py"), *map(str, arguments)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "HF_HUB_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stderr[-2000:]


def settings_file(folder, name, more="", **paths):
    path = folder / f"{name}-{len(list(folder.iterdir()))}.toml"
    lines = [f'{key} = "{value}"' for key, value in paths.items()]
    runtime = f'[runtime]\ninterpreter = "{interpreter(name)}"\ndevice = "cpu"\ndtype = "float32"\n'
    path.write_text("\n".join(lines) + "\n" + runtime + more)
    return str(path)


@pytest.fixture(scope="module")
def voices(tmp_path_factory):
    """A tiny CustomVoice checkpoint."""
    folder = tmp_path_factory.mktemp("tts") / "model"
    build("tts", folder, "custom_voice")
    return folder


@pytest.fixture(scope="module")
def speaker(voices, tmp_path_factory):
    """An engine without the check of words: random weights say nothing."""
    path = settings_file(tmp_path_factory.mktemp("settings"), "tts", '[rules]\nchecked_by = ""\n', model=voices)
    engine = QwenTextToSpeech(load_settings(path, QwenTtsSettings))
    yield engine
    engine.close()


@pytest.fixture(scope="module")
def asr_folders(tmp_path_factory):
    folder = tmp_path_factory.mktemp("asr")
    build("asr", folder / "model", folder / "aligner")
    return folder


@pytest.fixture(scope="module")
def listener(asr_folders, tmp_path_factory):
    path = settings_file(
        tmp_path_factory.mktemp("settings"), "asr", model=asr_folders / "model", aligner=asr_folders / "aligner"
    )
    # At the top of the file, above the tables.
    Path(path).write_text("most_tokens = 24\n" + Path(path).read_text())
    engine = engines.recogniser(f"qwen3-asr:{path}")
    yield engine
    engine.close()


def test_a_batch_gives_clips_or_a_missing_end_and_nothing_else(speaker):
    results = speaker.speak_batch(LINES)
    clips = [result.clip for result in results if result.clip is not None]
    assert clips, "all four random texts reached their limit three times"
    for clip in clips:
        assert clip.sample_rate_hz == 24000
        assert clip.samples.dtype == np.float32
        assert 0.0 < np.abs(clip.samples).max() <= 1.0
    for result in results:
        assert result.clip is not None or "no end within" in result.error or "were expected" in result.error


def test_the_same_request_gives_the_same_bytes_in_another_process(speaker):
    first = speaker.speak_batch(LINES)
    pid = speaker._engine.worker_pid
    speaker.close()
    second = speaker.speak_batch(LINES)
    assert speaker._engine.worker_pid != pid
    assert [result.error for result in first] == [result.error for result in second]
    said = [(one.clip, two.clip) for one, two in zip(first, second, strict=True) if one.clip is not None]
    assert said
    for one, two in said:
        np.testing.assert_array_equal(one.samples, two.samples)


def test_another_seed_gives_another_clip(speaker):
    request = {
        "kind": "speak",
        "texts": ["Hello there."],
        "speakers": ["Ryan"],
        "language": "English",
        "most_codes": 12,
        "sampling": {},
    }
    one, two, again = (speaker._engine.request({**request, "seed": seed})[1][0] for seed in (1, 2, 1))
    np.testing.assert_array_equal(one, again)
    assert len(one) != len(two) or not np.array_equal(one, two)


def test_what_has_no_end_before_its_cap_is_stopped_there_and_refused(voices, tmp_path):
    # Without sampling this checkpoint says 20 codes to this text: a cap of 6 stops it before its end.
    rules = (
        '[rules]\nchecked_by = ""\nattempts = 2\ncap_at_least_codes = 6\ncap_ratio = 0.1\n'
        "[rules.sampling]\ndo_sample = false\nsubtalker_dosample = false\n"
    )
    engine = QwenTextToSpeech(load_settings(settings_file(tmp_path, "tts", rules, model=voices), QwenTtsSettings))
    try:
        (result,) = engine.speak_batch([("Hello there.", "a")])
    finally:
        engine.close()
    assert result.clip is None
    assert "attempt 1: no end within 6 codes (0.5 s); attempt 2: no end within 6 codes (0.5 s)" in result.error


def test_noise_is_refused_by_what_the_recogniser_hears(voices, tmp_path):
    rules = '[rules]\nchecked_by = "whisper-tiny.en"\nattempts = 1\nleast_ratio = 0.0\n'
    engine = engines.text_to_speech(f"qwen3-tts:{settings_file(tmp_path, 'tts', rules, model=voices)}")
    try:
        results = engine.speak_batch(LINES)
    finally:
        engine.close()
    assert all(result.clip is None for result in results)
    assert any("word errors" in result.error for result in results)


def test_an_unknown_speaker_of_the_model_is_told_by_the_package(voices, tmp_path):
    text = settings_file(tmp_path, "tts", '[rules]\nchecked_by = ""\n', model=voices)
    settings = load_settings(text, QwenTtsSettings).model_copy(update={"voices": {"a": "Nobody"}})
    engine = QwenTextToSpeech(settings)
    try:
        with pytest.raises(ForeignEngineError, match="Unsupported speakers"):
            engine.speak("Hello there.", "a")
    finally:
        engine.close()


def test_a_checkpoint_of_another_kind_is_told_by_the_package(voices, tmp_path):
    path = settings_file(tmp_path, "tts", '[rules]\nchecked_by = ""\n', model=voices)
    cloning = QwenVoiceCloning(load_settings(path, QwenTtsSettings))
    try:
        with pytest.raises(ForeignEngineError, match="does not support"):
            cloning.speak_as(["Hello there."], np.full(24000, 0.1, dtype=np.float32), 24000)
    finally:
        cloning.close()


def test_a_killed_worker_is_replaced_and_stored_clips_are_not_spoken_again(speaker, tmp_path):
    cached = CachedTextToSpeech(speaker, FolderStore(tmp_path))
    failed = cached.speak_ahead(LINES)
    said = [line for line in LINES if line not in failed]
    os.kill(speaker._engine.worker_pid, signal.SIGKILL)
    for line in said:
        assert len(cached.speak(*line).samples) > 0
    with pytest.raises(ForeignEngineError, match="was lost"):
        speaker._engine.request({"kind": "nothing"})
    with pytest.raises(ForeignEngineError, match="KeyError"):
        speaker._engine.request({"kind": "nothing"})


def test_a_voice_is_cloned_with_and_without_the_words_of_its_recording(tmp_path, real_speech):
    samples, rate_hz = real_speech
    build("tts", tmp_path / "base", "base")
    rules = '[rules]\nchecked_by = ""\nleast_ratio = 0.0\nattempts = 4\n'
    path = settings_file(tmp_path, "tts", rules, model=tmp_path / "base")
    cloning = engines.voice_cloning(f"qwen3-tts-clone:{path}")
    texts = ["What did I say?", "Where was that?", "And then?"]
    try:
        plain = cloning.speak_as(texts, samples[: 3 * rate_hz], rate_hz)
        in_context = cloning.speak_as(texts, samples[: 3 * rate_hz], rate_hz, "And so my fellow Americans")
    finally:
        cloning.close()
    for results in (plain, in_context):
        assert any(result.clip is not None for result in results), [result.error for result in results]
        assert all(result.clip is not None or "no end within" in result.error for result in results)


def test_words_of_real_speech_lie_inside_it_and_are_flagged(listener, real_speech):
    samples, rate_hz = real_speech
    words = listener.words(samples, rate_hz)
    assert words
    regions = engines.voice_activity().speech_regions(samples, rate_hz) / rate_hz
    for word in words:
        assert any(start_s - 0.5 <= word.start_s <= word.end_s <= end_s + 0.5 for start_s, end_s in _joined(regions))
        assert not word.aligned or word.end_s > word.start_s
    assert words == listener.words(samples, rate_hz), "greedy decoding gives the same words again"


def test_silence_and_noise_have_no_words_and_start_no_worker(asr_folders, tmp_path):
    path = settings_file(tmp_path, "asr", model=asr_folders / "model", aligner=asr_folders / "aligner")
    engine = engines.recogniser(f"qwen3-asr:{path}")
    hiss = (0.05 * np.random.default_rng(0).standard_normal(48000)).astype(np.float32)
    for samples in (np.zeros(48000, dtype=np.float32), hiss):
        assert engine.words(samples, 24000) == ()
    assert engine._engine.worker_pid is None


def test_the_package_is_right_about_the_steps_of_the_aligner(listener, real_speech):
    samples, rate_hz = real_speech
    reply, _ = listener._engine.request({"kind": "hear", "language": "English"}, [samples[: 4 * rate_hz]])
    for _, start_s, end_s in reply["heard"][0]["words"]:
        assert round(start_s / 0.08, 6).is_integer() or end_s == start_s


def test_the_other_package_is_refused(voices, tmp_path):
    path = Path(settings_file(tmp_path, "tts", '[rules]\nchecked_by = ""\n', model=voices))
    path.write_text(path.read_text().replace("venv-qwen-tts", "venv-qwen-asr"))
    interpreter("asr")
    engine = QwenTextToSpeech(load_settings(str(path), QwenTtsSettings))
    with pytest.raises(ForeignEngineError, match="qwen-tts"):
        engine.speak("Hello there.", "a")


def _joined(regions):
    """Regions as the recogniser joins them: gaps up to half a second are inside an utterance."""
    joined = []
    for start_s, end_s in regions.tolist():
        if joined and start_s - joined[-1][1] <= 0.5:
            joined[-1][1] = end_s
        else:
            joined.append([start_s, end_s])
    return joined
