"""Variance over repeated rollouts: none where a system does the same again, all of it where only the runs differ."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from duplex_bench.stages import conversation, evaluation, summary
from duplex_bench.stages.repeats import repeat_variance
from duplex_bench.stages.report import track_tables
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.stages.workspace import Workspace
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

TRACK = "conversation"


@pytest.fixture
def run(quick_engines, small_workspace, tmp_path):
    """Runs a planted system ``repeats`` times on every point; ``change`` may edit activity and words."""
    plain = small_workspace(tmp_path)
    card = SystemCard(
        name="early", title="early", family="policy", adapter=quick_engines, settings={"at_s": [0.3, 2.0, 5.0]},
        licence="test",
    )  # fmt: skip

    def go(repeats, change=lambda frame, _rollouts: frame):
        opened = Workspace(plain.data, replace(plain.profile, rollout=replace(plain.profile.rollout, repeats=repeats)))
        sessions = conversation.lively_sessions(opened).frame
        filled = conversation.gap_fill(opened, sessions).frame
        labels = conversation.engine_labels(opened, sessions, filled).frame
        points = conversation.points(opened, conversation.candidates(opened, sessions, filled, labels).frame).frame
        items = conversation.items(opened, sessions, filled, labels, points).frame
        rolled = run_rollouts(opened, TRACK, items, card).frame
        heard = change(evaluation.activity(opened, TRACK, rolled, "early").frame, rolled)
        words = change(evaluation.words(opened, TRACK, rolled, "early").frame, rolled)
        judged = evaluation.judgements(opened, TRACK, items, rolled, heard, words, "early").frame
        scored = evaluation.measurements(opened, TRACK, items, rolled, heard, words, judged, "early").frame
        estimates, comparisons = summary.aggregate(opened, TRACK, {"early": scored}, None)
        by_system = {
            "rollouts": rolled, "activity": heard, "words": words, "judgements": judged, "measurements": scored,
        }  # fmt: skip
        stored = {name: {"early": frame} for name, frame in by_system.items()}
        stored |= {"items": items, "statistics": estimates.frame, "comparisons": comparisons.frame}
        return opened, track_tables(TRACK, stored)

    return go


def silenced(repeat):
    """Nothing was said in one repeat."""

    def change(frame, rollouts):
        keys = rollouts.filter(pl.col("repeat") == repeat)["rollout_key"]
        gone = pl.col("rollout_key").is_in(keys.to_list())
        empty = {
            name: pl.when(gone).then(pl.lit([], dtype=frame.schema[name])).otherwise(pl.col(name)).alias(name)
            for name in {"gate_s", "vad_s", "words"} & set(frame.columns)
        }
        return frame.with_columns(**empty)

    return change


def test_one_run_of_each_stimulus_has_no_variance_to_tell(run):
    assert repeat_variance(*run(1)) is None


def test_a_system_that_does_the_same_again_has_no_variance_between_runs(run):
    opened, track = run(3)
    table = repeat_variance(opened, track)
    scored = table.frame.filter(pl.col("n_repeated") > 0)
    assert scored.height > 5
    assert (scored["sd_between_runs"] == 0).all()
    assert (scored["repeats_differ"] == 0).all()
    assert (scored["n_values"] == 3 * scored["n_windows"]).all()
    assert table.frame.filter((pl.col("n_repeated") == 0) & pl.col("reason").is_null()).is_empty()
    assert "conversation-repeats" in summary.tables(opened, track).frame["id"].to_list()


def test_a_run_that_differs_is_variance_between_runs(run):
    opened, track = run(2, silenced(1))
    silent = repeat_variance(opened, track).frame.row(by_predicate=(pl.col("metric") == "pause_silent"), named=True)
    first = track.measurements.filter(pl.col("metric") == "pause_silent")["value"].to_numpy()
    # Each window has the first score and, said nothing, 1: mean square within windows by hand.
    within = np.mean((1 - first) ** 2 / 2)
    assert silent["sd_between_runs"] == pytest.approx(np.sqrt(within))
    assert silent["repeats_differ"] == pytest.approx(np.mean(first != 1))
    assert silent["n_values"] == 2 * len(first)
    latency = repeat_variance(opened, track).frame.filter(pl.col("metric") == "takeover_latency").row(0, named=True)
    assert latency["n_repeated"] == 0
    assert "no window has a score of two repeats" in latency["reason"]


def test_the_headline_rests_on_the_first_repeat(run):
    _, once = run(1)
    _, twice = run(2, silenced(1))
    assert once.measurements.drop("measurement_id", "rollout_key").equals(
        twice.measurements.drop("measurement_id", "rollout_key")
    )
