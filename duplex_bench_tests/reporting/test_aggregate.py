import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.tables import COMPARISONS, MEASUREMENTS, STATISTICS
from duplex_bench.reporting.aggregate import (
    AggregateSettings,
    condition_differences,
    expected_windows,
    statistics_table,
)
from duplex_bench.reporting.inputs import POOLED, ReportInputError
from duplex_bench.statistics import wilson_interval

pytestmark = pytest.mark.unit

QUICK = AggregateSettings(n_resamples=200, n_permutations=200)


def metric_card(name="rate", statistic="rate", **changes):
    fields = dict.fromkeys(("window", "denominator", "excluded", "edge_cases", "source"), "")
    fields |= {"id": name, "track": "multiparty", "title": name, "unit": "", "direction": "higher", "version": 1}
    return MetricCard(**{**fields, "statistic": statistic, "headline": True, **changes})


def rows_of(system, values, metric="rate", condition="explicit", per_cluster=1):
    """One row per value; None is a reason."""
    return [
        {"measurement_id": f"{system}-{metric}-{condition}-{n}", "system": system, "item_id": f"{condition}-{n}",
         "rollout_key": f"k{n}", "window_id": "w", "cluster": f"c{n // per_cluster:03d}", "condition": condition,
         "metric": metric, "metric_version": 1, "value": None if value is None else float(value),
         "reason": "no response" if value is None else None, "at_s": 0.0, "details": "{}"}
        for n, value in enumerate(values)
    ]  # fmt: skip


def frame(*parts):
    return pl.DataFrame([row for part in parts for row in part], schema=dict(MEASUREMENTS))


def one(table, **where):
    found = table.filter(*(pl.col(name) == value for name, value in where.items()))
    assert found.height == 1
    return found.row(0, named=True)


def test_estimate_counts_only_windows_with_a_value():
    table = statistics_table(
        frame(rows_of("a", [1, 0, None, 1, None])), [metric_card()], track="multiparty", settings=QUICK
    ).statistics
    row = one(table, system="a")
    assert row["estimate"] == pytest.approx(2 / 3)
    assert (row["n_scored"], row["n_expected"], row["n_clusters"]) == (3, 5, 3)
    assert dict(table.schema) == dict(STATISTICS)


@given(st.lists(st.sampled_from([0.0, 1.0, None]), min_size=3, max_size=12), st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None)
def test_neither_row_order_nor_missing_rows_move_an_estimate(values, random):
    rows = rows_of("a", values) + rows_of("b", values[::-1])
    cards = [metric_card()]
    shuffled = list(rows)
    random.shuffle(shuffled)
    first = statistics_table(frame(rows), cards, track="multiparty", settings=QUICK)
    second = statistics_table(frame(shuffled), cards, track="multiparty", settings=QUICK)
    assert first.statistics.equals(second.statistics)
    assert first.comparisons.equals(second.comparisons)
    known = [value for value in values if value is not None]
    estimate = one(first.statistics, system="a")["estimate"]
    assert estimate is None if len(known) < 2 else estimate == pytest.approx(np.mean(known))


def test_expected_windows_count_rollouts_that_failed():
    measurements = frame(rows_of("a", [1, 1, 0, 1]), rows_of("b", [1, 1]))
    rollouts = pl.DataFrame(
        [(system, f"explicit-{n}", "completed" if system == "a" or n < 2 else "transport_error")
         for system in "ab" for n in range(4)] + [("c", "explicit-0", "not_applicable")],
        schema=["system", "item_id", "outcome"], orient="row",
    )  # fmt: skip
    expected = expected_windows(measurements, rollouts)
    assert expected == {("a", "explicit", "rate"): 4, ("b", "explicit", "rate"): 4}
    table = statistics_table(measurements, [metric_card()], track="multiparty", expected=expected, settings=QUICK)
    assert one(table.statistics, system="b")["n_expected"] == 4


def test_a_system_without_any_row_is_listed_with_a_reason():
    expected = {("gone", "explicit", "rate"): 7}
    table = statistics_table(
        frame(rows_of("a", [1, 0])), [metric_card()], track="multiparty", expected=expected, settings=QUICK
    ).statistics
    row = one(table, system="gone")
    assert (row["estimate"], row["n_scored"], row["n_expected"]) == (None, 0, 7)
    assert row["reason"] == "no window was measured"


def test_below_the_minimum_says_so_with_the_commonest_reason():
    row = one(
        statistics_table(
            frame(rows_of("a", [1, 0, None, None])), [metric_card(minimum_n=3)], track="multiparty", settings=QUICK
        ).statistics,
        system="a",
    )
    assert row["estimate"] is None
    assert row["reason"] == "2 scored, at least 3 needed; others: no response (2)"


def test_a_rate_that_never_varies_gets_a_wilson_interval_over_clusters():
    row = one(
        statistics_table(
            frame(rows_of("a", [1] * 12, per_cluster=2)), [metric_card()], track="multiparty", settings=QUICK
        ).statistics,
        system="a",
    )
    assert (row["low"], row["high"]) == pytest.approx(tuple(wilson_interval(6, 6)))
    assert "Wilson" in row["method"]


def test_one_cluster_has_an_estimate_without_an_interval():
    row = one(
        statistics_table(
            frame(rows_of("a", [1, 0, 1], per_cluster=5)), [metric_card()], track="multiparty", settings=QUICK
        ).statistics,
        system="a",
    )
    assert row["estimate"] == pytest.approx(2 / 3)
    assert (row["low"], row["high"]) == (None, None)
    assert "one cluster" in row["reason"]


def test_medians_carry_quartiles():
    row = one(
        statistics_table(
            frame(rows_of("a", [1, 2, 3, 4, 5])), [metric_card(statistic="median")], track="multiparty", settings=QUICK
        ).statistics,
        system="a",
    )
    assert (row["estimate"], row["q1"], row["q3"]) == (3.0, 2.0, 4.0)


def test_conditions_are_pooled_on_the_multiparty_track_only():
    rows = frame(rows_of("a", [1, 0, 1]), rows_of("a", [0, 0, 1], condition="implicit"))
    multiparty = statistics_table(rows, [metric_card()], track="multiparty", settings=QUICK).statistics
    assert one(multiparty, condition=POOLED)["estimate"] == pytest.approx(0.5)
    conversation = statistics_table(rows, [metric_card()], track="conversation", settings=QUICK).statistics
    assert set(conversation["condition"]) == {"explicit", "implicit"}


def test_pairs_use_shared_windows_and_give_the_papers_test():
    a = [1] * 28 + [0] * 2 + [1, None]
    b = [0] * 28 + [1] * 2 + [None, 1]
    table = statistics_table(
        frame(rows_of("a", a), rows_of("b", b)), [metric_card()], track="multiparty",
        settings=AggregateSettings(n_resamples=200, n_permutations=200, paper_metrics=20),
    ).comparisons  # fmt: skip
    assert dict(table.schema) == dict(COMPARISONS)
    exact = one(table, test="mcnemar_exact")
    assert exact["n_pairs"] == 30
    assert exact["p_corrected"] == pytest.approx(1.74e-5, rel=0.01)
    assert exact["difference"] == pytest.approx(26 / 30)
    headline = one(table, test="sign_flip")
    assert headline["low"] <= headline["difference"] <= headline["high"]
    assert headline["minimum_detectable"] > 0


def test_a_spread_of_nothing_promises_no_power():
    rows = frame(rows_of("a", [1.0] * 6), rows_of("b", [0.0] * 6))
    pairs = statistics_table(rows, [metric_card(headline=True)], track="multiparty").comparisons
    assert pairs["difference"].to_list()[0] == 1.0
    assert pairs["minimum_detectable"].to_list() == [None] * pairs.height


def test_separable_systems_part_and_equal_ones_share_a_group():
    rows = frame(rows_of("good", [1] * 40), rows_of("same", [1] * 40), rows_of("bad", [0] * 40))
    table = statistics_table(rows, [metric_card()], track="multiparty", settings=QUICK).statistics
    groups = {row["system"]: row["tie_group"] for row in table.to_dicts()}
    assert groups == {"good": 1, "same": 1, "bad": 2}
    reverse = statistics_table(rows, [metric_card(direction="lower")], track="multiparty", settings=QUICK).statistics
    assert one(reverse, system="bad")["tie_group"] == 1


def test_condition_differences_resample_shared_clusters():
    rows = frame(rows_of("a", [1, 1, 0, 1]), rows_of("a", [0, 1, 0, 0], condition="implicit"))
    table = condition_differences(rows, [metric_card()], track="multiparty", settings=QUICK)
    row = one(table, system="a")
    assert (row["first"], row["second"], row["difference"]) == ("explicit", "implicit", 0.5)
    assert row["low"] <= 0.5 <= row["high"]


@pytest.mark.parametrize(
    ("rows", "cards", "expected", "message"),
    [
        (rows_of("a", [1]), [], {}, "without a card"),
        (rows_of("a", [1]) * 2, [metric_card()], {}, "give one repeat"),
        (rows_of("a", [2, 1]), [metric_card()], {}, "not between 0 and 1"),
        (rows_of("a", [float("nan"), 1]), [metric_card(statistic="mean")], {}, "is no number"),
        (rows_of("a", [1, 1]), [metric_card()], {("a", "explicit", "rate"): 1}, "count again"),
    ],
)
def test_tables_that_do_not_fit_raise(rows, cards, expected, message):
    with pytest.raises(ReportInputError, match=message):
        statistics_table(frame(rows), cards, track="multiparty", expected=expected, settings=QUICK)
