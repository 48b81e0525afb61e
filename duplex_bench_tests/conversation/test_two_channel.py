"""Two-channel recordings: with labels of each form, with engines, and the real one with its exact labels."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import soundfile

from duplex_bench.conversation.annotations import AnnotationError, read_annotation
from duplex_bench.conversation.inventory import floor_transfers
from duplex_bench.conversation.labels import label_conversation
from duplex_bench.conversation.sessions import Rejection, Session
from duplex_bench.conversation.two_channel import SideSource, load_two_channel, load_two_channel_folder
from duplex_bench.records.audio import TimedWord

pytestmark = pytest.mark.unit

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
RATE = 8000


class LoudVad:
    engine_id = "loud/1"

    def speech_regions(self, samples, sample_rate_hz):
        (loud,) = np.nonzero(samples > 0.1)
        return np.array([[loud[0], loud[-1] + 1]]) if len(loud) else np.zeros((0, 2), dtype=np.int64)


class CountingRecogniser:
    engine_id = "counting/1"

    def words(self, samples, sample_rate_hz):
        first = np.flatnonzero(samples > 0.1)[0] / sample_rate_hz
        return (TimedWord("hello", first, first + 0.3), TimedWord("lost", None, None, aligned=False))


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """10 s: left speaks from 1 to 3 s, right from 4 to 6 s."""
    samples = np.zeros((10 * RATE, 2))
    samples[1 * RATE : 3 * RATE, 0] = 0.5
    samples[4 * RATE : 6 * RATE, 1] = 0.5
    path = tmp_path / "talk.wav"
    soundfile.write(path, samples, RATE, subtype="PCM_16")
    return path


def loaded(path: Path, **more) -> Session:
    session = load_two_channel(path, licence="CC0-1.0", **more)
    assert isinstance(session, Session), session
    return session


def rules(session: Session) -> Counter[str]:
    return Counter(correction.rule for correction in session.corrections)


def test_nothing_beside_it_engines_do_it(recording: Path):
    session = loaded(recording, vad=LoudVad(), recogniser=CountingRecogniser())
    assert session.left.speech == ((1.0, 3.0),)
    assert session.right.speech == ((4.0, 6.0),)
    assert [(word.text, word.start_s) for word in session.right.words] == [("hello", 4.0)]
    assert session.right.untimed_words == ("lost",)
    assert rules(session) == {"speech_by_engine": 2, "words_by_engine": 2, "null_word_times": 2}


def test_nothing_beside_it_and_no_engine_is_a_rejection(recording: Path):
    rejection = load_two_channel(recording, licence="CC0-1.0")
    assert isinstance(rejection, Rejection)
    assert rejection.rule == "no_speech_source"


def test_rttm_beside_it(recording: Path):
    recording.with_suffix(".rttm").write_text(
        "SPEAKER talk 1 1.0 2.0 <NA> <NA> anna <NA> <NA>\n"
        "SPKR-INFO talk 1 <NA> <NA> <NA> unknown anna <NA> <NA>\n\n"
        "SPEAKER talk 1 4.0 2.0 <NA> <NA> ben <NA> <NA>\n"
    )
    session = loaded(recording)
    assert (session.left.speaker_id, session.left.speech) == ("anna", ((1.0, 3.0),))
    assert (session.right.speaker_id, session.right.speech) == ("ben", ((4.0, 6.0),))


def test_json_words_by_speaker(recording: Path):
    recording.with_suffix(".json").write_text(
        json.dumps(
            {
                "right": {"words": [{"word": "yes", "start": 4.0, "end": 4.4}]},
                "left": {
                    "speech": [[1.0, 3.0], [5.0, 4.0]],
                    "words": [{"text": "so", "start_s": 1, "end_s": 1.5}, {"word": "um", "start": None, "end": None}],
                },
            }
        )
    )
    session = loaded(recording)
    assert session.left.speech == ((1.0, 3.0),)
    assert session.left.untimed_words == ("um",)
    assert session.right.speech == ((4.0, 4.4),)
    assert rules(session) == {"null_word_times": 1, "bad_speech_rows": 1, "speech_from_words": 1}


def test_json_words_as_rows(recording: Path):
    path = recording.with_name("rows.json")
    path.write_text(
        json.dumps(
            [{"channel": 0, "word": "a", "start": 1, "end": 2}, {"channel": 1, "word": "b", "start": 4, "end": 5}]
        )
    )
    session = loaded(recording, annotations=path)
    assert [side.words[0].text for side in (session.left, session.right)] == ["a", "b"]


def test_utterance_tiers_spread_their_words():
    session = loaded(RECORDINGS / "michaelandsickmichael.flac")
    assert (session.left.speaker_id, session.right.speaker_id) == ("michael", "sickmichael")
    assert len(session.left.speech) == 3
    assert rules(session) == {"words_spread": 2}
    for side in (session.left, session.right):
        assert all(any(s <= w.start_s and w.end_s <= e + 1e-6 for s, e in side.speech) for w in side.words)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.rttm", "SPEAKER talk 1 one 2.0 <NA> <NA> anna", "row 1"),
        ("a.rttm", "SPEAKER talk 1 1.0 2.0", "row 1"),
        ("a.TextGrid", "hello", "TextGrid"),
        ("a.TextGrid", "", "TextGrid"),
        ("a.json", "{", "JSON"),
        ("a.json", "3", "neither"),
        ("a.json", '[{"word": "a"}]', "row 0"),
        ("a.json", '{"left": {"words": [{"start": 1}]}}', "row 0"),
        ("a.json", '{"left": {"speech": [1]}}', "left"),
        ("a.txt", "", "suffix"),
    ],
)
def test_bad_annotations_name_file_and_row(tmp_path: Path, name: str, text: str, says: str):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(AnnotationError, match=says) as caught:
        read_annotation(path)
    assert str(path) in str(caught.value)


def test_a_bad_annotation_rejects_its_recording(recording: Path):
    recording.with_suffix(".rttm").write_text("SPEAKER broken")
    rejection = load_two_channel(recording, licence="CC0-1.0")
    assert isinstance(rejection, Rejection)
    assert rejection.rule == "bad_annotation"


def test_a_folder_goes_on_after_bad_files(recording: Path):
    folder = recording.parent
    soundfile.write(folder / "mono.wav", np.zeros(RATE), RATE)
    (folder / "broken.wav").write_bytes(b"RIFF")
    bad = np.zeros((RATE, 2), dtype=np.float32)
    bad[5] = np.nan
    soundfile.write(folder / "nan.wav", bad, RATE, subtype="FLOAT")
    (folder / "notes.txt").write_text("not audio")
    found = load_two_channel_folder(folder, licence="CC0-1.0", vad=LoudVad(), recogniser=CountingRecogniser())
    assert [session.session_id for session in found.sessions] == ["talk"]
    assert found.rejected_by_rule == {"bad_audio": 2, "not_two_channels": 1}


def test_no_licence_no_session(recording: Path):
    rejection = load_two_channel(recording, licence="", vad=LoudVad())
    assert isinstance(rejection, Rejection)
    assert rejection.rule == "no_licence"


def test_a_row_says_licence_and_language_of_its_recording(recording: Path):
    folder = recording.parent
    for name in ("own", "none", "spanish"):
        (folder / f"{name}.wav").write_bytes(recording.read_bytes())
    table = folder / "recordings.csv"
    table.write_text(
        "file,licence,language\nown.wav,CC BY 4.0,\nnone.wav,,en\nspanish.wav,CC0-1.0,ES\ngone.wav,CC0-1.0,\n"
    )
    found = load_two_channel_folder(folder, licence="CC0-1.0", vad=LoudVad(), recogniser=CountingRecogniser())
    assert {one.session_id: one.licence for one in found.sessions} == {"own": "CC BY 4.0", "talk": "CC0-1.0"}
    assert {(Path(one.where).name, one.rule) for one in found.rejections} == {
        ("none.wav", "no_licence"), ("spanish.wav", "language"), ("gone.wav", "missing"),
    }  # fmt: skip
    # Without a licence for the rest, only what has a row of its own is used.
    alone = load_two_channel_folder(folder, licence="", vad=LoudVad(), recogniser=CountingRecogniser())
    assert [one.session_id for one in alone.sessions] == ["own"]
    assert alone.rejected_by_rule["no_licence"] == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"file,rights\ntalk.wav,CC0\n", "no column licence"),
        (b"file,licence\ntalk.wav,CC0\ntalk.wav,CC0\n", "row 3.*stands there already"),
        (b"file,licence\n,CC0\n", "row 2.*names no file"),
        (b"file,licence\ntalk.wav,\xff\xfe\n", "UTF-8"),
    ],
)
def test_a_table_of_rights_that_cannot_be_read_is_an_error(recording: Path, text: bytes, says: str):
    (recording.parent / "recordings.csv").write_bytes(text)
    with pytest.raises(ValueError, match=says):
        load_two_channel_folder(recording.parent, licence="CC0-1.0", vad=LoudVad(), recogniser=CountingRecogniser())


def test_a_side_source_with_two_speakers_must_be_named(recording: Path):
    path = recording.with_name("both.rttm")
    path.write_text("SPEAKER t 1 1 1 <NA> <NA> a <NA> <NA>\nSPEAKER t 1 4 1 <NA> <NA> b <NA> <NA>\n")
    rejection = load_two_channel(recording, licence="CC0-1.0", annotations={"left": SideSource(path)})
    assert isinstance(rejection, Rejection)
    assert "name the one that is left" in rejection.message
    sources = {"left": SideSource(path, speaker="b"), "right": SideSource(path, speaker="a")}
    assert loaded(recording, annotations=sources).left.speech == ((4.0, 5.0),)


def test_the_real_recording_has_exactly_these_labels():
    """Two monologues, one after the other, so every label follows from the silences between the aligned words.

    Left: the words run from 1.05 to 25.25 s. The tier's silences inside are 0.17, 0.48, 0.03, 0.34, 0.97, 1.16, 0.24,
    0.17, 0.57, 0.62 and 0.15 s: those up to 0.25 s close, the six others are pauses, and the same speaker resumes each
    time with the other silent. Right: the words start at 1.24 s of their own file, 27.96325 s of this one; seven
    silences pass 0.25 s (0.32, 0.29, 0.89, 0.77, 0.69, 1.33, 0.43). Left's turn ends because right begins 2.71325 s
    later, within the look-ahead, and goes on; nobody speaks after right. Nobody ever speaks at once.
    """
    session = loaded(
        RECORDINGS / "michaelandsickmichael.flac",
        annotations={
            "left": SideSource(RECORDINGS / "acoustic_corpus.TextGrid"),
            "right": SideSource(RECORDINGS / "cold_corpus.TextGrid", offset_s=26.72325),
        },
    )
    assert (len(session.left.words), len(session.right.words)) == (58, 64)
    labels = label_conversation(session.left.track, session.right.track)
    turns = [label for label in labels if label.kind == "turn"]
    assert [(turn.speaker, turn.rule) for turn in turns] == [("left", "other_starts"), ("right", "nobody_speaks")]
    edges = [edge for turn in turns for edge in (turn.start_s, turn.end_s)]
    assert edges == pytest.approx([1.05, 25.25, 27.96325, 51.44325])
    pauses = {
        speaker: [round(p.end_s - p.start_s, 6) for p in labels if (p.speaker, p.kind) == (speaker, "pause")]
        for speaker in ("left", "right")
    }
    assert pauses["left"] == [0.48, 0.34, 0.97, 1.16, 0.57, 0.62]
    assert pauses["right"] == [0.32, 0.29, 0.89, 0.77, 0.69, 1.33, 0.43]
    assert Counter(label.kind for label in labels) == {"turn": 2, "pause": 13}
    assert floor_transfers(labels).tolist() == pytest.approx([2.71325])
