"""Intervals of proportions, corrections, agreement, association, thresholds, variance, power, ranking, quartiles."""

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import cohen_kappa_score, roc_auc_score

from duplex_bench.statistics import (
    Interval,
    auc,
    bonferroni,
    cohen_kappa,
    holm,
    minimum_detectable_difference,
    otsu_threshold,
    quartiles,
    spearman,
    tie_groups,
    variance_components,
    wilson_interval,
)

pytestmark = pytest.mark.unit

SMALL = st.lists(st.integers(0, 6), min_size=1, max_size=40)


# Newcombe 1998 (Statistics in Medicine 17:857), table I, score method without continuity correction.
@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_equals_the_published_table(k: int, n: int, low: float, high: float) -> None:
    assert wilson_interval(k, n) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(0, 300), st.integers(1, 300), st.floats(0.5, 0.999))
def test_wilson_equals_scipy(k: int, n: int, level: float) -> None:
    assume(k <= n)
    expected = stats.binomtest(k, n).proportion_ci(level, method="wilson")
    found = wilson_interval(k, n, level)
    assert found == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert 0 <= found.low <= k / n <= found.high <= 1


def test_wilson_edges() -> None:
    assert isinstance(wilson_interval(1, 2), Interval)
    assert np.isnan(wilson_interval(0, 0)).all()
    assert wilson_interval(0, 5).low == 0.0
    assert wilson_interval(5, 5).high == 1.0
    for k, n, level in ((3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)):
        with pytest.raises(ValueError, match=r"successes|level"):
            wilson_interval(k, n, level)


def test_holm_and_bonferroni() -> None:
    # By hand: 0.005 x 4, 0.01 x 3, 0.03 x 2, then 0.04 x 1 raised to the one before it.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.01, np.nan, 0.04]), [0.02, np.nan, 0.04])
    assert holm([]).shape == (0,)
    assert bonferroni(0.3, 20) == 1.0
    assert math.isnan(bonferroni(math.nan, 20))
    for bad in (-0.1, 1.1):
        with pytest.raises(ValueError, match="outside"):
            bonferroni(bad, 2)
        with pytest.raises(ValueError, match="outside"):
            holm([0.5, bad])
    with pytest.raises(ValueError, match="comparisons"):
        bonferroni(0.5, 0)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holm_lies_between_raw_and_bonferroni_and_keeps_order(ps: list[float]) -> None:
    corrected = holm(ps)
    assert (corrected >= np.array(ps)).all()
    assert (corrected <= np.minimum(1, np.array(ps) * len(ps)) + 1e-12).all()
    assert (np.diff(corrected[np.argsort(ps, kind="stable")]) >= 0).all()


def test_kappa_of_the_textbook_table() -> None:
    # 50 grant proposals: both yes 20, both no 15, split 5 and 10: kappa 0.4.
    a = ["yes"] * 25 + ["no"] * 25
    b = ["yes"] * 20 + ["no"] * 5 + ["yes"] * 10 + ["no"] * 15
    assert cohen_kappa(a, b) == pytest.approx(0.4)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=60))
def test_kappa_equals_scikit_learn(pairs: list[tuple[int, int]]) -> None:
    a, b = zip(*pairs, strict=True)
    if len(set(a) | set(b)) == 1:
        assert math.isnan(cohen_kappa(a, b))
    else:
        assert cohen_kappa(a, b) == pytest.approx(cohen_kappa_score(a, b))


def test_kappa_edges() -> None:
    assert math.isnan(cohen_kappa([], []))
    with pytest.raises(ValueError, match="same items"):
        cohen_kappa([1], [1, 2])


@given(SMALL, st.data())
def test_auc_equals_scikit_learn(scores: list[int], data: st.DataObject) -> None:
    positive = data.draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    if len(set(positive)) == 1:
        assert math.isnan(auc(scores, positive))
    else:
        assert auc(scores, positive) == pytest.approx(roc_auc_score(positive, scores))


def test_auc_and_spearman_refuse_what_does_not_pair() -> None:
    with pytest.raises(ValueError, match="NaN"):
        auc([np.nan, 1.0], [True, False])
    with pytest.raises(ValueError, match="class"):
        auc([1.0], [True, False])
    with pytest.raises(ValueError, match="pairs"):
        spearman([1.0], [1.0, 2.0])


def test_spearman() -> None:
    assert spearman([1, 2, 3, 4, np.nan], [1, 3, 2, 4, 9]) == pytest.approx((0.8, 0.2, 4))
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3])[:2]).all()
    assert np.isnan(spearman([1, 2], [1, 2])[:2]).all()


@given(st.lists(st.integers(0, 30), min_size=2, max_size=40))
def test_otsu_is_the_best_of_all_cuts(values: list[int]) -> None:
    numbers = np.array(values, dtype=float)
    if len(set(values)) == 1:
        assert math.isnan(otsu_threshold(numbers))
        return

    def between(threshold: float) -> float:
        low, high = numbers[numbers < threshold], numbers[numbers >= threshold]
        return len(low) * len(high) * (low.mean() - high.mean()) ** 2

    found = otsu_threshold(numbers)
    distinct = np.unique(numbers)
    best = max(between(cut) for cut in (distinct[1:] + distinct[:-1]) / 2)
    assert between(found) == pytest.approx(best)


def test_otsu_refuses_nan() -> None:
    with pytest.raises(ValueError, match="finite"):
        otsu_threshold([1.0, np.nan])


def test_variance_components_recover_what_was_planted() -> None:
    rng = np.random.default_rng(0)
    items = np.repeat(np.arange(2000), rng.integers(1, 6, 2000))
    values = rng.normal(0, 3, 2000)[items] + rng.normal(0, 1, len(items))
    found = variance_components(values, items)
    assert found.item == pytest.approx(9, rel=0.1)
    assert found.run == pytest.approx(1, rel=0.1)
    assert (found.n_items, found.n_values) == (2000, len(items))


def test_variance_components_of_a_balanced_textbook_case() -> None:
    # Two items, two runs: means 1 and 5, MSW = 2, MSB = 16, so the item component is (16 - 2) / 2.
    assert variance_components([0, 2, 4, 6], ["a", "a", "b", "b"]) == pytest.approx((7.0, 2.0, 2, 4))


def test_variance_components_say_what_is_missing() -> None:
    assert np.isnan(variance_components([1, 2], ["a", "b"])[:2]).all()
    one = variance_components([1, 3, np.nan], ["a", "a", "a"])
    assert math.isnan(one.item)
    assert (one.run, one.n_items, one.n_values) == (2.0, 1, 2)
    assert variance_components([0, 10, 0, 10], ["a", "a", "b", "b"]).item == 0.0


def test_minimum_detectable_difference_gives_its_power() -> None:
    n, sd = 30, 2.0
    least = minimum_detectable_difference(n, sd)
    noncentrality = least * math.sqrt(n) / sd
    critical = stats.t.ppf(0.975, n - 1)
    assert stats.nct.sf(critical, n - 1, noncentrality) == pytest.approx(0.8, abs=0.01)
    assert minimum_detectable_difference(10_000, 1.0) == pytest.approx((1.95996 + 0.84162) / 100, rel=1e-3)
    assert math.isnan(minimum_detectable_difference(1, 1.0))
    for arguments in ((5, 1.0, 1.0), (5, -1.0), (5, 1.0, 0.8, 2.0)):
        with pytest.raises(ValueError, match=r"power|sd|level"):
            minimum_detectable_difference(*arguments)


def test_tie_groups_follow_the_leader() -> None:
    estimates = [0.5, 0.9, np.nan, 0.8, 0.4]
    p = np.full((5, 5), 0.001)
    p[1, 3] = p[3, 1] = 0.2
    p[0, 4] = p[4, 0] = np.nan
    assert tie_groups(estimates, p) == [2, 1, None, 1, 2]
    assert tie_groups(estimates, p, higher_is_better=False) == [1, 2, None, 2, 1]
    assert tie_groups(estimates, np.eye(5, dtype=bool)) == [3, 1, None, 2, 4]
    assert tie_groups([], np.empty((0, 0))) == []
    with pytest.raises(ValueError, match="estimates"):
        tie_groups([1.0], np.ones((2, 2)))


def test_quartiles() -> None:
    assert quartiles([4, 1, np.nan, 3, 2]) == (1.75, 2.5, 3.25)
    assert np.isnan(quartiles([np.nan])).all()
