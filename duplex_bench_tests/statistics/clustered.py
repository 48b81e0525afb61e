"""Simulated clustered data with a known truth, and how often an interval holds it."""

import numpy as np

from duplex_bench.statistics import (
    mean_replicates,
    multiplicities,
    percentile_interval,
    percentile_intervals,
    wilson_interval,
)
from duplex_bench.statistics.weighted_median import weighted_medians

RESAMPLES = 2000


def rates(rng, k, share, n, *, mean_size=1.7, icc=0.2):
    """Successes and sizes (k, n) of ``n`` data sets: cluster shares are beta, with the given correlation inside."""
    sizes = 1 + rng.poisson(mean_size - 1, (k, n))
    spread = (1 - icc) / icc
    own = rng.beta(share * spread, (1 - share) * spread, (k, n))
    return rng.binomial(sizes, own).astype(float), sizes.astype(float)


def draws_of(k):
    return multiplicities(np.arange(k), np.random.default_rng(11), RESAMPLES)


def held(intervals, truth):
    low, high = np.array(intervals).T
    return (low <= truth) & (truth <= high)


def rate_coverage(k, share, n, *, widened=True):
    """Share of data sets whose interval holds the true rate; data sets without variation get none here."""
    hits, sizes = rates(np.random.default_rng(7), k, share, n)
    varies = (hits.sum(axis=0) > 0) & (hits.sum(axis=0) < sizes.sum(axis=0))
    again = mean_replicates(hits[:, varies], sizes[:, varies], draws_of(k))
    return held(percentile_intervals(again, 0.95, [k] * int(varies.sum()) if widened else None), share).mean()


def rate_coverage_where_cautioned(k, share, n, few):
    """Coverage where fewer than ``few`` clusters hold the rarer outcome, coverage elsewhere, and share of the first."""
    hits, sizes = rates(np.random.default_rng(7), k, share, n)
    rare = hits if share <= 0.5 else sizes - hits
    clusters = (rare > 0).sum(axis=0)
    varies = (rare.sum(axis=0) > 0) & (rare.sum(axis=0) < sizes.sum(axis=0))
    again = mean_replicates(hits[:, varies], sizes[:, varies], draws_of(k))
    inside = held(percentile_intervals(again, 0.95, [k] * int(varies.sum())), share)
    cautioned = clusters[varies] < few
    return (*(inside[part].mean() if part.any() else np.nan for part in (cautioned, ~cautioned)), cautioned.mean())


def difference_coverage(k, share, n):
    """The same for the difference of two systems on the same windows, correlated through the cluster; truth 0.1."""
    rng = np.random.default_rng(8)
    sizes = 1 + rng.poisson(0.7, (k, n))
    own = rng.beta(share * 4, (1 - share) * 4, (k, n))
    one, other = rng.binomial(sizes, own), rng.binomial(sizes, own * (1 - 0.1 / share))
    draws = draws_of(k)
    again = mean_replicates(one, sizes, draws) - mean_replicates(other, sizes, draws)
    return held(percentile_intervals(again, 0.95, [k] * n), 0.1).mean()


def ratio_coverage(k, n):
    """Sum over sum of durations: lognormal replies to lognormal replies, with a cluster's own talkativeness."""
    rng = np.random.default_rng(9)
    ours, theirs = np.zeros((k, n)), np.zeros((k, n))
    sizes = 1 + rng.poisson(0.7, (k, n))
    talkative = np.exp(0.3 * rng.standard_normal((k, n)))
    for place in range(int(sizes.max())):
        there = place < sizes
        ours += there * talkative * rng.lognormal(0.7, 0.5, (k, n))
        theirs += there * rng.lognormal(1.0, 0.5, (k, n))
    truth = np.exp(0.3**2 / 2) * np.exp(0.7 - 1.0)
    return held(percentile_intervals(mean_replicates(ours, theirs, draws_of(k)), 0.95, [k] * n), truth).mean()


def median_coverage(k, n, *, widened=True):
    """Median latency: gamma within a cluster, scaled by a lognormal of the cluster."""
    rng = np.random.default_rng(10)
    many = 2_000_000
    truth = np.median(rng.gamma(4, 0.2, many) * np.exp(0.3 * rng.standard_normal(many)))
    draws = draws_of(k)
    inside = []
    for _ in range(n):
        owner = np.repeat(np.arange(k), 1 + rng.poisson(0.7, k))
        values = rng.gamma(4, 0.2, len(owner)) * np.exp(0.3 * rng.standard_normal(k))[owner]
        found = percentile_interval(weighted_medians(values, owner, draws.counts), 0.95, k if widened else None)
        inside.append(found.low <= truth <= found.high)
    return np.mean(inside)


def wilson_coverage(n_trials, share, n):
    """Independent trials."""
    hits = np.random.default_rng(12).binomial(n_trials, share, n)
    by_count = {k: wilson_interval(int(k), n_trials) for k in np.unique(hits)}
    return np.mean([by_count[k].low <= share <= by_count[k].high for k in hits])
