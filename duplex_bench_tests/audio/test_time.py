from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.audio.time import to_samples, to_seconds

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("seconds", "rate", "expected"),
    [
        (0.29, 100, 29),
        (0.25, 24000, 6000),
        (0.5 / 8000, 8000, 1),
        (-0.5, 1, 0),
        (1.5, 1, 2),
        (2.5, 1, 3),
        (0, 48000, 0),
    ],
)
def test_rounds_half_up_in_decimal(seconds: float, rate: int, expected: int) -> None:
    assert to_samples(seconds, rate) == expected


@given(st.integers(0, 10**10), st.sampled_from([1, 8000, 11025, 16000, 22050, 24000, 44100, 48000, 192000]))
def test_there_and_back_is_exact(samples: int, rate: int) -> None:
    assert to_samples(to_seconds(samples, rate), rate) == samples


@given(st.decimals(0, 10000, places=3), st.sampled_from([8000, 16000, 24000, 44100]))
def test_milliseconds_convert_as_written(seconds, rate: int) -> None:
    exact = Fraction(seconds) * rate + Fraction(1, 2)
    assert to_samples(float(seconds), rate) == exact.numerator // exact.denominator


@pytest.mark.parametrize(
    ("seconds", "rate"), [(float("nan"), 8000), (float("inf"), 8000), (1.0, 0), (1.0, -1), (1.0, 1.5)]
)
def test_refuses_what_is_no_position(seconds: float, rate: int) -> None:
    with pytest.raises(ValueError, match=r"seconds|rate"):
        to_samples(seconds, rate)
