"""Synthetic sessions on disk: format, audio where the truth says, same bytes twice, truth outside the corpus."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex_bench.audio.gate import intervals_s
from duplex_bench.conversation.generator import GeneratorSettings, generate, read_truth
from duplex_bench.conversation.generator_faults import FAULTS, header_only_wav
from duplex_bench.conversation.label_accuracy import accuracy_by_kind
from duplex_bench.conversation.labels import label_conversation
from duplex_bench.conversation.seamless import load_seamless

pytestmark = pytest.mark.unit

SMALL = GeneratorSettings(n_sessions=3, seed=4, minutes=0.4, sample_rate_hz=24000)


def content(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_same_arguments_give_the_same_bytes(tmp_path: Path, noise_voices):
    generate(SMALL, noise_voices, tmp_path / "a")
    generate(SMALL, noise_voices, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


def test_files_have_the_corpus_form(tmp_path: Path, noise_voices):
    planted = generate(GeneratorSettings(n_sessions=3, minutes=0.3), noise_voices, tmp_path)
    corpus = tmp_path / "corpus"
    rows = list(csv.DictReader((corpus / "filelist.csv").open(newline="")))
    assert {row["file_id"] for row in rows} == {side for s in planted for side in (s.left_file_id, s.right_file_id)}
    for row in rows:
        stem = corpus / row["label"] / row["split"] / row["batch_idx"].zfill(4) / row["archive_idx"].zfill(4)
        info = soundfile.info(stem / f"{row['file_id']}.wav")
        assert (info.samplerate, info.channels, info.subtype) == (48000, 1, "PCM_16")
        note = json.loads((stem / f"{row['file_id']}.json").read_text())
        assert note["id"] == row["file_id"]
        assert all(part["start"] < part["end"] <= info.duration for part in note["metadata:vad"])
        for segment in note["metadata:transcript"]:
            assert segment["transcript"] == " ".join(word["word"] for word in segment["words"])
            assert segment["end"] - segment["start"] <= 15.0
    archives = {row["file_id"].rsplit("_", 1)[0]: set() for row in rows}
    for row in rows:
        archives[row["file_id"].rsplit("_", 1)[0]].add(row["archive_idx"])
    assert {len(found) for found in archives.values()} == {1, 2}
    assert any(row["file_id"].endswith("A") for row in rows)
    prompts = list(csv.DictReader((corpus / "interactions.csv").open(newline="")))
    assert "\n" in prompts[0]["participant_a_prompt_text"]
    assert len({row["interaction_type"] for row in prompts}) == 4


def test_truth_is_read_back_and_lies_outside_the_corpus(tmp_path: Path, noise_voices):
    planted = generate(SMALL, noise_voices, tmp_path)
    assert read_truth(tmp_path) == planted
    inside = b"".join(data for name, data in content(tmp_path / "corpus").items() if not name.endswith(".wav"))
    assert b"failed_take" not in inside
    assert planted[0].plan.facts[0].question.encode() not in inside


def test_sound_is_where_the_voice_activity_says(tmp_path: Path, noise_voices):
    generate(SMALL, noise_voices, tmp_path)
    session = load_seamless(tmp_path / "corpus").sessions[0]
    for side in (session.left, session.right):
        samples, rate = soundfile.read(side.audio_path, dtype="float32")
        heard = intervals_s(samples, rate)
        assert len(heard) == len(side.speech)
        # One window of the gate on either side.
        assert np.abs(heard - np.array(side.speech)).max() <= 0.021


def test_clean_sessions_are_labelled_as_planted_through_files(tmp_path: Path, noise_voices):
    planted = {session.session_id: session for session in generate(SMALL, noise_voices, tmp_path)}
    loaded = load_seamless(tmp_path / "corpus")
    assert len(loaded.sessions) == 3
    for session in loaded.sessions:
        labels = label_conversation(session.left.track, session.right.track)
        for accuracy in accuracy_by_kind(labels, planted[session.session_id].plan.events, 0.1).values():
            assert accuracy.precision == accuracy.recall == 1.0


def test_sessions_do_not_depend_on_how_many_there_are(tmp_path: Path, noise_voices):
    few = generate(GeneratorSettings(n_sessions=1, minutes=0.3, sample_rate_hz=24000), noise_voices, tmp_path / "a")
    more = generate(GeneratorSettings(n_sessions=2, minutes=0.3, sample_rate_hz=24000), noise_voices, tmp_path / "b")
    assert more[0] == few[0]


def test_header_only_wav_has_58_bytes():
    assert len(header_only_wav(48000)) == 58


def test_what_cannot_be_generated_is_refused(tmp_path: Path, noise_voices):
    with pytest.raises(ValueError, match="no fault named 'typo'"):
        generate(SMALL, noise_voices, tmp_path, ["typo"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="need as many sessions"):
        generate(SMALL, noise_voices, tmp_path, FAULTS)
    with pytest.raises(ValueError, match="two voices"):
        generate(GeneratorSettings(voices=("one",)), noise_voices, tmp_path)
    with pytest.raises(ValueError, match="0 sessions"):
        GeneratorSettings(n_sessions=0)
    assert not list(tmp_path.iterdir())
