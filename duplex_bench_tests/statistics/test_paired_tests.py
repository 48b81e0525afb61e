import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest

from duplex_bench.statistics import bonferroni, equivalence_test, mcnemar_exact, sign_flip_test

pytestmark = pytest.mark.unit


def generator() -> np.random.Generator:
    return np.random.default_rng(5)


def test_goldens_of_the_multiparty_paper() -> None:
    assert bonferroni(mcnemar_exact(28, 2), 20) == pytest.approx(1.74e-5, abs=0.005e-5)
    assert bonferroni(mcnemar_exact(20, 5), 20) == pytest.approx(0.0815, abs=0.00005)
    assert mcnemar_exact(90, 78) == pytest.approx(0.396, abs=0.0005)
    assert mcnemar_exact(0, 0) == 1.0
    assert mcnemar_exact(7, 7) == 1.0


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_the_binomial_test_at_one_half(only_a: int, only_b: int) -> None:
    expected = binomtest(only_a, only_a + only_b, 0.5).pvalue if only_a + only_b else 1.0
    assert mcnemar_exact(only_a, only_b) == pytest.approx(expected, rel=1e-9)
    assert mcnemar_exact(only_a, only_b) == mcnemar_exact(only_b, only_a)


@pytest.mark.parametrize(("only_a", "only_b"), [(-1, 2), (1.5, 2)])
def test_mcnemar_refuses_what_is_no_count(only_a: float, only_b: float) -> None:
    with pytest.raises(ValueError, match="discordant"):
        mcnemar_exact(only_a, only_b)  # type: ignore[arg-type]


@settings(max_examples=50)
@given(st.lists(st.integers(-3, 3), min_size=1, max_size=7))
def test_sign_flips_equal_full_enumeration(differences: list[int]) -> None:
    sums = [abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
            for signs in itertools.product((1, -1), repeat=len(differences))]  # fmt: skip
    expected = np.mean([total >= abs(sum(differences)) for total in sums])
    assert sign_flip_test(differences, range(len(differences)), rng=generator()) == pytest.approx(expected)


def test_whole_clusters_are_flipped() -> None:
    assert sign_flip_test([1.0] * 100, [0] * 100, rng=generator()) == 1.0
    assert sign_flip_test([1.0] * 100, np.repeat([0, 1], 50), rng=generator()) == 0.5


def test_many_clusters_use_random_flips_with_the_observed_counted_in() -> None:
    assert sign_flip_test(np.ones(40), range(40), rng=generator(), n_permutations=999) == 1 / 1000
    noise = np.random.default_rng(0).standard_normal(40)
    assert sign_flip_test(noise - noise.mean(), range(40), rng=generator()) == pytest.approx(1.0)


def test_missing_differences() -> None:
    assert np.isnan(sign_flip_test([np.nan, np.nan], [0, 1], rng=generator()))
    assert sign_flip_test([1.0, np.nan], [0, 1], rng=generator()) == 1.0


def test_sign_flip_holds_its_size_under_the_null() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(300):
        clusters = np.repeat(np.arange(12), 5)
        differences = rng.standard_normal(60) + np.repeat(rng.standard_normal(12), 5)
        hits += sign_flip_test(differences, clusters, rng=rng) < 0.05
    assert binomtest(hits, 300, 0.05).pvalue > 0.001


def test_equivalence() -> None:
    rng = np.random.default_rng(1)
    clusters = np.repeat(np.arange(200), 3)
    near = rng.normal(0.0, 0.1, 600)
    inside = equivalence_test(near, clusters, 0.05, rng=generator())
    assert inside.equivalent is True
    assert inside.p < 0.05
    assert -0.05 < inside.interval.low < inside.difference < inside.interval.high < 0.05
    far = equivalence_test(near + 0.05, clusters, 0.05, rng=generator())
    assert far.equivalent is False
    assert far.p > 0.05


def test_equivalence_needs_two_clusters_and_a_margin() -> None:
    alone = equivalence_test([0.0, 0.0], [1, 1], 0.05, rng=generator())
    assert alone.equivalent is None
    assert np.isnan([alone.difference, *alone.interval, alone.p]).all()
    with pytest.raises(ValueError, match="margin"):
        equivalence_test([0.0, 0.0], [1, 2], 0.0, rng=generator())
    with pytest.raises(ValueError, match="alpha"):
        equivalence_test([0.0, 0.0], [1, 2], 0.1, rng=generator(), alpha=0.5)
