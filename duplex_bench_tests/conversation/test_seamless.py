"""Seamless loader: every known fault becomes a named rejection or a named repair, and the rest goes on."""

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex_bench.conversation.generator import GeneratorSettings, generate
from duplex_bench.conversation.generator_faults import FAULTS, LONGER_BY_S
from duplex_bench.conversation.labels import Word
from duplex_bench.conversation.seamless import LICENCE, SeamlessRules, echoed_share, load_seamless

pytestmark = pytest.mark.unit

EXPECTED_REJECTIONS = {
    "empty_wav": "empty_audio",
    "missing_partner": "missing_partner",
    "missing_archive": "missing_archive",
    "partner_longer": "unequal_lengths",
    "crosstalk": "crosstalk",
    "broken_json": "broken_json",
}
EXPECTED_REPAIRS = {
    "empty_vad": ["speech_from_words"],
    "vad_ends_early": ["speech_extended_by_words"],
    "no_transcript": ["no_transcript"],
    "null_word_times": ["null_word_times"],
    "reversed_word_times": ["reversed_word_times"],
    "float_wav": [],
}


@pytest.fixture(scope="module")
def faulty(tmp_path_factory, noise_voices):
    root = tmp_path_factory.mktemp("faulty")
    settings = GeneratorSettings(n_sessions=len(FAULTS) + 2, minutes=0.5, sample_rate_hz=8000)
    planted = generate(settings, noise_voices, root, FAULTS)
    return {session.session_id: session for session in planted}, load_seamless(root / "corpus"), root / "corpus"


def rows_of(faulty, fault):
    planted, loaded, _ = faulty
    key = next(session.session_id for session in planted.values() if session.fault == fault)
    return (
        [session for session in loaded.sessions if session.session_id == key],
        [rejection for rejection in loaded.rejections if key in rejection.where],
    )


def test_every_fault_has_an_expected_reaction():
    assert {*EXPECTED_REJECTIONS, *EXPECTED_REPAIRS} == set(FAULTS)


def test_sessions_and_rejections_add_up(faulty):
    planted, loaded, _ = faulty
    assert len(loaded.sessions) + len(loaded.rejections) == len(planted)
    assert loaded.rejected_by_rule == dict.fromkeys(sorted(EXPECTED_REJECTIONS.values()), 1)


@pytest.mark.parametrize("fault", EXPECTED_REJECTIONS)
def test_rejected_with_its_rule_and_a_remedy(faulty, fault):
    sessions, rejections = rows_of(faulty, fault)
    assert not sessions
    assert [rejection.rule for rejection in rejections] == [EXPECTED_REJECTIONS[fault]]
    assert rejections[0].message
    assert rejections[0].remedy


@pytest.mark.parametrize("fault", EXPECTED_REPAIRS)
def test_repaired_with_its_rule(faulty, fault):
    sessions, rejections = rows_of(faulty, fault)
    assert not rejections
    assert [correction.rule for correction in sessions[0].corrections] == EXPECTED_REPAIRS[fault]
    assert sessions[0].left.speech


def test_clean_sessions_hold_what_was_planted(faulty):
    planted, loaded, _ = faulty
    clean = [session for session in loaded.sessions if planted[session.session_id].fault is None]
    assert len(clean) == 2
    for session in clean:
        plan = planted[session.session_id].plan
        for speaker in ("left", "right"):
            assert session.side(speaker).speech == plan.track(speaker).speech
            assert session.side(speaker).words == plan.track(speaker).words
        assert session.licence == LICENCE
        assert session.language == "en"
        assert session.duration_s == pytest.approx(plan.duration_s, abs=1e-3)


def test_null_times_are_never_second_zero(faulty):
    planted, _, _ = faulty
    session = rows_of(faulty, "null_word_times")[0][0]
    truth = planted[session.session_id].plan.track("left").words
    assert len(session.left.untimed_words) == -(-len(truth) // 10)
    assert set(session.left.words) <= set(truth)


def test_speech_from_words_bridges_half_a_second(faulty):
    planted, _, _ = faulty
    session = rows_of(faulty, "empty_vad")[0][0]
    truth = planted[session.session_id].plan.track("left").speech
    assert all(b[0] - a[1] > 0.5 for a, b in zip(session.left.speech, session.left.speech[1:], strict=False))
    assert session.left.speech[0][0] == truth[0][0]
    assert session.left.speech[-1][1] == truth[-1][1]


def test_speakers_are_told_apart_between_vendors(faulty):
    _, loaded, _ = faulty
    ids = [side.speaker_id for session in loaded.sessions for side in (session.left, session.right)]
    assert len(set(ids)) == len(ids)
    assert any(name.endswith("A") for name in ids) or any("A" in r.message for r in loaded.rejections)


def test_a_longer_partner_can_be_trimmed(faulty):
    planted, _, corpus = faulty
    key = next(session.session_id for session in planted.values() if session.fault == "partner_longer")
    rules = SeamlessRules(max_length_difference_s=LONGER_BY_S + 1)
    session = next(s for s in load_seamless(corpus, rules).sessions if s.session_id == key)
    assert [correction.rule for correction in session.corrections] == ["trimmed_to_shorter"]
    assert session.duration_s == pytest.approx(planted[key].plan.duration_s, abs=1e-3)
    assert dict(session.quality)["length_difference_s"] == pytest.approx(LONGER_BY_S)


def test_short_interactions_are_left_out_by_name(faulty):
    _, _, corpus = faulty
    loaded = load_seamless(corpus, SeamlessRules(min_duration_s=420))
    assert not loaded.sessions
    assert loaded.rejected_by_rule["too_short"] > 5


def test_charades_are_left_out(tmp_path: Path, noise_voices):
    settings = GeneratorSettings(n_sessions=2, minutes=0.3, sample_rate_hz=8000)
    planted = generate(settings, noise_voices, tmp_path)
    table = tmp_path / "corpus" / "interactions.csv"
    table.write_text(table.read_text().replace("ipc_conversation", "charades"))
    loaded = load_seamless(tmp_path / "corpus")
    assert loaded.rejected_by_rule == {"charades": 1}
    assert [session.session_id for session in loaded.sessions] == [planted[1].session_id]


def write_pair(root: Path, *, right_note: object | None = None, channels: int = 1, rate: int = 8000) -> Path:
    folder = root / "naturalistic" / "dev" / "0000" / "0000"
    folder.mkdir(parents=True)
    for participant in ("P0001", "P0002"):
        name = f"V00_S0001_I00000001_{participant}"
        shape = (rate * 10,) if channels == 1 or participant == "P0001" else (rate * 10, channels)
        soundfile.write(folder / f"{name}.wav", np.zeros(shape), rate, subtype="PCM_16")
        note = {"id": name, "metadata:vad": [{"start": 1.0, "end": 2.0}]}
        if participant == "P0002" and right_note is not None:
            note = right_note
        (folder / f"{name}.json").write_text(json.dumps(note))
    return root


RIGHT = "V00_S0001_I00000001_P0002"


@pytest.mark.parametrize(
    ("note", "rule"),
    [
        ({"id": "V00_S0001_I00000001_P0009", "metadata:vad": [{"start": 1, "end": 2}]}, "id_mismatch"),
        ({"id": RIGHT, "metadata:vad": "none"}, "bad_schema"),
        ({"id": RIGHT, "metadata:vad": []}, "no_speech"),
        ([1, 2], "broken_json"),
    ],
)
def test_bad_notes_are_rejected_by_name(tmp_path: Path, note: object, rule: str):
    loaded = load_seamless(write_pair(tmp_path, right_note=note))
    assert [rejection.rule for rejection in loaded.rejections] == [rule]
    assert RIGHT in loaded.rejections[0].where


def test_stereo_sides_are_rejected(tmp_path: Path):
    assert load_seamless(write_pair(tmp_path, channels=2)).rejected_by_rule == {"not_mono": 1}


def test_bad_voice_activity_rows_are_dropped_and_counted(tmp_path: Path):
    vad = [{"start": 1, "end": 2}, {"start": 5, "end": 4}, {"start": None, "end": 4}, {"start": 20, "end": 21}]
    session = load_seamless(write_pair(tmp_path, right_note={"id": RIGHT, "metadata:vad": vad})).sessions[0]
    assert session.right.speech == ((1.0, 2.0),)
    assert [c.rule for c in session.corrections if RIGHT in c.where] == ["no_transcript", "bad_vad_rows"]


def test_strange_names_and_copies_are_named(tmp_path: Path):
    write_pair(tmp_path)
    folder = tmp_path / "naturalistic" / "dev" / "0000"
    (folder / "0000" / "notes.json").write_text("{}")
    (folder / "0001").mkdir()
    (folder / "0001" / f"{RIGHT}.json").write_text("{}")
    loaded = load_seamless(tmp_path)
    assert loaded.rejected_by_rule == {"duplicate_file": 1, "file_id": 1}
    assert len(loaded.sessions) == 1


def test_a_missing_folder_is_said(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="naturalistic"):
        load_seamless(tmp_path)


def test_echoed_share_counts_long_words_within_300_ms():
    words = [Word("Holiday,", 1.0, 1.4), Word("tomorrow", 3.0, 3.5), Word("the", 4.0, 4.1)]
    partner = [Word("holiday", 1.3, 1.7), Word("tomorrow", 3.4, 3.9), Word("the", 4.0, 4.1)]
    assert echoed_share(words, partner) == 0.5
    assert echoed_share([], partner) == 0.0
