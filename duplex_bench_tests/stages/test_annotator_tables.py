"""Agreement of annotators in the report, from a review's database that two people and an administrator wrote."""

import polars as pl
import pytest

from duplex_bench.review.access import Person, ReviewSettings
from duplex_bench.review.edits import Remove
from duplex_bench.review.judgements import WindowCheck
from duplex_bench.review.store import Edit
from duplex_bench.stages import conversation, human_windows
from duplex_bench.stages.annotator_tables import annotator_tables
from duplex_bench.stages.review_source import open_review
from duplex_bench.storage.frames import write_frame

pytestmark = pytest.mark.unit

BEN, CIA = Person("Ben", False), Person("Cia", False)


@pytest.fixture
def desk(chain):
    """The review over a run's tables."""
    chain.items()
    stored = {
        "lively_sessions": chain.sessions, "gap_fill": chain.filled, "engine_labels": chain.engine,
        "points": chain.points,
    }  # fmt: skip
    stored["review_flags"] = conversation.review_flags(
        chain.workspace, chain.engine, chain.filled, chain.sessions
    ).frame
    for name, frame in stored.items():
        write_frame(chain.workspace.store, chain.workspace.table_key(("conversation", name), None), frame)
    return open_review(chain.workspace, ReviewSettings())


def hand_in(desk, person, session, without=0):
    """A person's copy of the engine's labels, handed in without its first turns; how many turns there were."""
    copy_id = desk.open_copy(person, session, "mine")["copy_id"]
    turns = [one for one in desk.store.copy(copy_id).state.regions if one.kind == "turn"]
    gone = tuple(Remove(op="remove", region_id=turn.region_id) for turn in turns[:without])
    if gone:
        desk.edit(person, copy_id, Edit(f"{person.name}-edit-1", 0, "delete", gone))
    desk.decide(person, copy_id, int(bool(gone)), "submit", "")
    return len(turns)


def tables(workspace):
    return {table.id: table.frame for table in annotator_tables(workspace)}


def test_without_a_review_there_is_no_table(chain):
    assert annotator_tables(chain.workspace) == []


def test_two_people_s_labels_frames_and_windows_are_compared_without_their_names(chain, desk):
    session = chain.sessions["session_id"][0]
    assert annotator_tables(chain.workspace) == []
    before = human_windows.state(chain.workspace)
    n_turns = hand_in(desk, BEN, session)
    assert annotator_tables(chain.workspace) == []
    hand_in(desk, CIA, session, without=2)
    assert human_windows.state(chain.workspace) != before
    points = chain.points.to_dicts()
    for number, point in enumerate(points):
        for person in (BEN, CIA):
            accepted = number % 2 == 0 or (person is BEN and number == 1)
            told = "" if accepted else "noise"
            desk.log.add_check(WindowCheck(point["point_id"], point["session_id"], person.name, accepted, told))
    found = tables(chain.workspace)
    turns = found["conversation-annotators"].filter((pl.col("kind") == "turn") & (pl.col("tolerance_s") == 0.1))
    (row,) = turns.iter_rows(named=True)
    # All of the fewer labels match: F1 is twice the matches over both people's labels.
    assert row["f1"] == pytest.approx(2 * (n_turns - 2) / (2 * n_turns - 2))
    assert {row["n_first"], row["n_second"]} == {n_turns, n_turns - 2}
    (frames,) = found["conversation-annotator-frames"].iter_rows(named=True)
    assert 0 < frames["kappa"] < 1
    (windows,) = found["conversation-window-agreement"].iter_rows(named=True)
    assert (windows["n_both"], windows["n_agree"]) == (len(points), len(points) - 1)
    assert windows["kappa"] == pytest.approx(2 / 3)
    for frame in found.values():
        assert set(frame["first"]) | set(frame["second"]) == {"person 1", "person 2"}


def test_a_draft_is_compared_with_nobody(chain, desk):
    session = chain.sessions["session_id"][0]
    hand_in(desk, BEN, session)
    before = human_windows.state(chain.workspace)
    desk.open_copy(CIA, session, "mine")
    assert annotator_tables(chain.workspace) == []
    assert human_windows.state(chain.workspace) == before
