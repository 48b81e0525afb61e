"""Speech planted at sample offsets, through the real gate: the measures return the truth within one gate window."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from duplex_bench.audio.gate import intervals_s
from duplex_bench.conversation.measures import classify_pause
from duplex_bench.conversation.turn_end import measure_turn_end

pytestmark = pytest.mark.unit

RATE_HZ = 24_000
WINDOW = round(0.02 * RATE_HZ)
PAUSE = (2 * RATE_HZ, 3 * RATE_HZ)


def heard(start, stop):
    samples = np.zeros(6 * RATE_HZ, dtype=np.float32)
    samples[start:stop] = np.random.default_rng(0).normal(0, 0.1, stop - start)
    return intervals_s(samples, RATE_HZ)


@given(st.integers(0, 5 * RATE_HZ), st.integers(round(0.15 * RATE_HZ), RATE_HZ))
@example(PAUSE[0] - RATE_HZ, RATE_HZ)
@example(PAUSE[0] - 1200, 2400)
@example(PAUSE[1], 4800)
@example(PAUSE[1] + WINDOW, 4800)
@settings(max_examples=80, deadline=None)
def test_planted_speech_at_a_pause(start, length):
    stop = start + length
    words = [(start / RATE_HZ, stop / RATE_HZ)]
    pause_s = (PAUSE[0] / RATE_HZ, PAUSE[1] / RATE_HZ)
    result = classify_pause(heard(start, stop), words, pause_s)
    if stop <= PAUSE[0]:
        allowed = {"silent"} if stop <= PAUSE[0] - WINDOW else {"silent", "takeover"}
    elif start < PAUSE[1]:
        allowed = {"takeover"} if stop >= PAUSE[0] + WINDOW else {"silent", "takeover"}
    else:
        allowed = {"after"} if start >= PAUSE[1] + WINDOW else {"after", "takeover"}
    assert result.outcome in allowed
    if result.outcome == "takeover":
        assert result.takeover_latency_s == max(0.0, start / RATE_HZ - pause_s[0])


@given(st.integers(0, 5 * RATE_HZ), st.integers(round(0.15 * RATE_HZ), RATE_HZ))
@settings(max_examples=60, deadline=None)
def test_planted_speech_at_a_turn_end(start, length):
    stop = start + length
    words = [(start / RATE_HZ, stop / RATE_HZ)]
    result = measure_turn_end(heard(start, stop), words, 2.0, cap_at_s=32.0)
    if stop >= PAUSE[0] + WINDOW:
        assert result.latency_s == pytest.approx(start / RATE_HZ - 2.0)
        assert result.duration_s == pytest.approx(length / RATE_HZ, abs=0.03)
        assert result.resumptions == 0
    elif stop <= PAUSE[0] - WINDOW:
        assert not result.responded
