"""P2 table 6 from stored tables: an approved review that differs from the engine's labels by known amounts."""

import json

import polars as pl
import pytest
from planted_run import keep

from duplex_bench.stages.report_reviews import label_review
from duplex_bench.stages.reviews import ReviewError

pytestmark = pytest.mark.unit

TURNS = [("left", "turn", 1.0, 4.0), ("right", "turn", 5.0, 9.0), ("left", "turn", 10.0, 12.0)]


@pytest.fixture
def workspace(small_workspace, tmp_path):
    made = small_workspace(tmp_path)
    engine = pl.DataFrame(
        [
            {"session_id": session, "speaker": speaker, "kind": kind, "start_s": start, "end_s": stop, "rule": "r",
             "confidence": 0.5}
            for session in ("s1", "s2") for speaker, kind, start, stop in TURNS
        ]
    )  # fmt: skip
    keep(made, "conversation", "engine_labels", engine)
    keep(
        made, "conversation", "lively_sessions", pl.DataFrame({"session_id": ["s1", "s2"], "duration_s": [60.0, 60.0]})
    )
    made.reviews_folder.mkdir(parents=True)
    return made


def review(workspace, session, labels, status="approved"):
    rows = [dict(zip(("speaker", "kind", "start_s", "end_s"), label, strict=True)) for label in labels]
    told = {"session_id": session, "status": status, "approved_by": "ada", "labels": rows}
    (workspace.reviews_folder / f"{session}.json").write_text(json.dumps(told))


def shares(table):
    return {measure: (count, of) for measure, count, of in table.frame.select("measure", "count", "of").iter_rows()}


def test_without_an_approved_review_there_is_no_table(workspace):
    assert label_review(workspace) is None
    review(workspace, "s1", TURNS, status="submitted")
    assert label_review(workspace) is None
    review(workspace, "a session of another corpus", TURNS)
    assert label_review(workspace) is None


def test_a_moved_a_dropped_and_an_untouched_turn_are_counted(workspace):
    moved = ("right", "turn", 5.0, 9.5)
    review(workspace, "s1", [TURNS[0], moved, ("left", "backchannel", 10.0, 12.0)])
    review(workspace, "s2", TURNS, status="draft")
    table = label_review(workspace)
    assert table.id == "conversation-label-review"
    assert "n = 1 approved" in table.caption
    assert shares(table) == {
        "conversations": (1.0, None),
        "minutes": (1.0, None),
        "engine turns": (3.0, None),
        "human turns": (2.0, None),
        "engine turns matched": (2.0, 3.0),
        "engine turns dropped": (1.0, 3.0),
        "engine turns that became backchannels": (1.0, 3.0),
        "matched, a boundary moved by more than 100 ms": (1.0, 2.0),
        "matched, a boundary moved by more than 250 ms": (1.0, 2.0),
        "matched, a boundary moved by more than 1000 ms": (0.0, 2.0),
        "flagged engine turns changed": (0.0, 0.0),
        "unflagged engine turns changed": (2.0, 3.0),
    }
    told = dict(table.frame.select("measure", "share").iter_rows())
    assert told["engine turns matched"] == pytest.approx(2 / 3)
    assert told["flagged engine turns changed"] is None


def test_flags_are_read_where_they_are_stored(workspace):
    review(workspace, "s1", [("left", "turn", 1.5, 4.0), TURNS[1], TURNS[2]])
    assert shares(label_review(workspace))["unflagged engine turns changed"] == (1.0, 3.0)
    of_other = {"session_id": "s2", "speaker": "right", "kind": "turn", "start_s": 5.0, "end_s": 9.0, "flag": "short",
                "reason": "words in 0.3 s"}  # fmt: skip
    mine = {**of_other, "session_id": "s1", "speaker": "left", "start_s": 1.0, "end_s": 4.0}
    keep(workspace, "conversation", "review_flags", pl.DataFrame([of_other, mine]))
    found = shares(label_review(workspace))
    assert found["flagged engine turns changed"] == (1.0, 1.0)
    assert found["unflagged engine turns changed"] == (0.0, 2.0)


def test_a_review_that_cannot_be_read_is_named(workspace):
    (workspace.reviews_folder / "s1.json").write_text("{")
    with pytest.raises(ReviewError, match=r"s1\.json: not a review"):
        label_review(workspace)
