"""After a review exactly what changed is run or scored again; counts are compared with a comparison by hand."""

import polars as pl
import pytest
from reviewed_chain import by_hand, scored_on, seen

from duplex_bench.stages import conversation, regeneration

pytestmark = pytest.mark.unit


def late_point(chain, kind):
    """The point with the longest way to it, so that there are turns before it."""
    return chain.points.filter(pl.col("kind") == kind).sort("boundary_s").row(-1, named=True)


def pause_end_later(point):
    def edit(rows):
        label = next(row for row in rows if row["kind"] == "pause" and row["start_s"] == point["boundary_s"])
        label["end_s"] -= 0.03

    return edit


def turn_becomes_backchannel(point):
    def edit(rows):
        turns = [row for row in rows if row["kind"] == "turn" and row["end_s"] < point["boundary_s"]]
        turns[0]["kind"] = "backchannel"

    return edit


def point_withdrawn(point):
    def edit(rows):
        rows[:] = [row for row in rows if not (row["kind"] == "pause" and row["start_s"] == point["boundary_s"])]

    return edit


@pytest.mark.parametrize("edit", [pause_end_later, turn_becomes_backchannel, point_withdrawn])
def test_reruns_and_rescores_are_those_of_a_comparison_by_hand(chain, edit):
    before = chain.items()
    first, _ = chain.measure(before)
    point = late_point(chain, "pause")
    chain.review(point["session_id"], edit(point))
    after = chain.items()
    found = regeneration.compare(before, after)
    told = by_hand(before, after)
    assert dict(found.frame.select("item_id", "change").iter_rows()) == told
    assert sum(found.counts.values()) == len(told)
    fresh = seen(after) - seen(before)
    assert len(found.new_stimuli) == len(fresh)
    assert regeneration.rollouts_due(chain.workspace, after, chain.card) == len(fresh)
    rolled, scored = chain.measure(after)
    assert rolled.counts["computed"] == len(fresh)
    # A score stands where neither what was heard nor what it is held against is another.
    kept = len(scored_on(before, first.frame) & scored_on(after, rolled.frame))
    assert scored.counts["reused"] == kept >= sum(change == "unchanged" for change in told.values())
    assert scored.counts["computed"] == after.height - kept
    assert regeneration.rollouts_due(chain.workspace, after, chain.card) == 0


def test_a_moved_window_keeps_the_rollout_and_an_edited_history_does_not(chain):
    before = chain.items()
    point = late_point(chain, "pause")
    chain.review(point["session_id"], pause_end_later(point))
    moved = dict(regeneration.compare(before, chain.items()).frame.select("item_id", "change").iter_rows())
    assert moved[point["point_id"]] == "rescored"
    chain.review(point["session_id"], turn_becomes_backchannel(point))
    edited = regeneration.compare(before, chain.items()).frame
    assert edited.filter(pl.col("change") == "stimulus_changed").height
    assert set(edited.filter(pl.col("change") != "unchanged")["cluster"]) <= {point["session_id"]} | set(
        edited.filter(pl.col("change").is_in(["drawn", "left"]))["cluster"]
    )


def test_a_withdrawn_point_is_replaced_in_the_draw(chain):
    before = chain.items()
    point = late_point(chain, "pause")
    chain.review(point["session_id"], point_withdrawn(point))
    found = regeneration.compare(before, chain.items()).frame
    changes = dict(found.select("item_id", "change").iter_rows())
    assert changes[point["point_id"]] == "left"
    assert "drawn" in changes.values()


def test_approving_a_session_as_it_is_changes_nothing(chain):
    before = chain.items()
    chain.measure(before)
    for session in chain.sessions["session_id"]:
        chain.review(session, lambda rows: None)
    labels = conversation.labels(chain.workspace, chain.engine).frame
    assert set(labels["source"]) == {"review"}
    after = chain.items()
    assert set(regeneration.compare(before, after).frame["change"]) == {"unchanged"}
    assert chain.measure(after)[1].counts["computed"] == 0


def test_only_a_changed_label_loses_the_rule_that_placed_it(chain):
    chain.items()
    point = late_point(chain, "pause")
    chain.review(point["session_id"], pause_end_later(point))
    labels = conversation.labels(chain.workspace, chain.engine).frame
    mine = labels.filter(pl.col("session_id") == point["session_id"])
    assert mine.filter(pl.col("rule") == "review").select("kind", "start_s").rows() == [("pause", point["boundary_s"])]


def test_a_draft_changes_nothing_and_a_first_making_draws_everything(chain):
    before = chain.items()
    point = late_point(chain, "pause")
    chain.review(point["session_id"], point_withdrawn(point), status="draft")
    assert set(regeneration.compare(before, chain.items()).frame["change"]) == {"unchanged"}
    assert regeneration.compare(None, before).counts["drawn"] == before.height


def test_the_items_asset_tells_what_it_replaced(chain):
    labels = conversation.labels(chain.workspace, chain.engine).frame
    found = conversation.candidates(chain.workspace, chain.sessions, chain.filled, labels).frame
    points = conversation.points(chain.workspace, found).frame
    made = conversation.items(chain.workspace, chain.sessions, chain.filled, labels, points)
    told = regeneration.with_changes(chain.workspace, made)
    assert told.counts["since_last_drawn"] == made.frame.height
    assert told.frame.equals(made.frame)
