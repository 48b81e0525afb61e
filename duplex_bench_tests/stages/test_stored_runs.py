"""Trace, rescore and compare over a small run with planted speech, whose truth is worked out here by hand."""

import json
from dataclasses import replace

import polars as pl
import pytest
from planted_run import AT_S, SPOKEN_S, keep
from rich.console import Console

from duplex_bench.multiparty.transcript_reference import RULE_SYSTEM
from duplex_bench.records.tables import MEASUREMENTS
from duplex_bench.stages import rollout_tasks
from duplex_bench.stages.compare import compare
from duplex_bench.stages.profile import ProfileError
from duplex_bench.stages.rescore import rescore
from duplex_bench.stages.rescore_moves import changed_rankings, only_moved
from duplex_bench.stages.rescore_scope import RescoreRefusedError, changed_profile, overlay_of
from duplex_bench.stages.stored_run import required
from duplex_bench.stages.trace import TraceError, trace
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.digests import digest_bytes
from duplex_bench.storage.frames import read_frame, write_frame

pytestmark = pytest.mark.unit


def tables_of(workspace):
    """Digest of every table of the run by key, apart from rescorings."""
    folder = f"tables/{workspace.profile.name}"
    return {key: digest_bytes(workspace.store.get(key)) for key in workspace.store.keys(folder)}


@pytest.fixture
def no_system_runs(monkeypatch):
    def refuse(*_):
        raise AssertionError("a system was run")

    monkeypatch.setattr(rollout_tasks, "run_rollout", refuse)


def a_score(workspace, metric, system="early", track="multiparty", which=0):
    rows = required(workspace, track, "measurements", system)
    return rows.filter(pl.col("metric") == metric).sort("item_id", "window_id").row(which, named=True)


# Trace


def test_trace_walks_from_the_score_to_everything_it_came_from(run):
    row = a_score(run, "pause_takeover", track="conversation")
    found = trace(run, row["measurement_id"])
    assert found.measurement["value"] == row["value"]
    assert found.metric["id"] == "pause_takeover"
    assert found.metric["scored_by_version"] == found.metric["version"]
    assert found.window["kind"] == "pause"
    assert found.item["item_id"] == row["item_id"]
    assert found.rollout["rollout_key"] == row["rollout_key"]
    assert found.rollout["outcome"] == "completed"
    assert found.rollout["key_follows_from_card_and_profile"]
    for blob in (found.rollout["listener_audio"], found.rollout["events"], found.stimulus["recording"]):
        assert run.store.exists(blob["key"])
        assert blob["stored"]
    assert found.stimulus["digest"] == found.rollout["stimulus_digest"]
    assert found.activity["gate_threshold"] == run.profile.gate.threshold
    assert found.activity["vad_engine"] == "gate as detector/1"
    assert found.words["engine"] == "gate as recogniser/1"
    assert found.card["execution"]["settings"] == {"at_s": AT_S}
    assert {each["condition"] for each in found.statistics} == {"pause"}
    assert found.provenance["profile"] == "small"
    assert found.provenance["python"]
    assert found.dagster["measurements"] == "/assets/conversation/measurements?view=partitions&partition=early"
    assert f"item={row['item_id']}&system=early" in found.report["link"]
    assert found.report["address"] is None
    assert "duplex-bench report" in found.report["reason"]
    assert json.loads(json.dumps(found.as_dict()))["measurement"]["measurement_id"] == row["measurement_id"]


def test_trace_tells_the_verdict_with_prompt_and_raw_reply(run):
    judged = required(run, "multiparty", "judgements", "early")
    assert judged.height
    verdict = judged.row(0, named=True)
    rows = required(run, "multiparty", "measurements", "early").filter(
        (pl.col("item_id") == verdict["item_id"]) & (pl.col("window_id") == verdict["window_id"])
    )
    found = trace(run, rows["measurement_id"][0], system="early")
    told = next(one for one in found.judgements if one["rubric"] == verdict["rubric"])
    assert told["raw"] == verdict["raw"]
    assert len(told["rubric_sha256"]) == 64
    assert {each["condition"] for each in found.statistics} == {rows["condition"][0], "all"}


def test_trace_takes_the_beginning_of_an_id(run):
    row = a_score(run, "pause_silent", system="silent", track="conversation")
    found = trace(run, row["measurement_id"][:14].upper())
    assert found.measurement["measurement_id"] == row["measurement_id"]
    assert found.measurement["system"] == "silent"


def test_trace_of_who_reads_the_transcript_has_no_rollout(run):
    row = required(run, "multiparty", "transcript_reference").row(0, named=True)
    found = trace(run, row["measurement_id"])
    assert set(found.rollout) == {"reason"}
    assert found.judgements == ()
    assert list(found.dagster) == ["transcript_reference"]


@pytest.mark.parametrize(("wanted", "said"), [("zz", "begins with 'zz'"), ("", "no id given")])
def test_trace_of_no_score_says_where_ids_are(run, wanted, said):
    with pytest.raises(TraceError, match=said) as raised:
        trace(run, wanted)
    assert "measurement_id" in str(raised.value)


def test_trace_of_many_scores_asks_for_more(run):
    ids = required(run, "multiparty", "measurements", "silent")["measurement_id"].to_list()
    first = next(a[0] for a in ids if sum(b[0] == a[0] for b in ids) > 1)
    with pytest.raises(TraceError, match="give more of the id"):
        trace(run, first)


def test_trace_of_a_rollout_that_two_cards_share_asks_whose(run):
    wanted = a_score(run, "response_presence")["measurement_id"]
    with pytest.raises(TraceError, match=r"early, twin.*--system"):
        trace(run, wanted)
    assert trace(run, wanted, system="twin").card["system"] == "twin"


def test_trace_says_if_the_profile_no_longer_leads_to_the_rollout(run):
    protocols = replace(run.profile.rollout.protocols, pause_silence_s=2.25)
    moved = Workspace(run.data, replace(run.profile, rollout=replace(run.profile.rollout, protocols=protocols)))
    found = trace(moved, a_score(run, "pause_silent", track="conversation")["measurement_id"])
    assert not found.rollout["key_follows_from_card_and_profile"]


def test_nothing_run_is_said_with_the_remedy(small_workspace, tmp_path):
    empty = small_workspace(tmp_path / "empty")
    for ask in (lambda: trace(empty, "ab"), lambda: rescore(empty, {}), lambda: compare(empty, "a", "b")):
        with pytest.raises(ValueError, match="duplex-bench run --profile small"):
            ask()


# Rescore


def present_by_hand(workspace, window_s):
    """Share of requests in whose window the planted system is heard."""
    rows = required(workspace, "multiparty", "items").iter_rows(named=True)
    ends = [window["marks"]["t_end_s"] for row in rows for window in json.loads(row["reference"])["windows"]
            if window["kind"] == "request"]  # fmt: skip
    heard = [any(at < end + window_s and at + SPOKEN_S > end for at in AT_S) for end in ends]
    return sum(heard) / len(heard)


def presence(frame, side=""):
    column = f"estimate{side}"
    rows = frame.filter(
        (pl.col("system") == "early") & (pl.col("metric") == "response_presence") & (pl.col("condition") == "all")
    )
    return rows[column].item()


def test_shorter_windows_give_what_the_planted_speech_says(run, no_system_runs):
    before = tables_of(run)
    wide, narrow = present_by_hand(run, 5.0), present_by_hand(run, 0.4)
    assert wide != narrow
    found = rescore(run, overlay_of(["multiparty.scoring.request_window_s=0.4"]), "narrow")
    assert presence(found.moves, "_before") == pytest.approx(wide)
    assert presence(found.moves, "_after") == pytest.approx(narrow)
    assert [change.setting for change in found.changes] == ["multiparty.scoring.request_window_s"]
    assert "Not comparable with small" in found.notice
    assert found.counts["multiparty words"]["computed"] == 0
    assert found.counts["multiparty activity"]["computed"] == 0
    assert found.counts["conversation measurements"]["computed"] == 0
    assert tables_of(run) == before
    assert pl.read_csv(found.folder / "estimates.csv").height == found.moves.height
    told = json.loads((found.folder / "rescore.json").read_text())
    assert told["name"] == found.name == "small-rescored-narrow"


def test_a_gate_above_the_noise_hears_nothing(run, no_system_runs):
    before = tables_of(run)
    found = rescore(run, overlay_of(["gate.threshold=0.3"]))
    assert presence(found.moves, "_after") == 0.0
    silent = found.moves.filter((pl.col("metric") == "pause_silent") & (pl.col("system") == "early"))
    assert silent["estimate_after"].to_list() == [1.0]
    assert any("gate" in note for note in found.held)
    # A window that moved is a row by itself, and adds up with the cell.
    cell = found.moves.filter((pl.col("metric") == "pause_silent") & (pl.col("system") == "early")).row(0, named=True)
    windows = found.windows.filter((pl.col("metric") == "pause_silent") & (pl.col("system") == "early"))
    assert windows.height == cell["windows_changed"]
    assert windows["moved"].sum() == pytest.approx(cell["moved"] * cell["n_scored_after"])
    # What never speaks is not touched.
    assert found.windows.filter((pl.col("system") == "silent") & (pl.col("metric") == "pause_silent")).height == 0
    assert tables_of(run) == before


def test_the_persons_reply_is_measured_by_the_new_gate_too(run, no_system_runs):
    rescored = rescore(run, overlay_of(["gate.threshold=0.3"]), "deaf", ["conversation"])
    items = required(Workspace(run.data, replace(run.profile, name=rescored.name)), "conversation", "items")
    replies = [json.loads(text)["human_reply"] for text in items["reference"]]
    durations = [reply["duration_s"] for reply in replies if reply and reply["audio"]]
    assert durations
    assert all(duration == 0.0 for duration in durations)


def test_a_score_of_a_rescoring_is_traced_in_its_own_tables(run):
    rescored = rescore(run, overlay_of(["gate.threshold=0.3"]), "deaf", ["conversation"])
    there = Workspace(run.data, replace(run.profile, name=rescored.name))
    wanted = a_score(run, "pause_silent", track="conversation")["measurement_id"]
    assert trace(there, wanted).activity["gate_threshold"] == 0.3
    assert trace(run, wanted).activity["gate_threshold"] == 0.01


def test_nothing_changed_moves_nothing(run, no_system_runs):
    found = rescore(run, {})
    assert found.windows.height == 0
    assert found.rankings.height == 0
    assert found.moves["moved"].drop_nulls().abs().max() == 0.0
    assert found.notice.startswith("Comparable with small")
    assert all(counts["computed"] == 0 for counts in found.counts.values())


def test_another_level_moves_intervals_and_is_not_called_comparable(run, no_system_runs):
    found = rescore(run, {"statistics": {"level": 0.5}}, "half")
    assert found.windows.height == 0
    moved = only_moved(found.moves)
    assert moved.height > 0
    assert (moved["estimate_before"] == moved["estimate_after"]).all()
    assert (moved["low_before"] != moved["low_after"]).any()
    assert found.notice.startswith("Not comparable")


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ("multiparty.layout.request_gap_s=4.0", "known here"),
        ("multiparty.layout.sample_rate_hz=16000", "scripts and scenes"),
        ("multiparty.analysis.paper_family=3", "no score"),
        ("multiparty.reference.runs=7", "how the transcript is read"),
        ("seed=2", "which items are drawn"),
        ("limit=3", "which items are drawn"),
        ("rollout.repeats=2", "how systems are run"),
        ("rollout.protocols.pause_silence_s=2.0", "how systems are run"),
        ("speech.text_to_speech=other", "what systems hear"),
        ("speech.gap_fill=other", "labels and points"),
        ("multiparty.grammar.n_pairs=4", "scripts and scenes"),
        ("conversation.curation.cap_per_kind=1", "which recordings, labels and points"),
        ("conversation.history_s=10.0", "which recordings, labels and points"),
    ],
)
def test_what_needs_new_stimuli_or_runs_is_refused(run, setting, why):
    before = sorted(run.store.keys("tables"))
    with pytest.raises((RescoreRefusedError, ProfileError), match=why):
        rescore(run, overlay_of([setting]))
    assert sorted(run.store.keys("tables")) == before


def test_items_of_other_stimuli_are_refused(run):
    items = required(run, "conversation", "items")
    keep(run, "conversation", "items", items.with_columns(pl.lit("0" * 64).alias("stimulus_digest")))
    with pytest.raises(RescoreRefusedError, match="no longer have"):
        rescore(run, {})


def test_missing_audio_is_said_before_anything_is_scored(run):
    digest = required(run, "multiparty", "rollouts", "early")["listener_audio"].drop_nulls()[0]
    run.store.delete(run.blobs.key(digest, "flac"))
    with pytest.raises(ValueError, match="is not stored here"):
        rescore(run, overlay_of(["gate.threshold=0.3"]))
    assert not list(run.store.keys("tables/small-rescored-"))


def test_a_name_that_would_leave_the_folder_is_refused(run):
    with pytest.raises(ValueError, match="no name for a rescoring"):
        rescore(run, {}, "../up")


def test_settings_are_read_as_toml(run, tmp_path):
    partial = tmp_path / "strict.toml"
    partial.write_text('name = "strict"\n[gate]\nthreshold = 0.02\nrelease_ratio = 0.4\n')
    overlay = overlay_of(["gate.threshold=0.03", "speech.recogniser=whisper-tiny"], str(partial))
    profile, changes = changed_profile(run.profile, overlay)
    assert (profile.gate.threshold, profile.gate.release_ratio) == (0.03, 0.4)
    assert profile.speech.recogniser == "whisper-tiny"
    assert profile.name == "small"
    assert [change.setting for change in changes] == ["gate.release_ratio", "gate.threshold", "speech.recogniser"]


def test_what_no_score_hangs_on_may_differ_untold(run):
    assert changed_profile(run.profile, overlay_of(["processes=1", "rollout.attempts=1"]))[1] == ()


@pytest.mark.parametrize("told", ["gate.threshold", "=1", "gate.threshold=", "a b=1"])
def test_what_is_no_setting_is_said(told):
    with pytest.raises(ProfileError, match="is no setting"):
        overlay_of([told])


def test_changed_rankings_by_hand(run):
    from duplex_bench.stages.scoring import metric_cards

    def table(**groups):
        rows = [{"track": "multiparty", "condition": "all", "metric": "silence_preservation", "system": name,
                 "tie_group": group} for name, group in groups.items()]  # fmt: skip
        return pl.DataFrame(rows, schema_overrides={"tie_group": pl.Int64})

    found = changed_rankings(table(a=1, b=2, c=2, d=3), table(a=1, b=1, c=2, d=None), metric_cards("multiparty"))
    told = {(row["system_a"], row["system_b"]): (row["before"], row["after"]) for row in found.iter_rows(named=True)}
    assert told == {
        ("a", "b"): ("above", "tied"),
        ("b", "c"): ("tied", "above"),
        ("a", "d"): ("above", "not ranked"),
        ("b", "d"): ("above", "not ranked"),
        ("c", "d"): ("above", "not ranked"),
    }


def test_who_is_there_on_one_side_only_is_named_and_moves_nothing(run):
    key = run.table_key(("multiparty", "transcript_reference"), None)
    other = read_frame(run.store, key).with_columns(
        pl.lit("an-old-name").alias("system"), ("old-" + pl.col("measurement_id")).alias("measurement_id")
    )
    write_frame(run.store, key, other)
    before = required(run, "multiparty", "statistics")
    renamed = pl.col("system").replace({RULE_SYSTEM: "an-old-name"})
    keep(run, "multiparty", "statistics", before.with_columns(renamed))
    found = rescore(run, {})
    assert f"only one side has are of an-old-name, {RULE_SYSTEM}." in found.notice
    assert " 0 scores and 0 of " in found.notice


# Compare


def test_compare_is_the_difference_on_shared_windows(run):
    found = compare(run, "early", "silent", ["silence_preservation", "pause_silent"])
    for track, metric, condition in (("multiparty", "silence_preservation", "explicit"),
                                     ("conversation", "pause_silent", "pause")):  # fmt: skip
        sides = []
        for name in ("early", "silent"):
            rows = required(run, track, "measurements", name).filter(
                (pl.col("metric") == metric) & (pl.col("condition") == condition)
            )
            sides.append({(row["item_id"], row["window_id"]): row["value"] for row in rows.iter_rows(named=True)})
        shared = [key for key in sides[0] if sides[0][key] is not None and sides[1].get(key) is not None]
        by_hand = sum(sides[0][key] - sides[1][key] for key in shared) / len(shared)
        row = found.pairs.filter((pl.col("metric") == metric) & (pl.col("condition") == condition)).row(0, named=True)
        assert row["difference"] == pytest.approx(by_hand)
        assert row["n_pairs"] == len(shared)
        differing = sum(sides[0][key] != sides[1][key] for key in shared)
        mine = found.examples.filter((pl.col("metric") == metric) & (pl.col("condition") == condition))
        assert mine.height == min(differing, 5)
        assert all(f"item={one['item_id']}" in one["link_a"] for one in mine.iter_rows(named=True))


def test_compare_turned_round_has_the_other_sign(run):
    there, back = compare(run, "early", "silent").pairs, compare(run, "silent", "early").pairs
    assert there.height == back.height
    compared = 0
    for a, b in zip(there.iter_rows(named=True), back.iter_rows(named=True), strict=True):
        assert (a["p_sign_flip"], a["p_mcnemar"], a["n_pairs"]) == (b["p_sign_flip"], b["p_mcnemar"], b["n_pairs"])
        assert a["better"] == b["better"]
        assert (a["reason"] is None) == (b["reason"] is None)
        if a["low"] is not None:
            compared += 1
            assert (a["low"], a["high"]) == pytest.approx((-b["high"], -b["low"]))
            assert a["difference"] == pytest.approx(-b["difference"])
            assert a["minimum_detectable"] == pytest.approx(b["minimum_detectable"])
    assert compared


def test_compare_of_equals_tells_nobody_apart(run):
    found = compare(run, "early", "twin")
    assert found.pairs["track"].unique().to_list() == ["multiparty"]
    assert found.pairs["better"].null_count() == found.pairs.height
    assert found.pairs["reason"].null_count() == 0
    assert found.examples.height == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("early", "early"), "name two systems"),
        (("early", "nobody"), "there are early, silent, twin"),
        (("early", "silent", ["charm"]), "no metric charm"),
    ],
)
def test_compare_of_what_is_not_there(run, arguments, said):
    with pytest.raises(ValueError, match=said):
        compare(run, *arguments)


# Commands


@pytest.fixture
def called(run, monkeypatch, capsys):
    """Runs a command on the run; (exit code, what it printed)."""
    from duplex_bench.cli import compare as of_compare
    from duplex_bench.cli import console, main
    from duplex_bench.cli import rescore as of_rescore
    from duplex_bench.cli import trace as of_trace

    wide = Console(width=300)
    for module in (of_compare, of_rescore, of_trace):
        monkeypatch.setattr(module, "open_workspace", lambda *_: run)
        monkeypatch.setattr(module, "console", wide)
    monkeypatch.setattr(console, "console", wide)
    monkeypatch.setenv("COLUMNS", "300")

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["duplex-bench", *arguments])
        try:
            main.main()
            code = 0
        except SystemExit as ended:
            code = ended.code or 0
        told = capsys.readouterr()
        return code, told.out + " ".join(told.err.split())

    return call


def test_trace_prints_every_section(run, called):
    row = a_score(run, "pause_takeover", track="conversation")
    code, told = called("trace", row["measurement_id"])
    assert code == 0
    for part in ("metric", "window", "item", "stimulus", "rollout", "activity", "words", "statistics it enters", "card",
                 "code", "Dagster UI", "play.html#item=", row["rollout_key"], "partition=early"):  # fmt: skip
        assert part in told
    assert "NOT STORED" not in told


def test_trace_as_json_is_json(run, called):
    row = a_score(run, "pause_takeover", track="conversation")
    code, told = called("trace", row["measurement_id"], "--json")
    assert code == 0
    assert json.loads(told)["rollout"]["rollout_key"] == row["rollout_key"]


def test_rescore_prints_what_moved_and_where_it_is(run, called):
    code, told = called("rescore", "gate.threshold=0.3", "--track", "conversation", "--name", "deaf")
    assert code == 0
    assert "pause_silent" in told
    assert "Not comparable with small" in told
    assert str(run.data / "rescored" / "small-rescored-deaf") in told


def test_compare_prints_difference_and_links(called):
    code, told = called("compare", "early", "silent")
    assert code == 0
    assert "early minus silent" in told
    assert "play.html#item=" in told


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("trace", "zz"), "begins with 'zz'"),
        (("rescore", "seed=9"), "seed cannot be rescored"),
        (("rescore", "gate.loudness=1"), "unknown key gate.loudness"),
        (("rescore", "--with", "none.toml"), "no such profile"),
        (("rescore", "--track", "none"), "no track 'none'"),
        (("compare", "early", "nobody"), "there are early, silent, twin"),
    ],
)
def test_a_mistake_is_one_line_with_the_remedy(called, arguments, said):
    code, told = called(*arguments)
    assert code == 2
    assert said in told
    assert "Traceback" not in told


def made_up(system, values, metric, condition):
    """Measurements of one system, a window in a cluster of its own for each value."""
    rows = [
        {
            "measurement_id": f"{metric}-{system}-{number}", "system": system, "item_id": f"item-{number:02}",
            "rollout_key": f"{system}-{number}", "window_id": "w", "cluster": f"cluster-{number:02}",
            "condition": condition, "metric": metric, "metric_version": 1, "value": value, "reason": None,
            "at_s": 1.0, "details": "{}",
        }
        for number, value in enumerate(values)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=dict(MEASUREMENTS))


@pytest.mark.parametrize(
    ("metric", "condition", "of_a", "of_b", "better"),
    [
        ("pause_silent", "pause", [1.0] * 12, [0.0] * 12, "a"),
        ("pause_takeover", "pause", [1.0] * 12, [0.0] * 12, "b"),
        ("duration_ratio", "turn_end", [0.8] * 12, [3.0] * 12, "a"),
        ("duration_ratio", "turn_end", [0.1] * 12, [1.2] * 12, "b"),
        ("turn_end_latency", "turn_end", [0.1] * 12, [1.2] * 12, None),
        ("pause_silent", "pause", [1.0, 0.0] * 6, [0.0, 1.0] * 6, None),
        # Four clusters cannot give a p-value below 0.125, whatever the difference.
        ("pause_silent", "pause", [1.0] * 4, [0.0] * 4, None),
    ],
)
def test_better_is_what_the_card_says(small_workspace, tmp_path, metric, condition, of_a, of_b, better):
    workspace = small_workspace(tmp_path / "made-up")
    for name, values in (("a", of_a), ("b", of_b)):
        keep(workspace, "conversation", "measurements", made_up(name, values, metric, condition), name)
    for order in (("a", "b"), ("b", "a")):
        row = compare(workspace, *order, [metric]).pairs.row(0, named=True)
        assert row["better"] == better
        assert (row["reason"] is None) == (better is not None)
        assert row["n_clusters"] == len(of_a)
