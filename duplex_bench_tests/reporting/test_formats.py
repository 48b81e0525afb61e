import pytest

from duplex_bench.reporting.formats import interval, number, p_value, tie_letter

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (0.834, "share of rollouts", "0.83"),
        (0.0342, "share of rollouts", "0.034"),
        (-0.31, "s", "−0.31"),
        (23.456, "words", "23.5"),
        (0.0001, "share", "0.0001"),
        (0.0, "share", "0.00"),
        (None, "s", "—"),
        (float("nan"), "s", "—"),
    ],
)
def test_numbers_have_the_digits_of_their_unit_and_missing_is_a_dash(value, unit, shown):
    assert number(value, unit) == shown


def test_intervals_and_p_values():
    assert interval(-0.1, 0.25, "s", signed=True) == "[−0.10, +0.25]"
    assert interval(None, 0.2) == "—"
    assert p_value(0.00001) == "< 0.0001"
    assert p_value(0.0315) == "0.032"


def test_tie_letters_go_on_after_z():
    assert [tie_letter(n) for n in (None, 1, 26, 27, 52, 53)] == ["", "a", "z", "aa", "az", "ba"]
