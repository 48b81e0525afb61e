import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from duplex_bench.audio.gate import GateSettings, gate, intervals_s, speech_intervals, stream_intervals

pytestmark = pytest.mark.unit

RATE_HZ = 1000  # windows of 20, hops of 10 samples
LEVELS = st.sampled_from([0.0, 0.004, 0.0049, 0.0051, 0.007, 0.0099, 0.0101, 0.1, -0.1, 1.0])


def plain_gate(samples: np.ndarray, window: int, hop: int, opening: float, closing: float, shortest: int) -> list:
    """The definition of design 5, window by window."""
    found, start, is_open = [], 0, False
    n_windows = math.ceil(len(samples) / hop)
    for index in range(n_windows):
        level = math.sqrt(math.fsum(float(x) ** 2 for x in samples[index * hop : index * hop + window])
                          / len(samples[index * hop : index * hop + window]))  # fmt: skip
        if not is_open and level >= opening:
            is_open, start = True, index * hop
        elif is_open and level < closing:
            is_open = False
            found.append((start, index * hop))
    if is_open:
        found.append((start, len(samples)))
    return [(a, b) for a, b in found if b - a >= shortest]


@settings(max_examples=150)
@given(st.lists(st.tuples(LEVELS, st.integers(1, 130)), max_size=12), st.sampled_from([np.float32, np.float64]))
def test_equals_the_definition_window_by_window(parts: list, dtype: type) -> None:
    samples = np.concatenate([np.full(count, level, dtype=dtype) for level, count in parts] or [np.zeros(0, dtype)])
    expected = plain_gate(samples, 20, 10, 0.01, 0.005, 80)
    assert [tuple(row) for row in speech_intervals(samples, RATE_HZ)] == expected


@settings(max_examples=150)
@given(
    hnp.arrays(np.float32, st.integers(0, 700), elements=st.floats(-0.03125, 0.03125, width=32)),
    st.lists(st.integers(0, 90), max_size=30),
    st.sampled_from([GateSettings(), GateSettings(0.012, 0.8, 0.0, 0.025, 0.01), GateSettings(hop_s=0.02)]),
)
def test_blocks_of_any_length_equal_the_whole(samples: np.ndarray, sizes: list[int], numbers: GateSettings) -> None:
    cuts = np.minimum(np.cumsum(sizes), len(samples)) if sizes else []
    streamed = stream_intervals(np.split(samples, cuts), RATE_HZ, numbers)
    np.testing.assert_array_equal(streamed, gate(samples, RATE_HZ, numbers))


@given(hnp.arrays(np.float32, st.integers(0, 2000), elements=st.floats(-0.0625, 0.0625, width=32)))
def test_intervals_are_sorted_apart_inside_and_long_enough(samples: np.ndarray) -> None:
    found = speech_intervals(samples, RATE_HZ)
    assert found.dtype == np.int64
    assert found.shape == (len(found), 2)
    assert (np.diff(found.ravel()) > 0).all()
    assert ((found >= 0) & (found <= len(samples))).all()
    assert (found[:, 1] - found[:, 0] >= 80).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_level_equal_to_the_threshold_opens_and_equal_to_the_release_holds(dtype: type) -> None:
    samples = np.concatenate([np.full(200, 0.01, dtype), np.full(200, 0.005, dtype), np.zeros(200, dtype)])
    assert speech_intervals(samples, RATE_HZ).tolist() == [[0, 390]]  # the window from 390 is half silence


def test_a_level_between_release_and_threshold_does_not_open() -> None:
    assert len(speech_intervals(np.full(1000, 0.009), RATE_HZ)) == 0


def test_the_shortest_interval_kept_is_80_ms() -> None:
    burst = np.zeros(300)
    burst[100:170] = 0.5  # active windows 90..160: [90, 170) is 80 ms
    assert speech_intervals(burst, RATE_HZ).tolist() == [[90, 170]]
    burst[160:] = 0
    assert len(speech_intervals(burst, RATE_HZ)) == 0


def test_the_end_is_cut_at_the_audio() -> None:
    assert speech_intervals(np.full(105, 0.5), RATE_HZ).tolist() == [[0, 105]]


def test_a_quiet_word_after_an_hour_of_loud_audio_is_still_found() -> None:
    loud = np.full(3_600_000, 1.0, dtype=np.float32)
    quiet = np.concatenate([np.zeros(1000, np.float32), np.full(200, 0.01, np.float32), np.zeros(1000, np.float32)])
    found = speech_intervals(np.concatenate([loud, quiet]), RATE_HZ)
    assert found[-1].tolist() == [3_600_990 + 10, 3_601_200]


def test_seconds() -> None:
    assert intervals_s(np.full(24000, 0.1, np.float32), 24000).tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (np.array([0.0, np.nan]), "NaN"),
        (np.array([0.1] * 500 + [np.inf]), "NaN"),
        (np.zeros((10, 2)), "one channel"),
        (np.zeros(10, np.int16), "int16"),
        (np.zeros(10, np.float16), "float16"),
        ([1, 2, 3], "int64"),
    ],
)
def test_unusable_audio_is_refused(samples: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        speech_intervals(samples, RATE_HZ)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "numbers",
    [{"threshold": 0.0}, {"threshold": math.nan}, {"release_ratio": 0}, {"release_ratio": 1.5}, {"min_duration_s": -1},
     {"hop_s": 0}, {"hop_s": 0.03}, {"window_s": math.inf}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(numbers: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="gate"):
        GateSettings(**numbers)


def test_a_hop_under_one_sample_is_refused() -> None:
    with pytest.raises(ValueError, match="hop"):
        gate(np.zeros(10), 10, GateSettings())
