import math

import pytest

from duplex_bench.judging.agreement import agreement

pytestmark = pytest.mark.unit


def test_only_questions_that_both_decided_count() -> None:
    a = {"1": "correct", "2": "correct", "3": "incorrect", "4": None, "5": "correct", "6": None, "only-a": "correct"}
    b = {"1": "correct", "2": "incorrect", "3": "incorrect", "4": "correct", "5": None, "6": None, "only-b": "correct"}
    found = agreement(a, b)
    assert (found.n_both, found.n_only_a, found.n_only_b, found.n_neither) == (3, 1, 1, 1)
    assert found.share == pytest.approx(2 / 3)
    assert found.kappa == pytest.approx(0.4)
    assert found.share_interval.low < 2 / 3 < found.share_interval.high


def test_nothing_in_common_is_no_agreement_of_zero() -> None:
    found = agreement({"1": "correct"}, {"2": "correct"})
    assert math.isnan(found.share)
    assert math.isnan(found.kappa)
    assert found.n_both == 0
