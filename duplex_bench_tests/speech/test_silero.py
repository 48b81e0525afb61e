import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.speech.silero import VoiceActivitySettings, regions_from_probabilities

FRAME_S = 0.032


@pytest.mark.engine
def test_edges_lie_within_the_documented_bias(vad, track):
    samples, edges, _ = track
    regions = vad.speech_regions(samples, 24000)
    onsets = [min(abs(start - found) for found in regions[:, 0]) / 24000 for start, _ in edges]
    offsets = [min(abs(stop - found) for found in regions[:, 1]) / 24000 for _, stop in edges]
    assert max(onsets) < 0.08
    assert max(offsets) < 0.12


@pytest.mark.engine
def test_blocks_of_any_size_give_what_one_block_gives(vad, track):
    samples, _, _ = track
    whole = vad.speech_regions(samples, 24000)
    for size in (777, 24000, 100_001):
        blocks = (samples[start : start + size] for start in range(0, len(samples), size))
        assert np.array_equal(vad.regions_of_blocks(blocks, 24000), whole)


@pytest.mark.engine
def test_other_rates_find_the_same_speech(vad, real_speech):
    from duplex_bench.audio.resample import resample

    samples, rate_hz = real_speech
    at_16k = vad.speech_regions(samples, rate_hz) / rate_hz
    at_48k = vad.speech_regions(resample(samples, rate_hz, 48000), 48000) / 48000
    assert at_48k.shape == at_16k.shape
    assert np.abs(at_48k - at_16k).max() <= 2 * FRAME_S


@pytest.mark.engine
def test_bad_audio_is_refused(vad):
    with pytest.raises(ValueError, match="mono float"):
        vad.speech_regions(np.zeros((100, 2), dtype=np.float32), 16000)
    with pytest.raises(ValueError, match="mono float"):
        vad.speech_regions(np.zeros(100, dtype=np.int16), 16000)
    with pytest.raises(ValueError, match="NaN"):
        vad.speech_regions(np.full(100, np.nan, dtype=np.float32), 16000)
    assert vad.speech_regions(np.zeros(0, dtype=np.float32), 16000).shape == (0, 2)


def _by_hand(probabilities, settings):
    """The two-threshold rule, frame by frame."""
    regions, start, silence = [], None, None
    for frame, probability in enumerate(probabilities):
        if start is None:
            if probability >= settings.open_probability:
                start = frame
        elif silence is None:
            if probability < settings.close_probability:
                silence = frame
        elif probability >= settings.open_probability:
            if (frame - silence) * FRAME_S >= settings.min_silence_s:
                regions.append((start, silence))
                start = frame
            silence = None
    if start is not None:
        regions.append((start, silence if silence is not None else len(probabilities)))
    return [(a, b) for a, b in regions if (b - a) * FRAME_S >= settings.min_speech_s]


@pytest.mark.unit
@given(st.lists(st.sampled_from([0.0, 0.2, 0.34, 0.4, 0.5, 0.9]), max_size=120))
def test_regions_follow_the_rule_frame_by_frame(probabilities):
    settings = VoiceActivitySettings()
    found = regions_from_probabilities(np.asarray(probabilities), settings)
    assert [tuple(region) for region in found.tolist()] == _by_hand(probabilities, settings)
