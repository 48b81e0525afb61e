import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.audio.mixing import rms_dbfs
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech import engines
from duplex_bench.speech.qwen_asr import timed_words
from duplex_bench.speech.qwen_settings import (
    EngineSettingsError,
    QwenAsrSettings,
    QwenTtsSettings,
    SpeakingRules,
    load_settings,
    model_revision,
)
from duplex_bench.speech.qwen_tts import expected_s, fault_of, finished, most_codes
from duplex_bench.storage.digests import generator_from

pytestmark = pytest.mark.unit

RATE_HZ = 24000
RULES = SpeakingRules()
TEXT = "The train leaves at noon."


class Hears:
    engine_id = "told"

    def __init__(self, text):
        self.text = text

    def words(self, samples, sample_rate_hz):
        return tuple(TimedWord(word, 0.0, 0.1) for word in self.text.split())


def sound(duration_s, tail_s=0.0):
    noise = 0.2 * generator_from("qwen test").standard_normal(round(duration_s * RATE_HZ))
    return np.concatenate([noise, np.zeros(round(tail_s * RATE_HZ))]).astype(np.float32)


def test_letters_give_the_length_and_the_cap():
    assert expected_s(TEXT, RULES) == pytest.approx(20 / 12)
    # 12.5 codes a second, twice the expected length: 41.7, rounded up.
    assert most_codes(TEXT, RULES) == 42
    assert most_codes("Yes.", RULES) == 25
    assert expected_s("7", RULES) == pytest.approx(5 / 12)


@pytest.mark.parametrize("text", ["", "  ", "?!"])
def test_nothing_to_say_is_refused(text):
    with pytest.raises(ValueError, match="nothing to say"):
        expected_s(text, RULES)


def test_a_clip_as_it_should_be_has_no_fault():
    assert fault_of(sound(1.7), RATE_HZ, TEXT, RULES, Hears("the train leaves at noon")) is None


@pytest.mark.parametrize(
    ("raw", "heard", "told"),
    [
        (sound(41 * 0.08), TEXT, "no end within 42 codes"),
        # The known failure: the sentence, then near silence up to the limit.
        (sound(1.7, tail_s=41 * 0.08 - 1.7), TEXT, "no end within 42 codes"),
        (np.zeros(24000, dtype=np.float32), TEXT, "silence"),
        (sound(0.3, tail_s=1.0), TEXT, "0.34 s of speech where about 1.67 s"),
        (np.full(24000, np.nan, dtype=np.float32), TEXT, "no numbers"),
        (sound(1.7), "the rain leaves", "60% word errors: heard as 'the rain leaves'"),
        (sound(1.7), "", "100% word errors"),
    ],
)
def test_each_fault_is_named(raw, heard, told):
    fault = fault_of(raw, RATE_HZ, TEXT, RULES, Hears(heard))
    if told.startswith("0.34"):
        assert fault.startswith("0.3")
        assert "expected" in fault
    else:
        assert told in fault


def test_one_code_below_the_limit_is_an_end():
    assert fault_of(sound(40 * 0.08), RATE_HZ, TEXT, RULES, None) is None


def test_a_finished_clip_is_trimmed_and_at_the_level_of_the_cast():
    raw = np.concatenate([np.zeros(RATE_HZ, dtype=np.float32), sound(1.7), np.zeros(RATE_HZ, dtype=np.float32)])
    clip = finished(raw, RATE_HZ)
    assert len(clip.samples) / RATE_HZ == pytest.approx(1.74, abs=0.005)
    assert rms_dbfs(clip.samples) == pytest.approx(-26.0, abs=0.01)
    assert clip.samples[0] == 0.0


WORDS = st.lists(
    st.tuples(st.sampled_from(["yes", "no", "?", "it's"]), st.floats(-1, 40), st.floats(-1, 40)), max_size=8
)


@given(WORDS, st.floats(0, 1000), st.floats(0.1, 30))
def test_words_stay_inside_their_utterance_and_are_flagged_unless_sound(heard, offset_s, duration_s):
    words = timed_words(heard, offset_s, duration_s)
    assert [word.text for word in words] == [text for text, _, _ in heard if text != "?"]
    for word, (_, start_s, end_s) in zip(words, [row for row in heard if row[0] != "?"], strict=True):
        assert offset_s <= word.start_s <= word.end_s <= offset_s + duration_s
        assert word.aligned == (0 <= start_s < end_s <= duration_s)


def test_a_word_without_length_is_kept_and_flagged():
    words = timed_words([("well", 0.4, 0.72), ("so", 0.72, 0.72)], 10.0, 2.0)
    assert words == [TimedWord("well", 10.4, 10.72), TimedWord("so", 10.72, 10.72, aligned=False)]


GOOD = 'model = "tts"\n[runtime]\ninterpreter = "python3"\n'


def test_paths_are_seen_from_the_settings_file(tmp_path):
    (tmp_path / "envs").mkdir()
    (tmp_path / "envs" / "python").touch(mode=0o755)
    (tmp_path / "tts.toml").write_text(GOOD.replace("python3", "envs/python"))
    settings = load_settings(str(tmp_path / "tts.toml"), QwenTtsSettings)
    assert settings.runtime.interpreter == str(tmp_path / "envs/python")
    assert settings.model == str(tmp_path / "tts")
    assert list(settings.voices.values())[:2] == ["Ryan", "Aiden"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("model = ", "not TOML"),
        (GOOD + "colour = 1\n", "runtime.colour"),
        ('[runtime]\ninterpreter = "p"\n', "model: Field required"),
        (GOOD + "[rules]\nbatch_size = 0\n", "rules.batch_size"),
        (GOOD.replace("[runtime]", 'voices = {a = "Ryan", b = "ryan"}\n[runtime]'), "two voices have the same speaker"),
        (GOOD + 'dtype = "int3"\n', "runtime.dtype"),
        (GOOD.replace("python3", "envs/python"), "envs/python is not there"),
    ],
)
def test_settings_that_cannot_be_used_name_file_and_key(tmp_path, text, told):
    path = tmp_path / "tts.toml"
    path.write_text(text)
    with pytest.raises(EngineSettingsError) as caught:
        load_settings(str(path), QwenTtsSettings)
    assert str(path) in str(caught.value)
    assert told in str(caught.value)


def test_a_settings_file_that_is_not_there_is_named():
    with pytest.raises(EngineSettingsError, match=r"nowhere\.toml: no such file"):
        load_settings("nowhere.toml", QwenAsrSettings)


@pytest.mark.parametrize(
    ("make", "name", "told"),
    [
        (engines.text_to_speech, "qwen3-tts", "needs its settings file"),
        (engines.text_to_speech, "embedded:x.toml", "takes no settings file"),
        (engines.text_to_speech, "qwen3-asr:x.toml", "no text to speech named"),
        (engines.recogniser, "qwen3-asr", "needs its settings file"),
        (engines.recogniser, "whisper-huge", "no recogniser named"),
        (engines.voice_cloning, "embedded", "no voice cloning named"),
    ],
)
def test_engine_names_are_checked(make, name, told):
    with pytest.raises(ValueError, match=told):
        make(name)


def test_a_model_is_known_by_the_content_of_its_files(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "speech_tokenizer").mkdir()
    (tmp_path / "speech_tokenizer" / "model.safetensors").write_bytes(b"one")
    first = model_revision(str(tmp_path))
    (tmp_path / "speech_tokenizer" / "model.safetensors").write_bytes(b"other")
    second = model_revision(str(tmp_path))
    (tmp_path / "speech_tokenizer" / "model.safetensors").write_bytes(b"one")
    assert first == model_revision(str(tmp_path)) != second
    with pytest.raises(EngineSettingsError, match=r"no config\.json"):
        model_revision(str(tmp_path / "speech_tokenizer"))


def test_only_what_can_change_a_sample_changes_the_id():
    settings = QwenTtsSettings.model_validate({"model": "m", "runtime": {"interpreter": "p"}})
    elsewhere = settings.model_copy(
        update={"runtime": settings.runtime.model_copy(update={"interpreter": "q", "answer_timeout_s": 5.0})}
    )
    other = settings.model_copy(update={"rules": SpeakingRules(seed=1)})
    assert settings.digest == elsewhere.digest != other.digest
