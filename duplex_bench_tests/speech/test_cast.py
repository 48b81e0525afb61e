import hashlib
import subprocess
import sys

import numpy as np
import pytest

from duplex_bench.audio.mixing import rms_dbfs
from duplex_bench.speech import engines
from duplex_bench.speech.quality import quality_sentences, speaker_distance
from duplex_bench.text.error_rate import WordErrors, word_errors

pytestmark = pytest.mark.engine

VOICES = ("narrator", "a", "b", "c", "d")
SENTENCES = (
    "My sister keeps two dogs, a parrot, and a very old cat.",
    "Turn left after the bridge and look for a small green door.",
    "We should leave before the traffic gets worse.",
)


def test_the_cast_has_five_voices(tts):
    assert tts.voices == VOICES


@pytest.mark.parametrize("voice", VOICES)
def test_a_voice_is_understood_at_one_level_without_clipping(tts, base, voice):
    errors = WordErrors()
    for sentence in SENTENCES:
        clip = tts.speak(sentence, voice)
        assert clip.sample_rate_hz == 24000
        assert clip.samples.dtype == np.float32
        assert np.abs(clip.samples).max() <= 0.96
        assert rms_dbfs(clip.samples) == pytest.approx(-26.0, abs=2.0)
        assert len(clip.word_starts_s) == len(sentence.split())
        assert list(clip.word_starts_s) == sorted(clip.word_starts_s)
        errors += word_errors(sentence, " ".join(word.text for word in base.words(clip.samples, 24000)))
    assert errors.rate <= 0.15


def test_the_same_bytes_again_and_in_another_process(tts):
    text = "Is there anything else that you need from the shop?"
    here = {voice: hashlib.sha256(tts.speak(text, voice).samples.tobytes()).hexdigest() for voice in reversed(VOICES)}
    again = {voice: hashlib.sha256(tts.speak(text, voice).samples.tobytes()).hexdigest() for voice in VOICES}
    program = (
        "import hashlib\n"
        "from duplex_bench.speech import engines\n"
        "tts = engines.text_to_speech()\n"
        f"for voice in {VOICES!r}:\n"
        f"    print(voice, hashlib.sha256(tts.speak({text!r}, voice).samples.tobytes()).hexdigest())\n"
    )
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    elsewhere = dict(line.split() for line in output.splitlines())
    assert here == again == elsewhere
    assert len(set(here.values())) == len(VOICES)


def test_voices_differ_more_from_each_other_than_from_themselves(tts):
    sentences = quality_sentences()[:4]
    clips = {voice: [tts.speak(sentence, voice) for sentence in sentences] for voice in VOICES}
    table = speaker_distance(clips)
    own = table.filter(table["voice"] == table["other"])["distance"]
    others = table.filter(table["voice"] != table["other"])["distance"]
    assert others.min() > own.max()


def test_what_cannot_be_said_is_refused(tts):
    with pytest.raises(ValueError, match="no voice 'zorro'"):
        tts.speak("Hello.", "zorro")
    for text in ("", "   ", "?!", "…"):
        with pytest.raises(ValueError, match="nothing to say"):
            tts.speak(text, "narrator")


def test_an_unknown_engine_is_named():
    with pytest.raises(ValueError, match="embedded"):
        engines.text_to_speech("espeak")
    with pytest.raises(ValueError, match=r"whisper-tiny\.en"):
        engines.recogniser("whisper-large")
