"""Echoes are found at any delay and level, other sounds are none; the strongest frequency is read to a hertz or so."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.audio.echo import dominant_hz, echo_correlation

pytestmark = pytest.mark.unit

RATE = 8000


def noise(seed, seconds=1.0):
    return np.random.default_rng(seed).normal(0, 0.1, round(seconds * RATE)).astype(np.float32)


@settings(max_examples=25, deadline=None)
@given(delay=st.integers(0, 4000), level=st.sampled_from([-0.5, 0.01, 1.0]), start=st.integers(4000, 9000))
def test_a_delayed_copy_at_any_level_is_an_echo(delay, level, start):
    source = noise(1, 2.0)
    sound = (level * source[start - delay : start - delay + 2000]).astype(np.float32)
    assert echo_correlation(sound, source, start, 4000) == pytest.approx(1.0, abs=1e-4)


def test_another_sound_or_a_copy_outside_the_delays_is_none():
    source = noise(1, 2.0)
    assert echo_correlation(noise(2, 0.5), source, 8000, 4000) < 0.15
    assert echo_correlation(source[1000:5000], source, 9000, 4000) < 0.15
    # Nothing comes back before it was said.
    assert echo_correlation(source[9000:13000], source, 8000, 4000) < 0.15


def test_half_of_an_echo_is_half_an_echo():
    source = noise(1, 2.0)
    mixed = source[4000:12000] + noise(3)
    assert echo_correlation(mixed, source, 4800, 4000) == pytest.approx(2**-0.5, abs=0.03)


def test_silence_echoes_nothing_and_bad_input_is_refused():
    silence = np.zeros(2000, dtype=np.float32)
    assert echo_correlation(noise(1)[:2000], silence, 0, 100) == 0.0
    assert echo_correlation(silence, noise(1), 0, 100) == 0.0
    # Beyond the end of the source nobody speaks.
    assert echo_correlation(noise(1)[:2000], noise(1), 50_000, 100) == 0.0
    for start, lag, sound in ((-1, 0, silence), (0, -1, silence), (0, 0, silence[:0])):
        with pytest.raises(ValueError, match="echo"):
            echo_correlation(sound, silence, start, lag)


@pytest.mark.parametrize("hz", [110.0, 135.0, 1000.0])
def test_the_strongest_frequency_is_read_and_what_lies_below_a_voice_is_not(hz):
    time_s = np.arange(round(0.3 * RATE)) / RATE
    sound = 0.1 * np.sin(2 * np.pi * hz * time_s) + 0.02 * np.sin(2 * np.pi * 3 * hz * time_s) + 0.5
    assert dominant_hz(sound.astype(np.float32), RATE) == pytest.approx(hz, abs=2.0)
    with pytest.raises(ValueError, match="too short"):
        dominant_hz(sound[:100].astype(np.float32), RATE)
