import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.speech.aligner import ForcedAligner, spoken_form
from duplex_bench.speech.quality import control_signals
from duplex_bench.speech.recogniser import EmbeddedRecogniser, utterances
from duplex_bench.speech.whisper_engine import LONGEST_S
from duplex_bench.text.error_rate import word_errors


@pytest.mark.engine
@pytest.mark.parametrize("name", control_signals())
def test_no_speech_gives_no_words_and_whisper_is_not_asked(vad, name):
    class Refusing:
        engine_id = "refusing"

        def hear(self, samples):
            raise AssertionError("Whisper was asked about no speech")

    recogniser = EmbeddedRecogniser(vad, Refusing(), ForcedAligner())
    assert recogniser.words(control_signals()[name], 24000) == ()


@pytest.mark.engine
def test_word_starts_lie_where_the_words_were_put(base, track):
    samples, _, starts_s = track
    words = base.words(samples, 24000)
    assert all(word.aligned for word in words)
    assert len(words) == len(starts_s)
    errors_s = [abs(word.start_s - start) for word, start in zip(words, starts_s, strict=True)]
    assert np.median(errors_s) <= 0.04
    assert np.quantile(errors_s, 0.9) <= 0.1
    assert all(word.start_s < word.end_s for word in words)


@pytest.mark.engine
@pytest.mark.parametrize("size", ["tiny", "base"])
def test_real_speech_is_understood(request, size, real_speech):
    samples, rate_hz = real_speech
    words = request.getfixturevalue(size).words(samples, rate_hz)
    expected = (
        "And so my fellow Americans ask not what your country can do for you ask what you can do for your country"
    )
    assert word_errors(expected, " ".join(word.text for word in words)).rate <= 0.05
    assert all(earlier.start_s <= later.start_s for earlier, later in itertools.pairwise(words))


@pytest.mark.engine
def test_words_again_are_the_same(tiny, real_speech):
    samples, rate_hz = real_speech
    part = samples[: 4 * rate_hz]
    assert tiny.words(part, rate_hz) == tiny.words(part, rate_hz)


@pytest.mark.engine
def test_numbers_and_unknown_names_are_aligned(tiny, tts):
    clip = tts.speak("Yamura paid 42 dollars at the door, and we met again at 7:30.", "narrator")
    words = tiny.words(clip.samples, 24000)
    assert words
    assert all(word.aligned for word in words)


@pytest.mark.engine
def test_words_that_do_not_fit_keep_whispers_times_and_say_so(vad, tiny, track):
    class Failing:
        engine_id = "failing"

        def align(self, samples, words):
            return None

    samples, edges, starts_s = track
    words = EmbeddedRecogniser(vad, tiny._asr, Failing()).words(samples, 24000)
    assert words
    assert not any(word.aligned for word in words)
    assert all(edges[0][0] / 24000 - 0.3 <= word.start_s <= word.end_s <= edges[-1][1] / 24000 + 0.3 for word in words)
    nearest = [min(abs(word.start_s - start) for start in starts_s) for word in words]
    assert np.median(nearest) < 0.25


@pytest.mark.engine
def test_an_impossible_text_is_not_aligned():
    assert ForcedAligner().align(np.zeros(1600, dtype=np.float32), ["impossible"] * 40) is None
    assert ForcedAligner().align(np.zeros(1600, dtype=np.float32), []) is None


@pytest.mark.engine
def test_more_than_whisper_hears_at_once_is_refused(tiny):
    with pytest.raises(ValueError, match="at most 28 s"):
        tiny._asr.hear(np.zeros(29 * 16000, dtype=np.float32))


@pytest.mark.unit
def test_spoken_forms():
    assert [spoken_form(word) for word in ("Don’t", "well,", "'twas", "co-op.")] == ["don't", "well", "twas", "coop"]


@pytest.mark.unit
@given(st.lists(st.tuples(st.integers(1, 40_000), st.integers(1, 900_000)), max_size=8))
def test_utterances_hold_all_speech_apart_and_short_enough(runs):
    regions, position = [], 0
    for gap, length in runs:
        regions.append((position + gap, position + gap + length))
        position += gap + length
    n_samples = position + 500
    found = utterances(np.asarray(regions, dtype=np.int64).reshape(-1, 2), n_samples)
    for start, stop in found:
        assert 0 <= start < stop <= n_samples
        assert stop - start <= LONGEST_S * 16000
    for (_, stop), (start, _) in itertools.pairwise(found):
        assert stop <= start
    for start, stop in regions:
        inside = sum(max(0, min(stop, b) - max(start, a)) for a, b in found)
        assert inside == stop - start
