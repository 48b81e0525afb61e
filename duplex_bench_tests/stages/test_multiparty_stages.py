"""Multiparty stages around the main chain: inventory, construction by ear, acoustics, own scenarios, validation."""

import csv
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import soundfile

import duplex_bench
from duplex_bench.judging.human_check import SheetError
from duplex_bench.stages import evaluation, multiparty, multiparty_construction, multiparty_inventory, validation
from duplex_bench.stages.items import items_of
from duplex_bench.stages.profile import ProfileError, parse_profile
from duplex_bench.stages.rollouts import rollouts
from duplex_bench.stages.summary import stored_tables
from duplex_bench.storage.frames import write_frame
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit
EXAMPLES = Path(duplex_bench.__file__).parents[1] / "docs" / "examples"


SIZE = {"silence_turns_mean": 5.0, "n1_turns_mean": 1.0, "n3_turns_mean": 1.0, "elaborations_mean": 0.0}


def profile_with(**multiparty_settings):
    return {
        "name": "small",
        "seed": 1,
        "multiparty": {"grammar": {"n_pairs": 1, "seed": 3, "size": SIZE}, **multiparty_settings},
        "conversation": {"generator": {"n_sessions": 1, "seed": 5}},
    }


@pytest.fixture
def built(quick_engines, small_workspace, tmp_path):
    """Workspace and the frames of pairs, speech, scenes and items of one scenario in three acoustics."""

    def build(**settings):
        workspace = small_workspace(tmp_path, profile_with(**settings))
        pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
        speech = multiparty.utterance_speech(workspace, pairs).frame
        scenes = multiparty.scenes(workspace, pairs, speech).frame
        return workspace, pairs, speech, scenes, multiparty.items(workspace, pairs, scenes).frame

    return build


def by_id(workspace, result):
    return {table.id: table.frame for table in stored_tables(workspace, result.frame)}


def test_inventory_counts_what_was_drawn_beside_what_was_asked(built):
    workspace, pairs, speech, _, items = built()
    tables = by_id(workspace, multiparty_inventory.inventory(workspace, pairs, speech, items))
    composition = {(row["condition"], row["quantity"]): row for row in tables["multiparty-composition"].to_dicts()}
    silence = composition["explicit", "silence turns (N1 to N3)"]
    assert (silence["mean"], silence["profile"]) == (5.0, "mean 5.0")
    assert composition["explicit", "turns T"]["mean"] == 1.0
    accounting = dict(tables["multiparty-accounting"].select("quantity", "here").iter_rows())
    assert accounting["n_pairs"] == 1
    assert accounting["hours_distinct_clips"] < accounting["hours_played"]
    placement = tables["multiparty-request-placement"]
    assert placement["n_requests"].sum() == items.height == 2


def test_a_pair_without_a_clip_is_left_out_of_the_accounting_and_counted(built):
    workspace, pairs, speech, _, items = built()
    result = multiparty_inventory.inventory(workspace, pairs, speech.head(3), items)
    accounting = dict(by_id(workspace, result)["multiparty-accounting"].select("quantity", "here").iter_rows())
    assert accounting["n_pairs"] == 0
    assert accounting["pairs left out because a clip is missing"] == 1


def test_construction_hears_every_clip_once_and_fails_by_name(built):
    workspace, pairs, speech, scenes, _ = built()
    first = multiparty_construction.construction(workspace, pairs, speech, scenes)
    assert (first.counts["clips_heard"], first.counts["scenes_heard"]) == (speech.height, scenes.height)
    tables = by_id(workspace, first)
    edges = tables["multiparty-construction-boundaries"]
    assert edges["within_tolerance"].min() == 1.0
    # The quick recogniser says how long a clip is, not its words: every voice must fail, and nothing else.
    failed = multiparty_construction.failed_checks(workspace, first.frame)
    voices = speech["voice"].n_unique()
    assert len(failed) == voices == first.counts["checks_failed"]
    assert all(row["check"].startswith("words of voice") for row in failed)
    assert multiparty_construction.construction(workspace, pairs, speech, scenes).frame.equals(first.frame)


def test_construction_draws_by_hash_when_told_to(built):
    workspace, pairs, speech, scenes, _ = built(construction={"clips_checked": 3, "scenes_checked": 1})
    counts = multiparty_construction.construction(workspace, pairs, speech, scenes).counts
    assert (counts["clips_heard"], counts["scenes_heard"]) == (3, 1)


def test_a_clip_at_full_scale_fails_the_check(built):
    workspace, pairs, speech, scenes, _ = built()
    loud = speech.with_columns(pl.lit(1.0).alias("peak"))
    failed = multiparty_construction.failed_checks(
        workspace, multiparty_construction.construction(workspace, pairs, loud, scenes).frame
    )
    assert "clips that reach full scale" in {row["check"] for row in failed}


def test_other_acoustics_add_items_and_leave_the_clean_ones_as_they_were(built):
    _, _, _, _, alone = built()
    workspace, _, _, scenes, items = built(acoustics=["clean", "noise", "overlap"])
    assert not multiparty.scene_faults(scenes)
    assert items.height == 6
    clean = items.filter(pl.col("condition").is_in(["explicit", "implicit"]))
    assert clean.equals(alone)
    noisy = items_of(items)[f"{clean['item_id'][0]}~noise"]
    assert noisy.condition == "noise explicit"
    live = noisy.stimulus.live
    samples, _ = workspace.blobs.read_audio(live.source)
    assert np.abs(samples[-2000:]).max() > 0
    assert items["stimulus_digest"].n_unique() == 6


@pytest.mark.parametrize("acoustics", [["noise"], ["clean", "noise", "noise"], ["clean", "moon"]])
def test_acoustics_without_clean_or_unknown_are_refused(acoustics):
    with pytest.raises(ProfileError, match=r"multiparty"):
        parse_profile(profile_with(acoustics=acoustics), "test")


@pytest.mark.parametrize("name", ["own-scenarios.csv", "own-scenarios.yaml"])
def test_the_examples_of_the_docs_run_through_the_same_stages(built, name):
    _, pairs, speech, scenes, items = built(scenario_file=str(EXAMPLES / name))
    assert (pairs.height, scenes.height, items.height) == (1, 2, 2)
    assert speech["n_samples"].min() > 0
    assert {window.kind for item in items_of(items).values() for window in item.reference.windows} == {
        "request", "silence", "yield",
    }  # fmt: skip


def test_a_file_without_a_usable_scenario_says_why(quick_engines, small_workspace, tmp_path):
    broken = tmp_path / "broken.csv"
    text = (EXAMPLES / "own-scenarios.csv").read_text("utf-8").replace(",T,", ",N2,")
    broken.write_text(text, encoding="utf-8")
    workspace = small_workspace(tmp_path / "data", profile_with(scenario_file=str(broken)))
    with pytest.raises(ValueError, match=r"broken\.csv, scenario 1 \(camp-1\), row"):
        multiparty.scenarios(workspace)


@pytest.fixture
def judged(built, quick_engines, monkeypatch):
    """A workspace in which a planted system has spoken all the time and was judged."""
    workspace, _, _, _, items = built()
    card = SystemCard(name="talker", title="Talker", family="policy", adapter=quick_engines,
                      settings={"at_s": [float(second) for second in range(0, 60, 1)]}, licence="test")  # fmt: skip
    ran = rollouts(workspace, "multiparty", items, card).frame
    heard = evaluation.activity(workspace, "multiparty", ran, card.name).frame
    words = evaluation.words(workspace, "multiparty", ran, card.name).frame
    verdicts = evaluation.judgements(workspace, "multiparty", items, ran, heard, words, card.name).frame
    scores = evaluation.measurements(workspace, "multiparty", items, ran, heard, words, verdicts, card.name).frame
    stored = {"rollouts": ran, "judgements": verdicts, "measurements": scores}
    write_frame(workspace.store, workspace.table_key(("multiparty", "items"), None), items)
    for name, frame in stored.items():
        write_frame(workspace.store, workspace.table_key(("multiparty", name), card.name), frame)
    monkeypatch.setattr(validation, "readable_cards", lambda _: ({card.name: card}, []))
    return workspace, verdicts


def rows_of(sheet):
    with sheet.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def filled(sheet, answers):
    rows = rows_of(sheet)
    with sheet.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for row, answer in zip(rows, answers, strict=True):
            writer.writerow(row | answer)
    return sheet


def test_a_sheet_is_blind_goes_out_and_comes_back(judged, tmp_path):
    workspace, verdicts = judged
    folder = tmp_path / "out"
    drawn = validation.draw(workspace, "acknowledgement", folder, 4)
    sheet = folder / "sheet.csv"
    rows = rows_of(sheet)
    assert len(rows) == drawn.counts["samples"] == 4
    shown = sheet.read_text("utf-8") + (folder / "index.html").read_text("utf-8")
    assert "talker" not in shown
    assert "words outside the lexicon" not in shown
    audio, rate = soundfile.read(folder / rows[0]["audio"])
    assert rate == 24_000
    assert np.abs(audio).max() > 0
    known = verdicts.filter((pl.col("rubric") == "acknowledgement") & pl.col("verdict").is_not_null())
    assert set(known["verdict"]) == {"intrusion"}
    scored = validation.score(workspace, filled(sheet, [{"human": "intrusion"}] * 3 + [{"human": ""}]))
    row = scored.frame.row(0, named=True)
    assert (row["n_drawn"], row["n_answered"], row["n_agree"], row["share"]) == (4, 3, 3, 1.0)
    (table,) = validation.validation_tables(workspace)
    assert table.frame.height == 1
    validation.score(workspace, sheet)
    assert validation.validation_tables(workspace)[0].frame.height == 1


def test_the_same_draw_is_the_same_sample_and_a_filled_folder_is_never_overwritten(judged, tmp_path):
    workspace, _ = judged
    one = validation.draw(workspace, "construction", tmp_path / "one", 2)
    two = validation.draw(workspace, "construction", tmp_path / "two", 2)
    assert one.frame.equals(two.frame)
    assert one.counts["draw"] == two.counts["draw"]
    with pytest.raises(ValueError, match="is not empty"):
        validation.draw(workspace, "construction", tmp_path / "one", 2)


def test_construction_shows_the_script_and_passes_are_counted(judged, tmp_path):
    workspace, _ = judged
    validation.draw(workspace, "construction", tmp_path / "out", 2)
    sheet = tmp_path / "out" / "sheet.csv"
    assert "[T]" in rows_of(sheet)[0]["script"]
    yes = {"answer_follows": "yes", "form_fits": "yes", "labels_fit": "yes", "speech_matches": "no"}
    scored = validation.score(workspace, filled(sheet, [yes, yes]))
    shares = dict(scored.frame.select("question", "share").iter_rows())
    assert shares == {"answer_follows": 1.0, "form_fits": 1.0, "labels_fit": 1.0, "speech_matches": 0.0}


def test_a_sheet_of_another_data_folder_is_refused(judged, tmp_path):
    workspace, _ = judged
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("draw,sample,human\nabc,001,correct\n", encoding="utf-8")
    with pytest.raises(SheetError, match="'abc' is not known"):
        validation.score(workspace, sheet)
    sheet.write_text("sample,human\n001,correct\n", encoding="utf-8")
    with pytest.raises(SheetError, match="column draw"):
        validation.score(workspace, sheet)


def test_before_a_run_there_is_nothing_to_draw(small_workspace, tmp_path):
    with pytest.raises(SheetError, match="run it"):
        validation.draw(small_workspace(tmp_path), "answers", tmp_path / "out")
