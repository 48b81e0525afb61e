"""The review over a run's tables, and its approved labels back in the run."""

import numpy as np
import polars as pl
import pytest

from duplex_bench.conversation.label_types import Word
from duplex_bench.conversation.points import Point
from duplex_bench.conversation.sessions import Session, Side
from duplex_bench.review.access import Person, ReviewSettings
from duplex_bench.review.edits import Change, RegionData
from duplex_bench.review.store import Edit
from duplex_bench.stages import conversation
from duplex_bench.stages.review_source import open_review
from duplex_bench.stages.session_audio import StoredAudio
from duplex_bench.stages.workspace import open_workspace
from duplex_bench.storage.frames import write_frame
from duplex_bench.storage.serial import to_json

pytestmark = pytest.mark.unit

RATE_HZ = 8000
FLAGS_SCHEMA = {
    "session_id": pl.String, "speaker": pl.String, "kind": pl.String, "start_s": pl.Float64, "end_s": pl.Float64,
    "flag": pl.String, "reason": pl.String,
}  # fmt: skip


@pytest.fixture
def run(tmp_path):
    workspace = open_workspace("demo", tmp_path)
    sound = np.zeros((10 * RATE_HZ, 2), dtype=np.int16)
    sound[RATE_HZ : 2 * RATE_HZ, 1] = 1000
    source = workspace.blobs.put_audio(sound, RATE_HZ)
    word = Word("hello", 1.0, 1.5)
    session = Session(
        "V1/odd",
        Side("l.wav", 0, ((1.0, 2.0),), (word,), "a"),
        Side("r.wav", 1, (), (), "b"),
        RATE_HZ,
        10.0,
        "CC BY 4.0",
    )
    rows = {
        "session_id": "V1/odd", "selected": True, "duration_s": 10.0, "licence": "CC BY 4.0", "language": "en",
        "session": to_json(session), "audio": to_json(StoredAudio(source, len(sound), (), ())),
    }  # fmt: skip
    engine = pl.DataFrame(
        [
            ("V1/odd", "left", "turn", 1.0, 2.0592234567891, "nobody", 0.9, "engine"),
            ("V1/odd", "right", "turn", 3.0, 3.2, "nobody", 0.9, "engine"),
            ("other", "left", "turn", 1.0, 2.0, "nobody", 0.9, "engine"),
        ],
        schema=conversation.LABELS_SCHEMA,
        orient="row",
    )
    flags = [("V1/odd", "right", "turn", 3.0, 3.2, "short_lexical_turn", "200 ms")]
    filled = [("V1/odd", "right", "uh", 3.0, 3.2)]
    tables = {
        "lively_sessions": pl.DataFrame([rows, {**rows, "session_id": "no", "selected": False}]),
        "gap_fill": pl.DataFrame(filled, schema=conversation.WORDS_SCHEMA, orient="row"),
        "engine_labels": engine,
        "review_flags": pl.DataFrame(flags, schema=FLAGS_SCHEMA, orient="row"),
    }
    for name, frame in tables.items():
        write_frame(workspace.store, workspace.table_key(("conversation", name), None), frame)
    return workspace, engine


def open_desk(workspace):
    return open_review(workspace, ReviewSettings(administrators=frozenset({"Ada"})))


def test_a_run_that_has_not_come_so_far_says_what_to_run(tmp_path):
    with pytest.raises(ValueError, match="run --profile demo --track conversation"):
        open_desk(open_workspace("demo", tmp_path))


def test_sessions_words_flags_and_sound_of_a_run(run):
    workspace, _ = run
    material = open_desk(workspace).material
    (entry,) = material.sessions()
    assert (entry.session_id, entry.n_flags, entry.n_windows) == ("V1/odd", 1, 0)
    found = material.session("V1/odd")
    assert [label.kind for label in found.labels] == ["turn", "turn"]
    assert [(word.text, word.gap_filled) for word in found.words["right"]] == [("uh", True)]
    samples, rate = material.audio("V1/odd")
    assert (samples.shape, rate) == ((10 * RATE_HZ, 2), RATE_HZ)
    with pytest.raises(KeyError):
        material.session("no")


def test_points_drawn_later_are_seen_without_a_restart(run):
    workspace, _ = run
    material = open_desk(workspace).material
    point = Point("p1", "V1/odd", "pause", "left", 1.0, 2.0, 2.5, 3.0, None, "", 0, "r", 1.0, 0.5)
    frame = pl.DataFrame([{"point": to_json(point)}])
    write_frame(workspace.store, workspace.table_key(("conversation", "points"), None), frame)
    assert [(one.start_s, one.end_s) for one in material.windows()] == [(2.0, 2.5)]
    assert material.sessions()[0].n_windows == 1


def test_approved_labels_take_the_engine_s_place_in_the_next_run(run):
    workspace, engine = run
    desk, ben, ada = open_desk(workspace), Person("Ben", False), Person("Ada", True)
    copy = desk.open_copy(ben, "V1/odd", "mine")
    region = RegionData(region_id="e1", speaker="right", kind="backchannel", start_s=3.0, end_s=3.3)
    desk.edit(ben, copy["copy_id"], Edit("an-edit-1", 0, "relabel", (Change(op="change", region=region),)))
    before = conversation.observe_reviews(workspace).digest
    desk.decide(ben, copy["copy_id"], 1, "submit", "")
    assert conversation.observe_reviews(workspace).digest == before
    desk.decide(ada, copy["copy_id"], 1, "approve", "")
    assert conversation.observe_reviews(workspace).digest != before
    result = conversation.labels(workspace, engine)
    rows = {(one["session_id"], one["kind"], one["end_s"], one["source"]) for one in result.frame.iter_rows(named=True)}
    assert rows == {
        ("V1/odd", "turn", 2.0592234567891, "review"),
        ("V1/odd", "backchannel", 3.3, "review"), ("other", "turn", 2.0, "engine"),
    }  # fmt: skip
    desk.decide(ada, copy["copy_id"], 1, "return", "look again")
    assert conversation.observe_reviews(workspace).digest == before


def test_every_table_is_written_as_csv(run, tmp_path):
    from duplex_bench.cli.review import export_review

    workspace, _ = run
    desk, ben, ada = open_desk(workspace), Person("Ben", False), Person("Ada", True)
    copy = desk.open_copy(ben, "V1/odd", "mine")
    desk.decide(ben, copy["copy_id"], 0, "submit", "")
    desk.decide(ada, copy["copy_id"], 0, "approve", "")
    assert export_review(workspace.data, "demo", None, tmp_path / "out") == 0
    table = pl.read_csv(tmp_path / "out" / "engine-agreement.csv")
    assert table.filter(pl.col("measure") == "engine turns matched")["share"].to_list() == [1.0]
    assert (tmp_path / "out" / "listeners.csv").read_text() == ""
