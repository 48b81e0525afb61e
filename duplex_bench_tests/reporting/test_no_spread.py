"""What never varies is not certain, what arithmetic rounded is no difference, and a target has two sides."""

import numpy as np
import polars as pl
import pytest

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.reporting.aggregate import AggregateSettings, condition_differences, statistics_table
from duplex_bench.statistics import sign_flip_test, wilson_interval

pytestmark = pytest.mark.unit

QUICK = AggregateSettings(n_resamples=400, n_permutations=400)


def card(statistic, **changes):
    fields = dict.fromkeys(("window", "denominator", "excluded", "edge_cases", "source"), "")
    fields |= {"id": "m", "track": "multiparty", "title": "m", "unit": "", "direction": "higher", "version": 1}
    return MetricCard(**{**fields, "statistic": statistic, "headline": True, **changes})


def scores(system, values, per_cluster=1, condition="explicit"):
    return [
        {"measurement_id": f"{system}-{condition}-{n}", "system": system, "item_id": f"{condition}-{n}",
         "rollout_key": f"k{n}", "window_id": "w", "cluster": f"c{n // per_cluster:03d}", "condition": condition,
         "metric": "m", "metric_version": 1, "value": float(value), "reason": None, "at_s": 0.0, "details": "{}"}
        for n, value in enumerate(values)
    ]  # fmt: skip


def frame(*parts):
    return pl.DataFrame([row for part in parts for row in part], schema=dict(MEASUREMENTS))


def headline(found):
    return found.comparisons.filter(test="sign_flip").row(0, named=True)


def test_a_rate_that_is_the_same_in_every_cluster_has_the_width_that_so_few_clusters_leave():
    """One of two windows passes in each of six clusters: resampling would give [0.5, 0.5]."""
    rows = frame(scores("a", [1, 0] * 6, per_cluster=2))
    row = statistics_table(rows, [card("rate")], track="multiparty", settings=QUICK).statistics.row(0, named=True)
    share = wilson_interval(0, 6).high
    assert (row["low"], row["high"]) == pytest.approx((0.5 - share / 2, 0.5 + share / 2))
    assert "Wilson bound over 6 clusters" in row["method"]


@pytest.mark.parametrize("statistic", ["median", "mean"])
def test_a_latency_that_is_the_same_everywhere_has_a_reason_instead_of_an_interval(statistic):
    rows = frame(scores("a", [0.3] * 12, per_cluster=2))
    row = statistics_table(rows, [card(statistic)], track="multiparty", settings=QUICK).statistics.row(0, named=True)
    assert (row["estimate"], row["low"], row["high"]) == (pytest.approx(0.3), None, None)
    assert row["reason"] == "no interval: all 6 clusters have the same value"


def test_a_difference_that_is_the_same_in_every_cluster_is_not_called_certain():
    share = wilson_interval(0, 6).high
    for other, bounds in ((0.0, (1 - 2 * share, 1.0)), (1.0, (-share, share))):
        rows = frame(scores("a", [1] * 6), scores("b", [other] * 6))
        found = statistics_table(rows, [card("rate")], track="multiparty", settings=QUICK)
        assert (headline(found)["low"], headline(found)["high"]) == pytest.approx(bounds)
    rows = frame(scores("a", [0.5] * 6), scores("b", [0.3] * 6))
    row = headline(statistics_table(rows, [card("median")], track="multiparty", settings=QUICK))
    assert (row["difference"], row["low"], row["high"]) == (pytest.approx(0.2), None, None)


def test_conditions_that_never_differ_are_not_called_equal_for_certain():
    rows = frame(scores("a", [1, 0, 1, 1, 0, 1]), scores("a", [1, 0, 1, 1, 0, 1], condition="implicit"))
    row = condition_differences(rows, [card("rate")], track="multiparty", settings=QUICK).row(0, named=True)
    share = wilson_interval(0, 6).high
    assert (row["difference"], row["low"], row["high"]) == pytest.approx((0, -share, share))


def test_rounding_of_arithmetic_is_no_difference():
    """Equal durations at other seconds of the timeline differ by 1e-16 s, here the same way in every cluster."""
    rows = frame(scores("a", [0.3] * 20), scores("b", [0.1 + 0.2] * 20))
    row = headline(statistics_table(rows, [card("median", direction="lower")], track="multiparty", settings=QUICK))
    assert 0.1 + 0.2 != 0.3
    assert row["p"] == 1.0
    assert (row["minimum_detectable"], row["low"], row["high"]) == (None, None, None)


def test_differences_that_cancel_within_every_cluster_are_no_evidence():
    """0.1 + 0.2 - 0.3 is 5.6e-17 as floats add it up: a sum of the same sign in each of 20 clusters."""
    differences = np.tile([0.1, 0.2, -0.3], 20)
    clusters = np.repeat(np.arange(20), 3)
    assert sign_flip_test(differences, clusters, rng=np.random.default_rng(1)) == 1.0


def test_systems_on_either_side_of_a_target_are_equally_good():
    """One speaks a fifth too long, one a fifth too short: told apart, but neither is nearer to 1."""
    jitter = np.linspace(-0.02, 0.02, 40)
    rows = frame(scores("long", 1.2 + jitter), scores("short", 0.8 - jitter), scores("far", 3.0 + jitter))
    target = card("median", direction="target", target=1.0)
    found = statistics_table(rows, [target], track="multiparty", settings=QUICK)
    apart = {(row["system_a"], row["system_b"]): row["p_corrected"] for row in found.comparisons.to_dicts()}
    assert apart["long", "short"] < 0.05
    groups = {row["system"]: row["tie_group"] for row in found.statistics.to_dicts()}
    assert groups["long"] == groups["short"] == 1
    assert groups["far"] == 2
    assert "nearer" not in found.comparisons.columns
