import importlib.util

import numpy as np
import pytest

from duplex_bench.audio.resample import resample
from duplex_bench.speech import engines
from duplex_bench.storage.model_files import package_folder

pytestmark = pytest.mark.engine


@pytest.fixture(scope="module")
def detector():
    return engines.turn_end("smart-turn")


def test_a_whole_sentence_is_complete_and_a_cut_one_is_not(detector, real_speech):
    samples, rate_hz = real_speech
    pause = np.zeros(rate_hz // 5, dtype=np.float32)
    whole = detector.completion_probability(np.concatenate([samples, pause]), rate_hz)
    # Cut after "And so, my fellow Americans" and after "ask what you can do".
    cut = [
        detector.completion_probability(np.concatenate([samples[: round(at_s * rate_hz)], pause]), rate_hz)
        for at_s in (1.2, 9.55)
    ]
    assert whole > 0.5
    assert max(cut) < 0.5


def test_features_equal_the_models_own(detector, real_speech):
    path = package_folder("pipecat") / "audio" / "turn" / "smart_turn" / "_whisper_features.py"
    spec = importlib.util.spec_from_file_location("smart_turn_features", path)
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    samples, rate_hz = real_speech
    for n_samples in (3 * rate_hz, 8 * rate_hz, len(samples)):
        part = samples[:n_samples]
        padded = np.pad(part[-8 * rate_hz :], (max(0, 8 * rate_hz - n_samples), 0))
        expected = reference.compute_whisper_log_mel_features(padded)
        assert detector.features(part).shape == (80, 800)
        assert np.abs(detector.features(part) - expected).max() < 1e-2


def test_only_the_last_eight_seconds_count_at_any_rate(detector, real_speech):
    samples, rate_hz = real_speech
    alone = detector.completion_probability(samples[-8 * rate_hz :], rate_hz)
    assert detector.completion_probability(samples, rate_hz) == pytest.approx(alone)
    # What resampling changes is inaudible, but the network answers 0.1 to 0.2 differently.
    at_24k = detector.completion_probability(resample(samples, rate_hz, 24000), 24000)
    assert at_24k == pytest.approx(alone, abs=0.25)
    assert (at_24k > 0.5) == (alone > 0.5)


def test_no_audio_is_refused(detector):
    with pytest.raises(ValueError, match="no audio"):
        detector.completion_probability(np.zeros(0, dtype=np.float32), 16000)
