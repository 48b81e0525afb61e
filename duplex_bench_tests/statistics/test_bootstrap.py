import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.statistics import (
    cluster_bootstrap,
    multiplicities,
    paired_cluster_bootstrap,
    percentile_interval,
    replicates,
)

pytestmark = pytest.mark.unit


def generator(seed: int = 11) -> np.random.Generator:
    return np.random.default_rng(seed)


@st.composite
def clustered(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    n = draw(st.integers(1, 60))
    values = draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
    clusters = draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))
    return np.array(values, dtype=float), np.array(clusters)


@settings(max_examples=60)
@given(clustered())
def test_matrix_forms_equal_the_plain_loop(data: tuple[np.ndarray, np.ndarray]) -> None:
    values, clusters = data
    draws = multiplicities(clusters, generator(), 40)
    for name, function in (("mean", np.mean), ("median", np.median)):
        expected = [
            function(np.concatenate([np.repeat(values[clusters == label], int(times))
                                     for label, times in zip(draws.labels, drawn, strict=True)]))
            for drawn in draws.counts
        ]  # fmt: skip
        np.testing.assert_allclose(replicates(values, clusters, name, draws), expected, atol=1e-12)
        np.testing.assert_allclose(replicates(values, clusters, lambda x, f=function: float(f(x)), draws), expected)


def test_each_resample_draws_as_many_clusters_as_there_are() -> None:
    draws = multiplicities(["b", "a", "b", "c"], generator(), 500)
    assert draws.labels.tolist() == ["a", "b", "c"]
    assert (draws.counts.sum(axis=1) == 3).all()
    np.testing.assert_allclose(draws.counts.mean(axis=0), 1, atol=0.15)


def test_ratio_is_sum_over_sum() -> None:
    values = np.array([[1, 2], [3, 4], [0, 10]], dtype=float)
    draws = multiplicities([0, 1, 2], generator(), 200)
    expected = (draws.counts @ values[:, 0]) / (draws.counts @ values[:, 1])
    np.testing.assert_allclose(replicates(values, [0, 1, 2], "ratio", draws), expected)


def test_a_resample_with_an_empty_denominator_is_undefined_not_zero() -> None:
    draws = multiplicities([0, 1], generator(), 200)
    estimates = replicates(np.array([[0.0, 0.0], [1.0, 2.0]]), [0, 1], "ratio", draws)
    assert np.isnan(estimates).any()
    assert set(estimates[~np.isnan(estimates)]) == {0.5}


def test_cluster_interval_is_wider_than_one_that_ignores_clusters() -> None:
    rng = generator(2)
    clusters = np.repeat(np.arange(40), 25)
    values = np.repeat(rng.standard_normal(40), 25) + 0.1 * rng.standard_normal(1000)
    by_cluster = cluster_bootstrap(values, clusters, "mean", rng=generator())
    by_row = cluster_bootstrap(values, np.arange(1000), "mean", rng=generator())
    expected = 2 * 1.96 * values.reshape(40, 25).mean(axis=1).std(ddof=1) / np.sqrt(40)
    assert by_cluster.high - by_cluster.low == pytest.approx(expected, rel=0.12)
    assert by_row.high - by_row.low < 0.4 * (by_cluster.high - by_cluster.low)


def test_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = generator(4)
    covered = 0
    for _ in range(200):
        means = rng.standard_normal(60)
        values = np.repeat(means, 4) + rng.standard_normal(240)
        interval = cluster_bootstrap(values, np.repeat(np.arange(60), 4), "mean", rng=rng, n_resamples=400)
        covered += interval.low <= 0 <= interval.high
    assert 0.89 <= covered / 200 <= 0.985


@pytest.mark.parametrize("statistic", ["mean", "median", np.mean])
def test_fewer_than_two_clusters_give_no_interval(statistic) -> None:
    for values, clusters in (([1.0, 2.0], [7, 7]), ([], []), ([1.0, np.nan], [1, 2])):
        assert np.isnan(cluster_bootstrap(values, clusters, statistic, rng=generator())).all()
        assert np.isnan(paired_cluster_bootstrap(values, values, clusters, statistic, rng=generator())).all()


def test_missing_values_are_left_out_not_counted_as_zero() -> None:
    values = np.array([1.0, 1.0, np.nan, np.nan, 1.0])
    interval = cluster_bootstrap(values, [0, 1, 1, 2, 3], "mean", rng=generator())
    assert interval == (1.0, 1.0)


def test_the_same_generator_gives_the_same_interval_in_any_row_order() -> None:
    rng = generator(8)
    values, clusters = rng.standard_normal(90), rng.integers(0, 12, 90)
    order = rng.permutation(90)
    first = cluster_bootstrap(values, clusters, "mean", rng=generator())
    again = cluster_bootstrap(values[order], clusters[order], "mean", rng=generator())
    assert first == pytest.approx(again)
    assert first.low < values.mean() < first.high


def test_pairing_removes_what_items_share() -> None:
    rng = generator(9)
    shared = rng.normal(0, 10, 100)
    a, b = shared + rng.normal(0.5, 0.1, 100), shared + rng.normal(0, 0.1, 100)
    paired = paired_cluster_bootstrap(a, b, np.arange(100), rng=generator())
    assert 0.4 < paired.low < paired.high < 0.6
    a[:50] = np.nan
    half = paired_cluster_bootstrap(a, b, np.arange(100), rng=generator())
    assert 0.4 < half.low < half.high < 0.6


def test_paired_ratio_and_median() -> None:
    rng = generator(3)
    a = np.stack([rng.integers(0, 3, 60), np.full(60, 4)], axis=1).astype(float)
    assert paired_cluster_bootstrap(a, a, np.arange(60), "ratio", rng=generator()) == (0.0, 0.0)
    steps = rng.standard_normal(60)
    assert paired_cluster_bootstrap(steps + 2, steps, np.arange(60), "median", rng=generator()) == pytest.approx((2, 2))


def test_replicates_of_shared_draws_pair_systems() -> None:
    rng = generator(6)
    clusters = np.arange(50)
    draws = multiplicities(clusters, generator(), 300)
    values = rng.standard_normal(50)
    shifted = replicates(values + 1, clusters, "mean", draws) - replicates(values, clusters, "mean", draws)
    assert percentile_interval(shifted) == pytest.approx((1.0, 1.0))


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="one cluster for each row"):
        cluster_bootstrap([1.0, 2.0], [1], "mean", rng=generator())
    with pytest.raises(ValueError, match="infinite"):
        cluster_bootstrap([1.0, np.inf], [1, 2], "mean", rng=generator())
    with pytest.raises(ValueError, match="statistic"):
        cluster_bootstrap([1.0, 2.0], [1, 2], "mode", rng=generator())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="do not fit"):
        cluster_bootstrap([1.0, 2.0], [1, 2], "ratio", rng=generator())
    with pytest.raises(ValueError, match="do not fit"):
        cluster_bootstrap([[1.0, 2.0], [1.0, 2.0]], [1, 2], "mean", rng=generator())
    with pytest.raises(ValueError, match="level"):
        cluster_bootstrap([1.0, 2.0], [1, 2], "mean", rng=generator(), level=95)
    with pytest.raises(ValueError, match="n_resamples"):
        cluster_bootstrap([1.0, 2.0], [1, 2], "mean", rng=generator(), n_resamples=0)
    with pytest.raises(ValueError, match="not among"):
        replicates([1.0], ["z"], "mean", multiplicities(["a", "b"], generator(), 5))
    with pytest.raises(ValueError, match="same items"):
        paired_cluster_bootstrap([1.0], [1.0, 2.0], [1, 2], rng=generator())
