"""Variance over repeated rollouts: none where a system does the same again, all of it where only the runs differ."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from duplex_bench.judging.model_judge import JudgeSettings
from duplex_bench.stages import conversation, evaluation, summary
from duplex_bench.stages.later_repeats import with_later_repeats
from duplex_bench.stages.later_scores import keep_later_scores, kept_later_scores
from duplex_bench.stages.repeats import repeat_variance
from duplex_bench.stages.report import track_tables
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.stages.text_costs import text_costs
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import write_frame
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


class Judged:
    """Recall probes asked of a planted system three times, judged by a text model on loopback."""

    def __init__(self, probes, api, verdict_of, **judge):
        self.api = api
        profile = probes.workspace.profile
        settings = api.settings(input_usd_per_million=2.0, output_usd_per_million=8.0)
        chosen = JudgeSettings("model", settings, sentinels=False, **judge)
        self.workspace = replace(
            probes.workspace, profile=replace(profile, rollout=replace(profile.rollout, repeats=3), judge=chosen)
        )
        self.items = probes.all_items().filter(pl.col("protocol") == "recall")
        given = (self.workspace, TRACK)
        rolled = run_rollouts(*given, self.items, verdict_of.card).frame
        heard = evaluation.activity(*given, rolled, "early").frame
        said = verdict_of.spoken(evaluation.words(*given, rolled, "early").frame, rolled)
        tables = (self.items, rolled, heard, said)
        first = evaluation.judgements(*given, *tables, "early")
        self.judged = with_later_repeats(*given, *tables, "early", first)
        scored = evaluation.measurements(*given, *tables, self.judged.frame, "early").frame
        estimates, comparisons = summary.aggregate(self.workspace, TRACK, {"early": scored}, None)
        by_system = {
            "rollouts": rolled, "activity": heard, "words": said, "judgements": self.judged.frame,
            "measurements": scored,
        }  # fmt: skip
        stored = {name: {"early": frame} for name, frame in by_system.items()}
        stored |= {"items": self.items, "statistics": estimates.frame, "comparisons": comparisons.frame}
        self.track = track_tables(TRACK, stored)

    def variance(self):
        frame = repeat_variance(self.workspace, self.track).frame.filter(pl.col("metric") == "recall_correct")
        return {row["condition"]: row for row in frame.iter_rows(named=True)}


class SaysItsRepeat:
    """A system of whose answers only the word for the repeat differs; the judge accepts some repeats."""

    numbers = ("first", "second", "third")

    def __init__(self, adapter, accepted):
        self.accepted = {self.numbers[repeat] for repeat in accepted}
        self.card = SystemCard(name="early", title="early", family="policy", adapter=adapter, licence="test",
                               settings={"at_s": [6.0]})  # fmt: skip

    def spoken(self, words, rollouts):
        repeats = dict(rollouts.select("rollout_key", "repeat").iter_rows())
        rows = [
            {**row, "words": [{**word, "text": self.numbers[repeats[row["rollout_key"]]]} for word in row["words"]]}
            for row in words.iter_rows(named=True)
        ]
        return pl.DataFrame(rows, schema=words.schema)

    def __call__(self, prompt, _body):
        right = any(number in prompt for number in self.accepted)
        return {"reason": "so it is", "verdict": "correct" if right else "incorrect"}


@pytest.fixture
def judged(probes, quick_engines, text_api):
    def go(accepted, **judge):
        system = SaysItsRepeat(quick_engines, accepted)
        return Judged(probes, text_api("openai", system), system, **judge)

    return go


def test_a_judged_metric_has_its_variance_between_runs(judged):
    found = judged({0, 2})
    assert set(found.track.measurements.filter(pl.col("metric") == "recall_correct")["value"]) == {1.0}
    for row in found.variance().values():
        assert row["n_values"] == 3 * row["n_windows"] == 3 * row["n_repeated"]
        assert row["mean"] == pytest.approx(2 / 3)
        assert row["repeats_differ"] == 1.0
        # Each window has 1, 0, 1: mean square within by hand.
        assert row["sd_between_runs"] == pytest.approx(np.sqrt((1 / 9 + 4 / 9 + 1 / 9) / 2))
    assert found.judged.counts["later_repeats_verdicts"] == 2 * found.items.height
    assert set(found.judged.frame["rollout_key"]) <= set(
        found.track.rollouts.filter(pl.col("repeat") == 0)["rollout_key"]
    )


def test_later_repeats_are_not_judged_where_the_profile_says_so_and_the_headline_is_the_same(judged):
    asked = judged({0})
    left = judged({0}, later_repeats=False)
    assert len(left.api.seen) < len(asked.api.seen)
    assert left.judged.frame["verdict"].to_list() == asked.judged.frame["verdict"].to_list()
    assert all(row["n_repeated"] == 0 and row["reason"] for row in left.variance().values())
    assert not left.judged.counts.keys() & {"later_repeats_verdicts"}


def test_the_plan_counts_the_questions_of_every_repeat(judged):
    found = judged({0})
    write_frame(found.workspace.store, found.workspace.table_key((TRACK, "items"), None), found.items)
    most = {}
    for later in (True, False):
        profile = found.workspace.profile
        changed = replace(profile, judge=replace(profile.judge, later_repeats=later))
        (cost,) = text_costs(replace(found.workspace, profile=changed), ("early",))
        most[later] = cost.plan.requests
    assert most == {True: 3 * found.items.height, False: found.items.height}
    # No question is put twice, and none beyond the plan.
    assert len(found.api.seen) <= most[True]


def test_scores_kept_with_the_first_repeat_give_the_same_table_and_are_not_made_again(run, monkeypatch):
    opened, track = run(2, silenced(1))
    expected = repeat_variance(opened, track).frame
    given = (track.items, track.rollouts, track.activity, track.words)
    keep_later_scores(opened, TRACK, *given, "early")
    with monkeypatch.context() as patch:
        patch.setattr(evaluation, "scored", None)
        assert repeat_variance(opened, track).frame.equals(expected)
    # A run without repeats in its place leaves none of them behind.
    once = track.rollouts.filter(pl.col("repeat") == 0)
    keep_later_scores(opened, TRACK, track.items, once, track.activity, track.words, "early")
    assert kept_later_scores(opened, TRACK, "early") is None
