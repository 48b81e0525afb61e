"""The release bundle: whole, scored again to the same numbers, without a word or a sound that is not ours to give."""

import dataclasses
import io
import json
import shutil
import tarfile

import numpy as np
import polars as pl
import pytest
import soundfile
from planted_run import keep

from duplex_bench.records.items import Reference, Stimulus
from duplex_bench.reporting.run_tables import load_run
from duplex_bench.stages.compare_runs import Side, compare_runs
from duplex_bench.stages.gate import gate
from duplex_bench.stages.gate_rules import GateRules
from duplex_bench.stages.profile import parse_profile
from duplex_bench.stages.release.archive import pack
from duplex_bench.stages.release.build import build_release, release_folder
from duplex_bench.stages.release.check import check_release
from duplex_bench.stages.release.contents import ReleaseError
from duplex_bench.stages.release.layout import OUTPUT_LICENCE, TABLES
from duplex_bench.stages.release.rescoring import rescore_release
from duplex_bench.stages.stored_run import required
from duplex_bench.storage.digests import digest_file
from duplex_bench.storage.serial import from_json

pytestmark = pytest.mark.unit


def as_if_of_people(workspace):
    """The same run as if its scenarios were a user's and its conversations a corpus of recordings."""
    profile = workspace.profile
    corpus = dataclasses.replace(profile.conversation.corpus, kind="two_channel", path="/somewhere/private")
    conversation = dataclasses.replace(profile.conversation, corpus=corpus)
    multiparty = dataclasses.replace(profile.multiparty, scenario_file="/somewhere/scenarios.csv")
    closed = dataclasses.replace(profile, conversation=conversation, multiparty=multiparty)
    return dataclasses.replace(workspace, profile=closed)


@pytest.fixture(scope="module")
def kept_bundles(tmp_path_factory):
    return tmp_path_factory.mktemp("bundles")


@pytest.fixture
def bundle(run, kept_bundles, tmp_path):
    """A bundle whose words are ours; made once, then copied."""
    return copied(run, kept_bundles / "open", tmp_path / "bundle")


@pytest.fixture
def closed_bundle(run, kept_bundles, tmp_path):
    """A bundle whose words are withheld."""
    return copied(as_if_of_people(run), kept_bundles / "closed", tmp_path / "closed")


def copied(workspace, kept, to):
    if not kept.exists():
        build_release(workspace, kept)
    shutil.copytree(kept, to)
    return to


def tables_of(folder):
    return {name: pl.read_parquet(folder / f"{name}.parquet") for name in TABLES}


def listed_anew(folder):
    """The manifest as whoever changed the files would write it: the other checks must find what is wrong."""
    files = {
        path.relative_to(folder).as_posix(): {"bytes": path.stat().st_size, "sha256": digest_file(path)}
        for path in folder.rglob("*")
        if path.is_file() and path.name != "manifest.json"
    }
    (folder / "manifest.json").write_text(json.dumps({"files": files}))


def rewrite(folder, name, rule):
    file = folder / f"{name}.parquet"
    rule(pl.read_parquet(file)).write_parquet(file)
    listed_anew(folder)


def words_of(items):
    """Every sentence of the references that must not get out, of three words or more."""
    found = set()
    for text in items["reference"]:
        reference = from_json(Reference, text)
        found |= {turn.text for turn in reference.transcript}
        found |= {window.labels.get("text", "") for window in reference.windows}
        found |= {reference.human_reply.text} if reference.human_reply else set()
        found |= {reference.gold_answer} if reference.gold_answer else set()
    return {text for text in found if len(text.split()) > 2}


def test_a_bundle_is_whole_loads_with_one_call_and_has_terms_on_every_row(run, bundle):
    assert check_release(bundle) == ()
    scores = pl.read_parquet(bundle / "measurements.parquet")
    stored = [required(run, "multiparty", "measurements", system) for system in ("early", "silent", "twin")]
    assert scores.filter(track="multiparty")["value"].equals(pl.concat(stored)["value"])
    for name, frame in tables_of(bundle).items():
        assert dict(frame.schema) == dict(TABLES[name])
        assert frame["licence"].null_count() == 0
    assert set(tables_of(bundle)["rollouts"]["licence"]) == {OUTPUT_LICENCE}
    loaded = load_run(bundle)
    assert (loaded.kind, loaded.tracks) == ("bundle", ("multiparty", "conversation"))
    assert parse_profile(dict(loaded.settings), "bundle") == run.profile


def test_every_score_comes_out_the_same_from_the_bundle_alone(run, bundle):
    found = rescore_release(bundle)
    assert found.equal
    assert found.differing == ()
    assert found.table["not_made"].sum() == 0
    stored = sum(
        required(run, track, "measurements", system).height
        for track, systems in (("multiparty", ("early", "silent", "twin")), ("conversation", ("early", "silent")))
        for system in systems
    )
    by_metric = found.table.filter(~pl.col("what").is_in(["statistics", "comparisons", "gate intervals"]))
    assert by_metric["equal"].sum() == stored
    heard = found.table.filter(what="gate intervals")
    assert heard["equal"].sum() == tables_of(bundle)["activity"].height > 0


def test_what_hangs_on_withheld_words_says_so_and_all_else_comes_out_the_same(closed_bundle):
    assert check_release(closed_bundle) == ()
    found = rescore_release(closed_bundle)
    assert found.equal
    not_made = found.table.filter(pl.col("not_made") > 0)
    assert set(not_made["what"]) == {"token_f1", "cosine"}
    assert set(not_made["reason"]) == {"the person's reply is withheld"}
    assert not_made["equal"].sum() == 0
    assert found.table.filter(pl.col("what") == "word_ratio")["equal"].sum() > 0


def test_a_changed_score_is_found(bundle):
    frame = pl.read_parquet(bundle / "measurements.parquet")
    changed = frame.filter(pl.col("metric") == "silence_preservation")["measurement_id"][0]
    other = pl.when(pl.col("measurement_id") == changed).then(1 - pl.col("value")).otherwise(pl.col("value"))
    rewrite(bundle, "measurements", lambda table: table.with_columns(other.alias("value")))
    found = rescore_release(bundle)
    assert not found.equal
    assert {row[0] for row in found.differing} == {changed}
    assert found.table.filter((pl.col("what") == "statistics") & (pl.col("other") > 0)).height == 1


def test_a_changed_test_is_found(bundle):
    """A p-value that does not follow from the scores, in a bundle whose manifest says otherwise."""
    rewrite(bundle, "comparisons", lambda table: table.with_columns(pl.lit(0.001).alias("p")))
    found = rescore_release(bundle)
    assert not found.equal
    assert set(found.table.filter(pl.col("other") > 0)["what"]) == {"comparisons"}


def test_no_word_of_a_closed_item_and_no_place_of_the_machine_is_in_the_bundle(run, closed_bundle):
    everything = "".join(
        [json.dumps(frame.to_dicts(), ensure_ascii=False) for frame in tables_of(closed_bundle).values()]
        + [path.read_text("utf-8") for path in closed_bundle.rglob("*") if path.suffix in {".json", ".md"}]
    )
    secrets = set().union(*(words_of(required(run, track, "items")) for track in ("multiparty", "conversation")))
    assert len(secrets) > 20
    assert not [text for text in secrets if text in everything]
    assert "/somewhere" not in everything
    assert str(run.data) not in everything
    assert pl.read_parquet(closed_bundle / "scripts.parquet").height == 0


def test_words_that_are_ours_are_given(run, bundle):
    items = tables_of(bundle)["items"]
    assert not items["withheld"].any()
    assert words_of(items) == set().union(
        *(words_of(required(run, track, "items")) for track in ("multiparty", "conversation"))
    )
    assert tables_of(bundle)["scripts"].height == 3


def test_only_what_systems_said_is_heard_and_every_file_says_so(run, bundle):
    rollouts = tables_of(bundle)["rollouts"]
    given = {path.stem for path in (bundle / "audio").iterdir()}
    assert given == set(rollouts["listener_audio"].drop_nulls())
    heard = set()
    for track in ("multiparty", "conversation"):
        for text in required(run, track, "items")["stimulus"]:
            stimulus = from_json(Stimulus, text)
            parts = (stimulus.live, stimulus.history_user, stimulus.history_assistant)
            heard |= {part.source for part in parts if part is not None}
    assert heard
    assert not given & heard
    for digest in given:
        samples, rate = soundfile.read(bundle / "audio" / f"{digest}.flac", dtype="int16", always_2d=True)
        stored, stored_rate = run.blobs.read_audio(digest)
        assert rate == stored_rate
        assert np.array_equal(samples, stored)
        with soundfile.SoundFile(bundle / "audio" / f"{digest}.flac") as stream:
            assert stream.license == OUTPUT_LICENCE
    for text in tables_of(bundle)["items"]["stimulus"]:
        assert json.loads(text)["history"] == []
        assert json.loads(text)["identity_prompt"] is None


@pytest.mark.parametrize(
    ("change", "file", "said"),
    [
        (lambda b: (b / "words.parquet").unlink(), "words.parquet", "is missing"),
        (lambda b: (b / "manifest.json").unlink(), "manifest.json", "is missing"),
        (lambda b: (b / "release.json").write_text("{"), "release.json", "is no JSON"),
        (lambda b: (b / "README.md").write_text("other"), "README.md", "its SHA-256 differs"),
        (lambda b: (b / "more.txt").write_text("x"), "more.txt", "is not listed"),
        (lambda b: (b / "audio" / "link.flac").symlink_to("/etc/hostname"), "audio/link.flac", "is not listed"),
    ],
)
def test_a_bundle_that_was_touched_names_the_file(bundle, change, file, said):
    change(bundle)
    found = check_release(bundle)
    assert [(problem.file, said in problem.message) for problem in found] == [(file, True)]
    assert found[0].remedy
    with pytest.raises(ReleaseError, match=file):
        rescore_release(bundle)


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "audio/../../x", "a\\b"])
def test_a_manifest_that_names_a_path_outside_is_refused(bundle, name):
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["files"][name] = {"bytes": 1, "sha256": "0" * 64}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    assert [(one.file, one.message) for one in check_release(bundle)] == [
        (name, "manifest.json names a path outside the bundle")
    ]


def test_a_listed_link_is_refused(bundle):
    (bundle / "profile.json").unlink()
    (bundle / "profile.json").symlink_to("/etc/hostname")
    assert "is a link" in next(one.message for one in check_release(bundle) if one.file == "profile.json")


@pytest.mark.parametrize(
    ("table", "rule", "said"),
    [
        ("words", lambda f: f.with_columns(pl.lit("x").alias("note")), "has unknown columns note"),
        ("words", lambda f: f.drop("text"), "lacks columns text"),
        ("words", lambda f: f.with_columns(pl.col("n_words").cast(pl.Float64)), "n_words is Float64, not Int64"),
        ("words", lambda f: f.head(1), "has 1 rows where release.json tells"),
        ("labels", lambda f: f.with_columns(pl.lit("").alias("licence")), "rows have no licence"),
        ("measurements", lambda f: f.with_columns(pl.lit(float("nan")).alias("value")), "neither a value nor a reason"),
        ("measurements", lambda f: f.with_columns(pl.lit("gone").alias("item_id")), "items.parquet lacks"),
        ("rollouts", lambda f: f.with_columns(pl.lit("audio/none.flac").alias("audio")), "not in the bundle"),
        ("measurements", lambda f: f.with_columns(pl.lit('{"gold": "fifteen"}').alias("details")), "to be withheld"),
        ("judgements", lambda f: f.with_columns(pl.lit("it said so").alias("raw")), "to be withheld"),
        ("items", lambda f: f.with_columns(pl.col("reference").str.replace('"gold_answer":null', '"gold_answer":"x"')),
         "to be withheld"),
    ],
)  # fmt: skip
def test_tables_that_are_not_as_they_must_be_are_named_even_under_a_new_manifest(closed_bundle, table, rule, said):
    rewrite(closed_bundle, table, rule)
    found = [problem for problem in check_release(closed_bundle) if said in problem.message]
    assert [problem.file for problem in found] == [f"{table}.parquet"]


def test_a_recording_without_its_mark_is_named(bundle):
    file = next((bundle / "audio").iterdir())
    samples, rate = soundfile.read(file, dtype="int16")
    soundfile.write(file, samples, rate, subtype="PCM_16")
    listed_anew(bundle)
    assert [(one.file, "licence tag" in one.message) for one in check_release(bundle)] == [(f"audio/{file.name}", True)]


def test_the_archive_is_the_folder_and_the_same_bytes_each_time(bundle):
    first = pack(bundle).read_bytes()
    assert pack(bundle).read_bytes() == first
    archive = bundle.with_name("bundle.tar.gz")
    assert check_release(archive) == ()
    assert load_run(archive)["multiparty-measurements"].equals(load_run(bundle)["multiparty-measurements"])
    archive.write_bytes(first[: len(first) // 2])
    with pytest.raises(ReleaseError, match="no readable archive"):
        check_release(archive)


@pytest.mark.parametrize(
    ("name", "kind"), [("../x", tarfile.REGTYPE), ("/x/y", tarfile.REGTYPE), ("b/x", tarfile.SYMTYPE)]
)
def test_an_archive_that_reaches_outside_is_refused_and_writes_nothing_there(tmp_path, name, kind):
    archive = tmp_path / "bad.tar.gz"
    with tarfile.open(archive, "w:gz") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname, member.size = kind, "/etc/hostname", 0 if kind == tarfile.SYMTYPE else 1
        tar.addfile(member, io.BytesIO(b"x"))
    with pytest.raises(ReleaseError, match="no plain file inside the bundle"):
        check_release(archive)


def test_what_is_no_bundle_is_named(tmp_path):
    with pytest.raises(ReleaseError, match="does not exist"):
        check_release(tmp_path / "none")
    assert {problem.file for problem in check_release(tmp_path)} == {"release.json", "manifest.json"}


def test_a_key_of_the_environment_stops_the_release_and_leaves_nothing(run, tmp_path, monkeypatch):
    secret = "sk-canary-0123456789"
    monkeypatch.setenv("SOME_API_KEY", secret)
    frame = required(run, "multiparty", "words", "early")
    keep(run, "multiparty", "words", frame.with_columns(pl.lit(f"said {secret}").alias("text")), "early")
    with pytest.raises(ReleaseError, match="SOME_API_KEY stands in table words, column text") as error:
        build_release(run, tmp_path / "out")
    assert secret not in str(error.value)
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_statistics_of_other_scores_stop_the_release(run):
    frame = required(run, "multiparty", "statistics")
    keep(run, "multiparty", "statistics", frame.with_columns(pl.col("estimate") + 0.01))
    with pytest.raises(ReleaseError, match="statistics of multiparty do not follow from the scores"):
        build_release(run)


def test_a_folder_that_is_no_release_is_not_overwritten(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    with pytest.raises(ValueError, match="is not a release folder"):
        build_release(run, tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"


def test_croissant_names_every_table_with_its_digest_and_flat_columns(bundle):
    told = json.loads((bundle / "croissant.json").read_text())
    assert told["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    files = {one["@id"]: one for one in told["distribution"]}
    for name, frame in tables_of(bundle).items():
        assert files[f"{name}.parquet"]["sha256"] == digest_file(bundle / f"{name}.parquet")
        record = next(one for one in told["recordSet"] if one["@id"] == name)
        flat = {column for column, kind in frame.schema.items() if not kind.is_nested()}
        assert {field["source"]["extract"]["column"] for field in record["field"]} == flat


def test_a_run_is_compared_with_and_held_against_a_bundle_of_itself(run, bundle):
    found = compare_runs(Side(run.data, None), Side(bundle, None), metrics=["silence_preservation"])
    assert found.differs == ()
    assert (found.pairs["difference"].drop_nulls() == 0).all()
    assert gate(load_run(run.data), load_run(bundle), GateRules()).passed


def test_a_bundle_with_a_missing_table_is_no_baseline_that_passes(run, bundle):
    """Neither as it came, nor with a manifest written to fit."""
    (bundle / "rollouts.parquet").unlink()
    with pytest.raises(ValueError, match=r"lacks rollouts\.parquet"):
        load_run(bundle)
    listed_anew(bundle)
    checks = {(one.system, one.check): one for one in gate(load_run(run.data), load_run(bundle), GateRules()).verdicts}
    assert checks["twin", "items scored"].status == "reported"
    (bundle / "items.parquet").unlink()
    listed_anew(bundle)
    with pytest.raises(ValueError, match="has no table multiparty-items"):
        gate(load_run(run.data), load_run(bundle), GateRules())
    (bundle / "measurements.parquet").unlink()
    listed_anew(bundle)
    with pytest.raises(ValueError, match="has no scores"):
        gate(load_run(run.data), load_run(bundle), GateRules())


def test_the_bundle_lies_beside_the_reports(run):
    result = build_release(run)
    assert (release_folder(run) / "release.json").is_file()
    assert release_folder(run).with_name("small.tar.gz").is_file()
    assert result.counts["files"] == result.frame.height
