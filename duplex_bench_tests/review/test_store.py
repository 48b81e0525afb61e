import sqlite3
import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DatabaseError

from duplex_bench.review.edits import Add, Change, Mark, RegionData, Remove
from duplex_bench.review.errors import ConflictError, DatabaseLostError, NotAllowedError, ReviewInputError, UnknownError
from duplex_bench.review.regions import Region
from duplex_bench.review.store import OPEN, Edit, ReviewStore

pytestmark = pytest.mark.unit

REGIONS = [Region("e0", "left", "turn", 1.0, 2.0), Region("e1", "right", "turn", 3.0, 4.0)]


def add(name, start_s, end_s, kind="turn", speaker="left"):
    return Add(op="add", region=RegionData(region_id=name, speaker=speaker, kind=kind, start_s=start_s, end_s=end_s))


def change(name, start_s, end_s, kind="turn", speaker="left"):
    region = RegionData(region_id=name, speaker=speaker, kind=kind, start_s=start_s, end_s=end_s)
    return Change(op="change", region=region)


def edit(number, version, *operations):
    return Edit(f"edit-{number:08d}", version, "drag", operations)


@pytest.fixture
def copy(store):
    return store.open_copy("s1", "Ben", "engine", REGIONS)


def test_a_copy_is_made_once_and_opened_again(store, copy):
    assert copy.version == 0
    assert copy.status == "draft"
    again = store.open_copy("s1", "Ben", "engine", [])
    assert again == copy
    assert store.open_copy("s1", "Cem", "engine", []).copy_id != copy.copy_id


def test_an_edit_changes_regions_and_stands_in_the_history(store, copy):
    after = store.edit(copy.copy_id, "Ben", edit(1, 0, change("e0", 1.0, 2.25)), 10.0)
    assert after.version == 1
    assert after.state.regions[0] == Region("e0", "left", "turn", 1.0, 2.25)
    (row,) = store.history(copy.copy_id)
    assert (row["version"], row["person"], row["action"]) == (1, "Ben", "drag")
    assert row["operations"][0]["region"]["end_s"] == 2.25
    assert store.history(copy.copy_id, after_version=1) == []


def test_an_edit_on_an_old_version_is_a_conflict_and_changes_nothing(store, copy):
    store.edit(copy.copy_id, "Ben", edit(1, 0, Remove(op="remove", region_id="e1")), 10.0)
    with pytest.raises(ConflictError) as found:
        store.edit(copy.copy_id, "Cem", edit(2, 0, change("e0", 0.5, 2.0)), 10.0)
    assert found.value.current_version == 1
    assert store.copy(copy.copy_id).state.regions == (REGIONS[0],)
    assert len(store.history(copy.copy_id)) == 1


def test_an_edit_sent_twice_counts_once(store, copy):
    first = store.edit(copy.copy_id, "Ben", edit(1, 0, add("n1", 5.0, 6.0)), 10.0)
    again = store.edit(copy.copy_id, "Ben", edit(1, 0, add("n1", 5.0, 6.0)), 10.0)
    assert again == first
    assert len(store.history(copy.copy_id)) == 1


def test_of_many_at_once_exactly_one_gets_each_version(tmp_path):
    store = ReviewStore(f"sqlite:///{tmp_path / 'busy.sqlite'}", busy_timeout_s=20)
    copy = store.open_copy("s1", "together", "engine", [])
    stored, conflicts = [], []
    start = threading.Barrier(8)

    def work(number):
        start.wait()
        for step in range(4):
            name = f"n{number}-{step}"
            at = 1.0 + number * 4 + step
            while True:
                version = store.copy(copy.copy_id).version
                try:
                    store.edit(
                        copy.copy_id,
                        f"p{number}",
                        Edit(f"id-{name}-long", version, "add", (add(name, at, at + 0.5),)),
                        99.0,
                    )
                    stored.append(name)
                    break
                except ConflictError:
                    conflicts.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    final = store.copy(copy.copy_id)
    assert final.version == 32 == len(stored)
    assert {region.region_id for region in final.state.regions} == set(stored)
    assert [row["version"] for row in store.history(copy.copy_id)] == list(range(1, 33))


@pytest.mark.parametrize(
    ("operation", "told"),
    [
        (change("e0", 2.0, 1.0), "ends before it starts"),
        (change("e0", 1.0, 11.0), "outside the recording"),
        (add("n1", 1.5, 2.5), "overlaps row"),
        (Remove(op="remove", region_id="gone"), "no longer there"),
        (add("e0", 5.0, 6.0), "there already"),
    ],
)
def test_an_edit_that_breaks_a_rule_is_refused_whole(store, copy, operation, told):
    with pytest.raises(ReviewInputError, match=told):
        store.edit(copy.copy_id, "Ben", edit(1, 0, add("n9", 7.0, 8.0), operation), 10.0)
    assert store.copy(copy.copy_id) == copy
    assert store.history(copy.copy_id) == []


def test_flags_are_marked_and_opened_again(store, copy):
    after = store.edit(copy.copy_id, "Ben", edit(1, 0, Mark(op="flag", flag="f", verdict="kept")), 10.0)
    assert after.state.flags == {"f": "kept"}
    again = store.edit(copy.copy_id, "Ben", edit(2, 1, Mark(op="flag", flag="f", verdict="open")), 10.0)
    assert again.state.flags == {}


@pytest.mark.parametrize("statement", ["UPDATE edits SET person='x'", "DELETE FROM edits", "DELETE FROM decisions"])
def test_the_history_can_only_be_added_to(store, copy, statement):
    store.edit(copy.copy_id, "Ben", edit(1, 0, add("n1", 5.0, 6.0)), 10.0)
    store.decide(copy.copy_id, 1, "Ben", "submitted", "", OPEN)
    with pytest.raises(DatabaseError, match="only be added to"), store.engine.begin() as connection:
        connection.execute(text(statement))
    assert len(store.history(copy.copy_id)) == len(store.decisions(copy.copy_id)) == 1


def test_a_decision_needs_the_version_that_was_seen(store, copy):
    store.edit(copy.copy_id, "Ben", edit(1, 0, add("n1", 5.0, 6.0)), 10.0)
    with pytest.raises(ConflictError):
        store.decide(copy.copy_id, 0, "Ada", "approved", "", frozenset({"draft"}))
    with pytest.raises(NotAllowedError, match="is draft"):
        store.decide(copy.copy_id, 1, "Ada", "approved", "", frozenset({"submitted"}))


def test_approving_supersedes_the_earlier_approved_copy(store, copy):
    other = store.open_copy("s1", "Cem", "engine", REGIONS)
    elsewhere = store.open_copy("s2", "Cem", "engine", REGIONS)
    for one in (copy, elsewhere, other):
        store.decide(one.copy_id, 0, "Ada", "approved", "", OPEN)
    assert [store.copy(one.copy_id).status for one in (copy, other, elsewhere)] == [
        "superseded",
        "approved",
        "approved",
    ]
    with pytest.raises(NotAllowedError, match="approved"):
        store.edit(other.copy_id, "Cem", edit(9, 0, add("n1", 5.0, 6.0)), 10.0)


def test_a_decision_that_cannot_be_published_is_not_made(store, copy):
    def full(_):
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        store.decide(copy.copy_id, 0, "Ada", "approved", "", OPEN, full)
    assert store.copy(copy.copy_id).status == "draft"
    assert store.decisions(copy.copy_id) == []


def test_a_database_that_does_not_answer_loses_nothing(store, copy, tmp_path):
    blocker = sqlite3.connect(tmp_path / "review.sqlite", isolation_level=None)
    blocker.execute("BEGIN EXCLUSIVE")
    with pytest.raises(DatabaseLostError, match="nothing of this step was stored"):
        store.edit(copy.copy_id, "Ben", edit(1, 0, add("n1", 5.0, 6.0)), 10.0)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert store.edit(copy.copy_id, "Ben", edit(1, 0, add("n1", 5.0, 6.0)), 10.0).version == 1


def test_unknown_copies_and_urls_say_what_to_do():
    with pytest.raises(ValueError, match="sqlite:///FILE"):
        ReviewStore("no url at all")
    with pytest.raises(UnknownError, match="list of sessions"):
        ReviewStore("sqlite://", busy_timeout_s=1).copy(5)
