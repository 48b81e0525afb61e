import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.audio.mixing import normalise_rms, place, rms_dbfs, trim_silence, two_channel
from duplex_bench.audio.resample import resample

pytestmark = pytest.mark.unit

TONE = np.sin(2 * np.pi * 440 * np.arange(24000) / 24000).astype(np.float32)


def test_level_of_a_full_scale_sine_is_minus_3_db() -> None:
    assert rms_dbfs(TONE) == pytest.approx(-3.0103, abs=1e-3)
    assert rms_dbfs(np.zeros(5)) == -np.inf
    with pytest.raises(ValueError, match="no samples"):
        rms_dbfs(np.zeros(0))


@given(st.floats(-60, -10), st.floats(0.001, 1))
def test_normalising_reaches_the_level_or_the_peak_limit(target: float, gain: float) -> None:
    result = normalise_rms(TONE * np.float32(gain), target, peak_limit=0.3)
    peak = float(np.abs(result).max())
    assert peak <= 0.3 + 1e-6
    assert rms_dbfs(result) == pytest.approx(target, abs=0.01) or peak == pytest.approx(0.3, abs=1e-5)


def test_silence_has_no_level_to_reach_and_nothing_to_keep() -> None:
    with pytest.raises(ValueError, match="silence"):
        normalise_rms(np.zeros(10), -20.0)
    with pytest.raises(ValueError, match="silence"):
        trim_silence(np.zeros(10, np.float32), 1000)


def test_trim_keeps_what_is_loud_and_the_pad() -> None:
    samples = np.zeros(100, np.float32)
    samples[40:50] = [0.5] + [0.0] * 8 + [0.006]
    assert len(trim_silence(samples, 1000)) == 10
    assert len(trim_silence(samples, 1000, threshold_db=30.0)) == 1
    assert len(trim_silence(samples, 1000, pad_s=0.02)) == 50
    assert len(trim_silence(samples, 1000, pad_s=1.0)) == 100


def test_place_sums_and_reports_the_peak() -> None:
    mixed, peak = place([(0, np.full(3, 0.7)), (2, np.full(3, 0.7))], 6)
    np.testing.assert_allclose(mixed, [0.7, 0.7, 1.4, 0.7, 0.7, 0.0])
    assert mixed.dtype == np.float32
    assert peak == pytest.approx(1.4)
    with pytest.raises(ValueError, match="clip 1"):
        place([(0, np.zeros(3)), (4, np.zeros(3))], 6)


def test_two_channels_are_filled_to_the_longer() -> None:
    both = two_channel(np.ones(2, np.float32), np.full(3, 0.5, np.float32))
    assert both.tolist() == [[1.0, 0.5], [1.0, 0.5], [0.0, 0.5]]


@pytest.mark.parametrize("to_hz", [8000, 16000, 48000])
def test_resampling_keeps_duration_level_and_pitch(to_hz: int) -> None:
    result = resample(TONE, 24000, to_hz)
    assert result.dtype == np.float32
    assert len(result) == to_hz
    assert rms_dbfs(result) == pytest.approx(rms_dbfs(TONE), abs=0.05)
    assert int(np.abs(np.fft.rfft(result)).argmax()) == 440


def test_resampling_refuses_integers_and_keeps_the_same_rate() -> None:
    with pytest.raises(ValueError, match="int16"):
        resample(np.zeros(5, np.int16), 8000, 16000)
    with pytest.raises(ValueError, match="rates"):
        resample(TONE, 24000, 0)
    np.testing.assert_array_equal(resample(TONE, 24000, 24000), TONE)
