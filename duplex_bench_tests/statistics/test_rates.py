"""Intervals of rates where no cluster differs from another: Wilson's bound, never a width of zero."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.statistics import (
    cluster_bootstrap,
    no_spread_interval,
    paired_cluster_bootstrap,
    rate_difference_interval,
    rate_interval,
    wilson_interval,
)

pytestmark = pytest.mark.unit


def generator():
    return np.random.default_rng(3)


@given(st.integers(1, 3000), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_of_all_or_none_it_is_wilsons_interval_over_clusters(n, level):
    for share, passed in ((0.0, 0), (1.0, n)):
        found = no_spread_interval(share, n, 0.0, 1.0, level)
        assert tuple(found) == pytest.approx(tuple(wilson_interval(passed, n, level)))


@given(st.floats(-1, 1), st.integers(1, 500))
def test_it_holds_the_value_stays_within_its_bounds_and_narrows_with_clusters(value, n):
    low, high = no_spread_interval(value, n, -1.0, 1.0)
    assert -1 <= low <= value <= high <= 1
    assert low < high
    tighter = no_spread_interval(value, n + 1, -1.0, 1.0)
    assert tighter.high - tighter.low < high - low
    mirrored = no_spread_interval(-value, n, -1.0, 1.0)
    assert (mirrored.low, mirrored.high) == pytest.approx((-high, -low))


def test_what_it_leaves_out_would_have_shown_itself():
    """At the bound w, no deviating cluster is seen among n with a chance near the level's half: (1 - w)^n is small."""
    for n in (10, 50, 200):
        share = no_spread_interval(1.0, n, 0.0, 1.0).low
        assert share**n < 0.05


def test_a_value_beyond_its_bounds_is_refused_but_for_rounding():
    assert no_spread_interval(1 + 1e-12, 5, 0.0, 1.0).high == 1.0
    for value in (1.1, -0.1, math.nan):
        with pytest.raises(ValueError, match="is not within"):
            no_spread_interval(value, 5, 0.0, 1.0)


def test_with_spread_they_are_the_cluster_bootstrap():
    rng = generator()
    clusters = np.repeat(np.arange(12), 3)
    a, b = (rng.random(36) < 0.5).astype(float), (rng.random(36) < 0.4).astype(float)
    plain = cluster_bootstrap(a, clusters, "mean", rng=generator(), few_clusters=True)
    assert rate_interval(a, clusters, rng=generator()) == plain
    paired = paired_cluster_bootstrap(a, b, clusters, rng=generator(), few_clusters=True)
    assert rate_difference_interval(a, b, clusters, rng=generator()) == paired


def test_without_spread_they_are_the_bound_and_missing_values_do_not_count():
    clusters = np.repeat(np.arange(6), 2)
    half = np.tile([1.0, 0.0], 6)
    share = wilson_interval(0, 6).high
    assert tuple(rate_interval(half, clusters, rng=generator())) == pytest.approx((0.5 - share / 2, 0.5 + share / 2))
    half[:2] = np.nan
    fewer = wilson_interval(0, 5).high
    assert tuple(rate_interval(half, clusters, rng=generator())) == pytest.approx((0.5 - fewer / 2, 0.5 + fewer / 2))
    none = rate_difference_interval(half, half, clusters, rng=generator())
    assert tuple(none) == pytest.approx((-fewer, fewer))


def test_one_cluster_has_no_interval():
    found = rate_interval([1.0, 1.0], ["c", "c"], rng=generator())
    assert math.isnan(found.low)
    assert math.isnan(found.high)
