import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.systems.adapters.cascade.endpointers import SilenceEndpointer
from duplex_bench.systems.serving.ears import Ears, never_ends

pytestmark = pytest.mark.unit

RATE = 24_000


def loud(ms):
    return np.full(RATE * ms // 1000, 0.1, dtype=np.float32)


def quiet(ms):
    return np.zeros(RATE * ms // 1000, dtype=np.float32)


def edges(audio, silence_ms=500, cut=480):
    ears = Ears(RATE, SilenceEndpointer(silence_ms / 1000))
    found = []
    for at in range(0, len(audio), cut):
        found += ears.hear(audio[at : at + cut])
    return [(edge.kind, edge.sound_ms, edge.now_ms) for edge in found]


@settings(max_examples=30, deadline=None)
@given(st.integers(3, 30), st.integers(3, 60), st.sampled_from([100, 300, 500]), st.integers(1, 5000))
def test_a_turn_is_found_to_the_frame_however_the_audio_is_cut(lead, length, silence_ms, cut):
    start, stop = lead * 20, (lead + length) * 20
    audio = np.concatenate([quiet(start), loud(length * 20), quiet(600)])
    assert edges(audio, silence_ms, cut) == [
        ("started", start, start + 40),
        ("stopped", stop, stop + silence_ms),
    ]


def test_without_further_audio_a_turn_never_ends():
    assert edges(np.concatenate([quiet(100), loud(1000)])) == [("started", 100, 140)]


@pytest.mark.parametrize(("silence_ms", "turns"), [(300, 2), (500, 1)])
def test_a_pause_of_400_ms_parts_turns_at_300_and_not_at_500(silence_ms, turns):
    audio = np.concatenate([loud(600), quiet(400), loud(600), quiet(600)])
    assert sum(kind == "stopped" for kind, *_ in edges(audio, silence_ms)) == turns


def test_a_click_is_no_speech():
    assert edges(np.concatenate([quiet(200), loud(20), quiet(800)])) == []


def test_a_manual_turn_is_kept_whole():
    ears = Ears(RATE, never_ends())
    ears.hear(np.concatenate([loud(100), quiet(5000), loud(100)]))
    assert ears.now_ms == 5200
    assert len(ears.between(100, 5100)) == RATE * 5
