"""Loudness by BS.1770: reference levels, gating, and what pyloudnorm 0.2.0 measured on the same samples."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.systems.adapters.mimi_models.loudness import at_loudness, integrated_loudness

pytestmark = pytest.mark.unit

RATES = (16_000, 24_000, 48_000)


def tone(hz, seconds, rate, level=1.0):
    return level * np.sin(2 * np.pi * hz * np.arange(round(seconds * rate)) / rate)


@pytest.mark.parametrize("rate", RATES)
def test_a_full_scale_tone_near_1_khz_has_the_level_of_the_recommendation(rate):
    # BS.1770-4: -3.01 LKFS for one channel at 997 Hz; the filters of pyloudnorm differ from it by less than 0.1 dB.
    assert integrated_loudness(tone(997, 3.0, rate), rate) == pytest.approx(-3.01, abs=0.1)


@pytest.mark.parametrize(
    ("rate", "measured"),
    [(24_000, -22.595212648), (48_000, -22.365131539), (16_000, -22.804190814)],
)
def test_noise_with_pauses_is_measured_as_by_pyloudnorm(rate, measured):
    noise = np.random.default_rng(7).standard_normal(rate * 6) * 0.06
    noise *= np.sin(2 * np.pi * np.arange(rate * 6) / (2 * rate)) > 0
    assert integrated_loudness(noise, rate) == pytest.approx(measured, abs=1e-6)


def test_silence_and_what_is_far_softer_do_not_count():
    loud = tone(997, 4.0, 24_000, 0.1)
    alone = integrated_loudness(loud, 24_000)
    with_silence = integrated_loudness(np.concatenate([loud, np.zeros(24_000 * 8)]), 24_000)
    with_murmur = integrated_loudness(np.concatenate([loud, tone(997, 8.0, 24_000, 0.001)]), 24_000)
    # Blocks that straddle the end are all that differs.
    assert with_silence == pytest.approx(alone, abs=0.3)
    assert with_murmur == pytest.approx(alone, abs=0.3)
    assert integrated_loudness(np.zeros(24_000), 24_000) == -math.inf


@given(level=st.floats(0.002, 0.9), lufs=st.floats(-40.0, -10.0))
def test_what_is_brought_to_a_level_has_it(level, lufs):
    audio = tone(440, 1.0, 24_000, level)
    assert integrated_loudness(at_loudness(audio, 24_000, lufs), 24_000) == pytest.approx(lufs, abs=1e-3)


def test_what_cannot_be_measured_raises():
    with pytest.raises(ValueError, match=r"at least 0\.4 s"):
        integrated_loudness(np.zeros(9_599), 24_000)
    with pytest.raises(ValueError, match="one channel"):
        integrated_loudness(np.zeros((24_000, 2)), 24_000)
    with pytest.raises(ValueError, match="silent"):
        at_loudness(np.zeros(24_000), 24_000, -24.0)
