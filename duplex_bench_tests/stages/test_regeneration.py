"""After a review exactly what changed is run or scored again; counts are compared with a comparison by hand."""

import json

import polars as pl
import pytest

from duplex_bench.stages import conversation, evaluation, regeneration
from duplex_bench.stages.rollouts import rollouts as run_rollouts
from duplex_bench.systems.card import SystemCard

pytestmark = pytest.mark.unit

TABLE = {
    "name": "reviewed",
    "seed": 1,
    "multiparty": {"grammar": {"n_pairs": 1, "seed": 3}},
    "conversation": {
        "generator": {"n_sessions": 3, "seed": 5, "minutes": 1.2, "sample_rate_hz": 24_000},
        "corpus": {"liveliness_top_share": 1.0},
        "curation": {"n_pause": 3, "n_turn_end": 3},
    },
    "rollout": {"protocols": {"turn_end_cap_s": 4.0}},
    "statistics": {"n_resamples": 50},
}


def plain(text):
    """A stimulus as what is heard and read, whatever file it lies in."""
    told = json.loads(text)
    for name in ("live", "history_user", "history_assistant"):
        if told[name] is not None:
            told[name] = (told[name]["content"], told[name]["sample_rate_hz"])
    return json.dumps(told, sort_keys=True)


class Chain:
    """The conversation track in one workspace, made anew as often as asked."""

    def __init__(self, workspace, adapter):
        self.workspace = workspace
        self.card = SystemCard(name="early", title="early", family="policy", adapter=adapter, licence="test",
                               settings={"at_s": [2.0, 9.0, 20.0]})  # fmt: skip
        self.sessions = conversation.lively_sessions(workspace).frame
        self.filled = conversation.gap_fill(workspace, self.sessions).frame
        self.engine = conversation.engine_labels(workspace, self.sessions, self.filled).frame

    def items(self):
        labels = conversation.labels(self.workspace, self.engine).frame
        found = conversation.candidates(self.workspace, self.sessions, self.filled, labels).frame
        self.points = conversation.points(self.workspace, found).frame
        made = conversation.items(self.workspace, self.sessions, self.filled, labels, self.points)
        return made.frame

    def measure(self, items):
        given = ("conversation", items)
        rolled = run_rollouts(self.workspace, *given, self.card)
        heard = evaluation.activity(self.workspace, "conversation", rolled.frame, "early")
        said = evaluation.words(self.workspace, "conversation", rolled.frame, "early")
        frames = (rolled.frame, heard.frame, said.frame)
        judged = evaluation.judgements(self.workspace, *given, *frames, "early")
        return rolled, evaluation.measurements(self.workspace, *given, *frames, judged.frame, "early")

    def review(self, session, edit, status="approved"):
        rows = self.engine.filter(pl.col("session_id") == session)
        rows = rows.select("speaker", "kind", "start_s", "end_s").to_dicts()
        edit(rows)
        told = {"session_id": session, "status": status, "approved_by": "me", "labels": rows}
        self.workspace.reviews_folder.mkdir(parents=True, exist_ok=True)
        (self.workspace.reviews_folder / f"{session}.json").write_text(json.dumps(told))


@pytest.fixture
def chain(quick_engines, small_workspace, tmp_path):
    return Chain(small_workspace(tmp_path, TABLE), quick_engines)


def by_hand(before, after):
    """Change of every item, from what is written in the two tables and nothing else."""
    old, new = ({row["item_id"]: row for row in frame.iter_rows(named=True)} for frame in (before, after))
    told = {}
    for item_id in old.keys() | new.keys():
        if item_id not in new:
            told[item_id] = "left"
        elif item_id not in old:
            told[item_id] = "drawn"
        elif plain(old[item_id]["stimulus"]) != plain(new[item_id]["stimulus"]):
            told[item_id] = "stimulus_changed"
        else:
            alike = json.loads(old[item_id]["reference"]) == json.loads(new[item_id]["reference"])
            told[item_id] = "unchanged" if alike else "rescored"
    return told


def seen(items):
    return {plain(text) for text in items["stimulus"]}


def scored_on(items, rollouts):
    """Everything that a score of an item rests on: its reference, and what a listener heard of its rollout."""
    heard = {
        row["item_id"]: (row["listener_audio"], row["outcome"], row["reason"], row["timeline_s"])
        for row in rollouts.iter_rows(named=True)
    }
    return {
        (
            row["item_id"],
            row["condition"],
            json.dumps(json.loads(row["reference"]), sort_keys=True),
            heard[row["item_id"]],
        )
        for row in items.iter_rows(named=True)
    }


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
