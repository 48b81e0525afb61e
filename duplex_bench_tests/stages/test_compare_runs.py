"""Two runs compared: on shared windows alone, with what differs told, and no number where none can be given."""

import dataclasses
import shutil

import polars as pl
import pytest
from planted_run import keep

from duplex_bench.reporting.inputs import ReportInputError
from duplex_bench.reporting.run_tables import load_run
from duplex_bench.stages.compare_runs import Side, compare_runs, is_path, quote, side_of
from duplex_bench.stages.rescore import rescore
from duplex_bench.stages.run_record import note_run
from duplex_bench.stages.stored_run import required

pytestmark = pytest.mark.unit


@pytest.fixture
def other(run, tmp_path):
    """The same run in another folder, to be changed."""
    shutil.copytree(run.data, tmp_path / "other")
    return dataclasses.replace(run, data=tmp_path / "other")


def sides(run, other):
    return Side(run.data, None), Side(other.data, None)


def changed(workspace, system, track, rule):
    frame = required(workspace, track, "measurements", system)
    keep(workspace, track, "measurements", rule(frame), system)


def row_of(found, metric, condition="all", system="early"):
    wanted = (pl.col("metric") == metric) & (pl.col("condition") == condition) & (pl.col("system_a") == system)
    return found.pairs.filter(wanted).row(0, named=True)


def test_a_run_against_itself_differs_by_nothing_and_is_comparable(run, other):
    found = compare_runs(*sides(run, other))
    known = found.pairs.drop_nulls("difference")
    assert known.height > 0
    assert (known["difference"] == 0).all()
    assert found.pairs["better"].null_count() == found.pairs.height
    assert found.differs == ()
    assert found.notice.startswith("Comparable")
    assert found.only_a == found.only_b == ()
    assert not found.examples.height
    assert set(found.pairs["system_a"]) == {"silent", "early", "twin"}


def test_the_difference_is_a_minus_b_on_the_windows_that_both_have(run, other):
    """In B every silence window of one scenario fails; another scenario's windows have no value there."""
    frame = required(run, "multiparty", "measurements", "silent")
    first, second, _ = sorted(frame["cluster"].unique())
    mine = pl.col("metric") == "silence_preservation"

    def fail(table):
        value = pl.when(mine & (pl.col("cluster") == first)).then(0.0)
        value = value.when(mine & (pl.col("cluster") == second)).then(None).otherwise(pl.col("value"))
        why = pl.when(mine & (pl.col("cluster") == second)).then(pl.lit("lost")).otherwise(pl.col("reason"))
        return table.with_columns(value.alias("value"), why.alias("reason"))

    changed(other, "silent", "multiparty", fail)
    silence = frame.filter(pl.col("metric") == "silence_preservation")
    failed, kept = silence.filter(cluster=first).height, silence.filter(pl.col("cluster") != second).height
    found = compare_runs(*sides(run, other), metrics=["silence_preservation"])
    row = row_of(found, "silence_preservation", system="silent")
    assert row["n_pairs"] == kept
    assert row["n_clusters"] == 2
    assert row["value_a"] == 1.0
    assert row["difference"] == pytest.approx(failed / kept)
    assert row["low"] <= row["difference"] <= row["high"]
    back = row_of(compare_runs(*reversed(sides(run, other)), metrics=["silence_preservation"]), "silence_preservation",
                  system="silent")  # fmt: skip
    assert (back["difference"], back["low"], back["high"]) == (-row["difference"], -row["high"], -row["low"])
    assert found.examples.filter(system_a="silent")["value_b"].to_list()[0] == 0.0


def test_windows_of_another_stimulus_are_left_out_and_counted(run, other):
    items = required(other, "multiparty", "items")
    moved = items["item_id"][0]
    digest = pl.when(pl.col("item_id") == moved).then(pl.lit("0" * 64)).otherwise(pl.col("stimulus_digest"))
    keep(other, "multiparty", "items", items.with_columns(digest.alias("stimulus_digest")))
    found = compare_runs(*sides(run, other), systems=["early"])
    windows = required(run, "multiparty", "measurements", "early").filter(item_id=moved)["window_id"].n_unique()
    assert f"multiparty early: {windows} windows are of items whose stimulus is another: left out" in found.differs
    before = row_of(compare_runs(Side(run.data, None), Side(run.data, None)), "silence_preservation")
    assert row_of(found, "silence_preservation")["n_pairs"] < before["n_pairs"]


def test_windows_with_other_bounds_are_left_out_and_counted(run, other):
    items = required(other, "multiparty", "items")
    first = items["item_id"][0]
    text = items.filter(item_id=first)["reference"].item()
    start = text.index('"end_s":', text.index('"windows"'))
    stop = text.index(",", start)
    changed_text = f'{text[:start]}"end_s":999.0{text[stop:]}'
    swapped = pl.when(pl.col("item_id") == first).then(pl.lit(changed_text)).otherwise(pl.col("reference"))
    keep(other, "multiparty", "items", items.with_columns(swapped.alias("reference")))
    found = compare_runs(*sides(run, other), systems=["early"])
    assert "multiparty early: 1 windows begin or end elsewhere: left out" in found.differs


def test_another_version_of_a_metric_gives_a_reason_and_no_number(run, other):
    changed(other, "early", "multiparty", lambda table: table.with_columns(
        pl.when(pl.col("metric") == "silence_preservation").then(9).otherwise(pl.col("metric_version"))
        .cast(pl.Int64).alias("metric_version")))  # fmt: skip
    found = compare_runs(*sides(run, other), systems=["early"])
    rows = found.pairs.filter(metric="silence_preservation")
    assert rows["difference"].null_count() == rows.height == 1
    assert "version 1 against 9 of the metric" in rows["reason"].item()
    assert row_of(found, "fresh_onset_response")["difference"] == 0


def test_one_cluster_gives_a_reason_and_no_interval(run, other):
    """The small conversation track is one conversation: nothing tells what the next would be like."""
    found = compare_runs(*sides(run, other), systems=["early"])
    rows = found.pairs.filter(track="conversation")
    assert rows.height > 0
    assert rows["low"].null_count() == rows["p_sign_flip"].null_count() == rows.height
    assert all("in 1 clusters" in reason or "0 of" in reason for reason in rows["reason"])


def test_settings_of_scoring_that_differ_are_named(run):
    rescored = rescore(run, {"gate": {"threshold": 0.02}}, "wide")
    found = compare_runs(
        Side(run.data, None), Side(run.data, None), profiles=(run.profile.name, rescored.name), systems=["early"]
    )
    assert "settings of scoring differ: gate.threshold 0.01 -> 0.02" in found.differs
    assert found.notice.startswith("Compare with care: settings of scoring differ")


def test_settings_of_stimuli_that_differ_are_named_apart(run, other):
    note_run(dataclasses.replace(other, profile=dataclasses.replace(other.profile, seed=77)))
    assert "settings of stimuli or rollouts differ: seed 1 -> 77" in compare_runs(*sides(run, other)).differs


def test_a_value_that_is_no_number_is_named_and_nothing_is_compared(run, other):
    changed(other, "early", "multiparty", lambda table: table.with_columns(
        pl.when(pl.col("metric") == "silence_preservation").then(float("nan")).otherwise(pl.col("value"))
        .alias("value")))  # fmt: skip
    with pytest.raises(ReportInputError, match="value nan of silence_preservation is no number"):
        compare_runs(*sides(run, other), systems=["early"])


def test_one_system_of_either_run_may_be_named(run, other):
    found = compare_runs(
        side_of(f"{run.data}::early"), side_of(f"{other.data}::silent"), metrics=["silence_preservation"]
    )
    row = row_of(found, "silence_preservation")
    assert (row["system_a"], row["system_b"]) == ("early", "silent")
    assert row["value_b"] == 1.0
    assert row["difference"] < 0
    line = quote(row, found)
    assert "\n" not in line
    assert f"{row['n_pairs']} windows in 3 clusters" in line
    assert found.run_a.title in line


@pytest.mark.parametrize(
    ("a", "b", "more", "said"),
    [
        ("{run}::nobody", "{run}", {}, "no system 'nobody' in either run"),
        ("{run}", "{run}", {"metrics": ["nothing"]}, "no metric nothing"),
        ("{run}", "{run}", {"systems": ["nobody"]}, "no system 'nobody'"),
        ("{run}/nowhere", "{run}", {}, "does not exist"),
        ("{run}::twin", "{run}::gone", {}, "no system 'gone'"),
    ],
)
def test_what_is_not_there_is_named(run, a, b, more, said):
    first, second = (side_of(told.format(run=run.data)) for told in (a, b))
    with pytest.raises(ValueError, match=said):
        compare_runs(first, second, **more)


def test_nothing_in_common_says_what_there_is(run, other):
    for track in ("multiparty", "conversation"):
        for system in ("silent", "early", "twin"):
            key = other.table_key((track, "measurements"), system)
            if other.store.exists(key):
                frame = required(other, track, "measurements", system).with_columns(
                    pl.lit(f"new-{system}").alias("system")
                )
                other.store.delete(key)
                keep(other, track, "measurements", frame, f"new-{system}")
    with pytest.raises(ValueError, match=r"nothing to compare: .* has early, silent, twin"):
        compare_runs(*sides(run, other))


def test_systems_of_one_side_alone_are_told(run, other):
    other.store.delete(other.table_key(("multiparty", "measurements"), "twin"))
    found = compare_runs(*sides(run, other))
    assert (found.only_a, found.only_b) == (("multiparty twin",), ())


def test_a_path_is_told_from_a_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").mkdir()
    assert [is_path(told) for told in ("here", "./x", "a/b.tar.gz", "x::moshi", "moshi")] == [True] * 4 + [False]


def test_load_run_reads_a_data_folder_by_table(run):
    found = load_run(run.data)
    assert (found.kind, found.name, found.tracks) == ("run", "small", ("multiparty", "conversation"))
    assert found.systems("multiparty") == ("early", "silent", "twin")
    assert found["multiparty-items"].equals(required(run, "multiparty", "items"))
    assert found.settings["seed"] == 1
    with pytest.raises(KeyError, match="has no table 'nothing'"):
        found["nothing"]
    with pytest.raises(ReportInputError, match="no scores of profile demo: there are those of small"):
        load_run(run.data, "demo")


def test_load_run_asks_which_of_several_profiles(run):
    rescore(run, {}, "again")
    with pytest.raises(ReportInputError, match="scores of small, small-rescored-again: name one"):
        load_run(run.data)
    assert load_run(run.data, "small").name == "small"
