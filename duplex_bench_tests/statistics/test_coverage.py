"""95 % intervals on simulated clustered data with a known truth; docs/statistics.md prints these figures."""

import pytest

# Enough data sets that the coverage is known to about 0.4 points (its standard error at 95 %).
SETS = 3000


def is_as_said(coverage):
    return 0.93 <= coverage <= 0.97


@pytest.mark.slow
@pytest.mark.parametrize(("n_trials", "share"), [(184, 0.1), (184, 0.5), (300, 0.1), (300, 0.9), (2000, 0.05)])
def test_wilson(clustered, n_trials, share):
    assert is_as_said(clustered.wilson_coverage(n_trials, share, 20_000))


@pytest.mark.slow
@pytest.mark.parametrize("k", [20, 40, 80, 176, 600])
def test_rate(clustered, k):
    n = SETS if k < 600 else 1500
    assert is_as_said(clustered.rate_coverage(k, 0.3, n))
    assert is_as_said(clustered.rate_coverage(k, 0.5, n))


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.9, 0.05])
def test_rare_outcomes_at_the_papers_sizes(clustered, share):
    for k in (176, 600):
        assert is_as_said(clustered.rate_coverage(k, share, 2000))


@pytest.mark.slow
@pytest.mark.parametrize("k", [20, 40, 80, 176])
def test_median_ratio_and_difference(clustered, k):
    assert is_as_said(clustered.median_coverage(k, 1000))
    assert is_as_said(clustered.ratio_coverage(k, SETS))
    assert is_as_said(clustered.difference_coverage(k, 0.5, SETS))


@pytest.mark.slow
def test_at_two_thousand_scenarios(clustered):
    assert is_as_said(clustered.rate_coverage(2000, 0.3, 800))
    assert is_as_said(clustered.difference_coverage(2000, 0.5, 800))


@pytest.mark.slow
def test_few_clusters_are_why_percentiles_are_widened(clustered):
    plain, widened = (clustered.rate_coverage(12, 0.3, SETS, widened=widened) for widened in (False, True))
    assert plain < 0.93
    assert is_as_said(widened)


@pytest.mark.slow
def test_where_the_report_warns_the_interval_fails(clustered):
    """Below ten clusters with the rarer outcome coverage can be far too low; that is where the method says so."""
    warned, other, share = clustered.rate_coverage_where_cautioned(80, 0.9, SETS, 10)
    assert 0 < share < 0.5
    assert warned < 0.9 < other


@pytest.mark.unit
def test_the_simulation_has_the_truth_it_states(clustered):
    import numpy as np

    hits, sizes = clustered.rates(np.random.default_rng(1), 400, 0.3, 200)
    assert hits.sum() / sizes.sum() == pytest.approx(0.3, abs=0.01)


@pytest.mark.unit
def test_the_usual_interval_covers(clustered):
    assert is_as_said(clustered.rate_coverage(60, 0.4, 600))
