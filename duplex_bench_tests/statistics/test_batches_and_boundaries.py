import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.statistics import (
    cluster_bootstrap,
    mean_replicates,
    multiplicities,
    percentile_interval,
    percentile_intervals,
    replicates,
    sign_flip_test,
    sign_flip_tests,
)
from duplex_bench.statistics.boundary_error import boundary_interval

pytestmark = pytest.mark.unit


def generator(seed=5):
    return np.random.default_rng(seed)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(-3, 3), min_size=6, max_size=6), min_size=1, max_size=4))
def test_many_tests_at_once_are_the_single_ones_where_all_patterns_are_taken(columns):
    sums = np.array(columns, dtype=float).T
    together = sign_flip_tests(sums, rng=generator())
    singly = [sign_flip_test(column, range(6), rng=generator()) for column in sums.T]
    assert together == pytest.approx(singly)


def test_random_flips_agree_with_all_patterns():
    sums = generator(1).normal(0.4, 1.0, (14, 3))
    exact = sign_flip_tests(sums, rng=generator())
    # Clusters that hardly differ push the test over the limit without moving its p-value.
    padded = np.vstack([sums, np.full((3, 3), 1e-13)])
    assert sign_flip_tests(padded, rng=generator(), n_permutations=40_000) == pytest.approx(exact, abs=0.012)


def test_clusters_that_do_not_differ_change_nothing():
    sums = generator(1).normal(0.3, 1.0, (10, 2))
    more = np.vstack([sums, np.zeros((500, 2))])
    assert sign_flip_tests(more, rng=generator()) == pytest.approx(sign_flip_tests(sums, rng=generator()))


def test_missing_clusters_and_missing_columns():
    sums = np.full((20, 2), np.nan)
    sums[:3, 0] = 1.0
    found = sign_flip_tests(sums, rng=generator())
    assert found[0] == pytest.approx(0.25)
    assert np.isnan(found[1])
    with pytest.raises(ValueError, match="one row for each cluster"):
        sign_flip_tests([1.0, 2.0], rng=generator())


def test_means_of_many_sets_are_those_of_each():
    values, clusters = generator(2).normal(size=(60, 3)), np.repeat(np.arange(12), 5)
    draws = multiplicities(clusters, generator(), 300)
    sums = np.column_stack([np.bincount(clusters, column) for column in values.T])
    together = mean_replicates(sums, np.full(sums.shape, 5.0), draws)
    for place in range(3):
        assert together[:, place] == pytest.approx(replicates(values[:, place], clusters, "mean", draws))
    for one, column in zip(percentile_intervals(together, 0.9, [12, 12, 12]), together.T, strict=True):
        assert one == pytest.approx(percentile_interval(column, 0.9, 12))
    with pytest.raises(ValueError, match="do not fit"):
        mean_replicates(sums[:5], sums[:5], draws)


def test_few_clusters_widen_and_many_do_not():
    replicated = generator(3).normal(size=20_000)
    plain = percentile_interval(replicated)
    few, many = percentile_interval(replicated, n_clusters=6), percentile_interval(replicated, n_clusters=5000)
    # t with 5 degrees of freedom is 2.571; times sqrt(6 / 5) it is 2.816.
    assert few.high == pytest.approx(2.816, abs=0.12)
    assert few.low < plain.low < few.high
    assert many == pytest.approx(plain, abs=0.01)


def test_without_error_the_boundary_interval_is_the_cluster_bootstrap():
    outcomes, clusters = (generator(4).random(80) < 0.4).astype(float), np.repeat(np.arange(20), 4)
    plain = cluster_bootstrap(outcomes, clusters, "mean", rng=generator(), few_clusters=True)
    assert boundary_interval(np.tile(outcomes, (7, 1)), clusters, rng=generator()) == pytest.approx(plain)


def test_boundary_error_widens_the_interval_and_missing_draws_count_for_nothing():
    rng = generator(6)
    clusters = np.repeat(np.arange(40), 5)
    shared = rng.random((200, 1)) < 0.5
    values = np.where(shared, 1.0, (rng.random(200) < 0.3).astype(float)[None, :])
    wide, narrow = (
        boundary_interval(values, clusters, rng=generator()),
        boundary_interval(values[~shared[:, 0]][:1], clusters, rng=generator()),
    )
    assert wide.high - wide.low > narrow.high - narrow.low
    holes = np.vstack([values[~shared[:, 0]][:1], np.full((1, 200), np.nan)])
    assert boundary_interval(holes, clusters, rng=generator()) == pytest.approx(narrow, abs=0.03)
    assert np.isnan(boundary_interval([[1.0, 0.0]], [1, 1], rng=generator())).all()
    with pytest.raises(ValueError, match="one row a draw"):
        boundary_interval([1.0], [1], rng=generator())
