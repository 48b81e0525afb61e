import dataclasses

import polars as pl
import pytest

from duplex_bench.reporting.findings import findings

pytestmark = pytest.mark.unit

SILENT = "pause_silent"


def with_estimates(inputs, metric, **estimates):
    """The finding on one metric of the conversation track, were the systems' estimates these."""
    tables = inputs.tracks[1]
    names = {"a": "cascade-300ms", "b": "cascade-500ms", "c": "cascade-semantic"}
    told = pl.col("system").replace_strict(
        {names[key]: value for key, value in estimates.items()}, default=None, return_dtype=pl.Float64
    )
    mine = pl.col("metric") == metric
    statistics = tables.statistics.with_columns(
        pl.when(mine & told.is_not_null()).then(told).otherwise(pl.col("estimate")).alias("estimate")
    )
    (found,) = [
        one for one in findings(inputs, dataclasses.replace(tables, statistics=statistics)) if one.metric.id == metric
    ]
    return found


def test_of_two_that_are_equally_good_the_next_is_the_third(report_inputs):
    found = with_estimates(report_inputs, SILENT, a=0.8, b=0.8, c=0.3)
    assert found.best_is == "2 systems alike"
    assert found.runner_up == "cascade-semantic"
    assert 'from the next, Cascade <b>"semantic"</b>' in found.sentence


def test_nobody_is_best_at_what_nobody_does(report_inputs):
    found = with_estimates(report_inputs, SILENT, a=0.0, b=0.0, c=0.0)
    assert found.best_is == "no system"
    assert found.lead.startswith("Silent at the pause: no system 0.00")
    taken = with_estimates(report_inputs, "pause_takeover", a=1.0, b=1.0, c=1.0)
    assert taken.best_is == "no system"
    assert with_estimates(report_inputs, "pause_takeover", a=0.0, b=1.0, c=1.0).best_is == "Cascade, 300 ms endpointer"


def test_sentences_count_conversations_not_clusters(report_inputs):
    sentences = [one.sentence for one in findings(report_inputs, report_inputs.tracks[1])]
    assert sentences
    assert not any("cluster" in sentence for sentence in sentences)
    assert all("conversations" in sentence for sentence in sentences)
