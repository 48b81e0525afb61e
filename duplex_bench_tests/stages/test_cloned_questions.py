"""Recall questions in a cloned voice, through a real worker process that has no model; and without cloning."""

import copy
import inspect
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from duplex_bench.conversation.label_types import SPEAKERS
from duplex_bench.speech import engines, qwen_tts
from duplex_bench.speech.foreign import ForeignEngine
from duplex_bench.stages import conversation, corpus, recall
from duplex_bench.stages.recall_speech import question_speech
from duplex_bench.stages.session_audio import StoredAudio
from duplex_bench.storage.blobs import to_pcm16
from duplex_bench.storage.serial import from_json

pytestmark = pytest.mark.process

WORKERS = str(Path(__file__).parents[1] / "speech" / "tiny_models")
LEAST_S, MOST_S = 2.0, 6.0


@pytest.fixture
def cloning(tmp_path, monkeypatch):
    """The name of a cloning engine whose worker needs no model; the folder where it keeps what it was sent."""
    model = tmp_path / "cloning" / "model"
    model.mkdir(parents=True)
    (model / "config.json").write_text("{}")
    settings = model.parent / "clone.toml"
    settings.write_text(
        f'model = "{model}"\n[runtime]\ninterpreter = "{sys.executable}"\ndevice = "cpu"\ndtype = "float32"\n'
        '[rules]\nchecked_by = ""\nattempts = 2\n'
    )
    monkeypatch.setenv("DUPLEX_BENCH_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(qwen_tts, "WORKER", "clone_worker")
    monkeypatch.setattr(qwen_tts, "ForeignEngine", partial(ForeignEngine, python_path=(WORKERS,)))
    name = f"qwen3-tts-clone:{settings}"
    yield name, model.parent
    engines.voice_cloning(name).close()


@pytest.fixture
def asked(quick_engines, small_workspace, tmp_path):
    """A workspace with recall under given settings, its sessions and its questions."""

    def build(**settings):
        table = copy.deepcopy(inspect.signature(small_workspace).parameters["table"].default)
        table["conversation"]["recall"] = {"enabled": True, "lengths_s": [30.0], **settings}
        opened = small_workspace(tmp_path, table)
        sessions = conversation.lively_sessions(opened).frame
        filled = conversation.gap_fill(opened, sessions).frame
        labels = conversation.engine_labels(opened, sessions, filled).frame
        identities = recall.identity_prompts(opened, sessions, filled, labels).frame
        facts = recall.recall_facts(opened, sessions, filled, labels).frame
        return opened, sessions, recall.recall_questions(opened, sessions, labels, facts, identities).frame

    return build


def channels(workspace, sessions):
    """The stored recording (n, 2) of the one session, and its rate."""
    (row,) = sessions.filter("selected").iter_rows(named=True)
    return workspace.blobs.read_audio(from_json(StoredAudio, row["audio"]).source)


def loudness(samples):
    return float(np.sqrt(np.mean(np.square(samples.astype(np.float64)))))


def test_a_question_is_said_in_the_voice_of_who_asks_it(asked, cloning):
    name, folder = cloning
    workspace, sessions, questions = asked(cloning=name, clone_reference_s=[LEAST_S, MOST_S])
    result = question_speech(workspace, sessions, questions)
    due = questions.filter(questions["dropped"] == "")
    assert result.frame.height == result.counts["spoken"] == result.counts["by_clone"] == due.height > 0
    assert set(result.frame["how"]) == {"clone"}
    assert all(engine.startswith("qwen3-tts/") for engine in result.frame["engine"])
    recording, rate = channels(workspace, sessions)
    sent = [np.load(path) for path in sorted(folder.glob("sent-*.npy"), key=lambda path: int(path.stem[5:]))]
    rows = list(result.frame.iter_rows(named=True))
    assert len(sent) == len(rows)
    for row, reference in zip(rows, sent, strict=True):
        assert row["voice"] == f"clone of {row['session_id']} {row['asker']}"
        assert LEAST_S <= len(reference) / rate <= MOST_S
        # What was sent stands in the asker's channel, and not in the other's.
        start = to_pcm16(reference[: rate // 4]).tobytes()
        mine = SPEAKERS.index(row["asker"])
        assert start in np.ascontiguousarray(recording[:, mine]).tobytes()
        assert start not in np.ascontiguousarray(recording[:, 1 - mine]).tobytes()
        spoken, _ = workspace.blobs.read_audio(row["source"])
        assert loudness(spoken) == pytest.approx(loudness(to_pcm16(reference)), rel=0.15)
        assert row["duration_s"] == pytest.approx(len(spoken) / rate)


def test_what_the_clone_cannot_say_is_counted_with_its_reason(asked, cloning):
    name, _ = cloning
    workspace, sessions, questions = asked(cloning=name, clone_reference_s=[LEAST_S, MOST_S])
    first, second = questions.filter(questions["dropped"] == "").head(2)["question_id"]
    text = questions["question"]
    muted = questions.with_columns(
        question=text.zip_with(questions["question_id"] != first, text.str.replace("^", "Mute: ")).zip_with(
            questions["question_id"] != second, text.str.replace("^", "Die: ")
        )
    )
    result = question_speech(workspace, sessions, muted)
    assert result.counts["failed"] == 2
    assert "attempt 2: silence" in result.note
    assert "was lost" in result.note
    # The worker that died was replaced.
    assert result.counts["spoken"] == muted.filter(muted["dropped"] == "").height - 2


def test_too_little_speech_of_the_asker_is_said(asked, cloning):
    name, folder = cloning
    workspace, sessions, questions = asked(cloning=name, clone_reference_s=[3000.0, 4000.0])
    result = question_speech(workspace, sessions, questions)
    assert result.counts["spoken"] == 0
    assert "lower conversation.recall.clone_reference_s" in result.note
    assert not list(folder.glob("sent-*.npy"))


def test_without_cloning_a_real_speaker_gets_the_nearest_embedded_voice_and_that_is_said(asked, monkeypatch):
    workspace, sessions, questions = asked()
    # As for recordings of people: nobody knows a voice that spoke them.
    monkeypatch.setattr(corpus, "planted_sessions", lambda _workspace: [])
    result = question_speech(workspace, sessions, questions)
    assert set(result.frame["how"]) == {"embedded voice nearest in pitch"}
    assert result.counts["by_embedded voice nearest in pitch"] == result.frame.height > 0
