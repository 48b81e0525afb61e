"""A window that two people reject leaves the draw and is replaced; counts are compared with a comparison by hand."""

from dataclasses import replace

import polars as pl
import pytest
from reviewed_chain import by_hand, scored_on, seen

from duplex_bench.conversation.curation import SessionCuration
from duplex_bench.review.judgements import JudgementLog, WindowCheck
from duplex_bench.review.store import ReviewStore
from duplex_bench.stages import checks, conversation, regeneration
from duplex_bench.storage.digests import draw_order
from duplex_bench.storage.serial import from_json

pytestmark = pytest.mark.unit


class Checked:
    """The chain with a review's log beside it."""

    def __init__(self, chain):
        self.chain = chain
        self.workspace = chain.workspace
        self.log = JudgementLog(ReviewStore(f"sqlite:///{chain.workspace.data / 'review.sqlite'}"))

    def verdict(self, point, person, accepted=False, reason="noise"):
        told = "" if accepted else reason
        self.log.add_check(WindowCheck(point["point_id"], point["session_id"], person, accepted, told))

    def candidates(self):
        labels = conversation.labels(self.workspace, self.chain.engine).frame
        return conversation.candidates(self.workspace, self.chain.sessions, self.chain.filled, labels).frame

    def drawn_by_hand(self, without):
        """Ids of the three of each kind with the smallest hashes among survivors that nobody turned down."""
        settings = self.workspace.profile.conversation.curation
        parts = [from_json(SessionCuration, text) for text in self.candidates()["curation"]]
        chosen = set()
        for kind in ("pause", "turn_end"):
            left = [one.point_id for part in parts for one in part.points if one.kind == kind]
            left = [name for name in left if name not in without]
            chosen |= set(draw_order(settings.seed, left)[:3])
        return chosen


@pytest.fixture
def checked(chain):
    return Checked(chain)


def test_every_rejected_window_is_replaced_by_the_next_of_its_kind(checked):
    before = checked.chain.items()
    points = checked.chain.points.to_dicts()
    assert {one["point_id"] for one in points} == checked.drawn_by_hand(())
    gone = set()
    for point in points:
        gone.add(point["point_id"])
        for person in ("Ben", "Cia"):
            checked.verdict(point, person)
        after = checked.chain.items()
        assert set(checked.chain.points["point_id"]) == checked.drawn_by_hand(gone)
        found = regeneration.compare(before, after)
        assert dict(found.frame.select("item_id", "change").iter_rows()) == by_hand(before, after)
        # What stays is neither run nor scored again.
        assert found.counts["stimulus_changed"] == found.counts["rescored"] == 0
        assert found.counts["left"] == len(gone & set(before["item_id"]))
    assert found.counts["drawn"] > 0


def test_exactly_the_replacement_is_run_and_scored(checked):
    before = checked.chain.items()
    first, _ = checked.chain.measure(before)
    point = checked.chain.points.filter(pl.col("kind") == "pause").row(0, named=True)
    for person in ("Ben", "Cia"):
        checked.verdict(point, person)
    after = checked.chain.items()
    found = regeneration.compare(before, after)
    assert (found.counts["left"], found.counts["drawn"]) == (1, 1)
    assert found.counts["unchanged"] == before.height - 1
    fresh = seen(after) - seen(before)
    assert len(fresh) == 1
    assert regeneration.rollouts_due(checked.workspace, after, checked.chain.card) == len(fresh)
    rolled, scored = checked.chain.measure(after)
    assert (rolled.counts["computed"], rolled.counts["reused"]) == (1, before.height - 1)
    kept = len(scored_on(before, first.frame) & scored_on(after, rolled.frame))
    assert (scored.counts["computed"], scored.counts["reused"]) == (1, kept)


def test_one_person_or_two_who_disagree_turn_nothing_down(checked):
    before = checked.chain.items()
    digest = conversation.observe_reviews(checked.workspace).digest
    point = checked.chain.points.row(0, named=True)
    checked.verdict(point, "Ben")
    assert checked.chain.items().equals(before)
    checked.verdict(point, "Cia")
    rejected = conversation.observe_reviews(checked.workspace)
    assert (rejected.counts["windows_rejected"], rejected.digest == digest) == (1, False)
    assert not checked.chain.items().equals(before)
    # Cia thinks again: the last verdict counts, and the draw is what it was.
    checked.verdict(point, "Cia", accepted=True)
    assert checked.chain.items().equals(before)
    assert conversation.observe_reviews(checked.workspace).digest == digest


def test_the_funnel_names_what_people_turned_down_and_adds_up(checked):
    checked.chain.items()
    plain = conversation.funnel_frame(checked.workspace, checked.candidates())
    assert "window_check" not in set(plain["stage"])
    point = checked.chain.points.filter(pl.col("kind") == "turn_end").row(0, named=True)
    for person in ("Ben", "Cia"):
        checked.verdict(point, person)
    candidates = checked.candidates()
    # Until the points are drawn anew the funnel is that of the points that stand.
    assert conversation.funnel_frame(checked.workspace, candidates).equals(plain)
    made = conversation.points(checked.workspace, candidates)
    assert made.counts["windows_rejected"] == 1
    funnel = conversation.funnel_frame(checked.workspace, candidates)
    (row,) = funnel.filter(pl.col("stage") == "window_check").iter_rows(named=True)
    assert (row["rejected_pause"], row["rejected_turn_end"], row["note"]) == (0, 1, "two people")
    assert checks.funnel_adds_up(funnel, made.frame).passed


def test_with_the_setting_off_rejections_stay_in_the_draw(checked):
    before = checked.chain.items()
    for person in ("Ben", "Cia"):
        checked.verdict(checked.chain.points.row(0, named=True), person)
    track = checked.workspace.profile.conversation
    curation = replace(track.curation, replace_rejected=False)
    profile = replace(checked.workspace.profile, conversation=replace(track, curation=curation))
    checked.chain.workspace = replace(checked.workspace, profile=profile)
    assert checked.chain.items().equals(before)


def test_a_log_that_cannot_be_read_stops_the_draw_and_says_what_to_do(checked, monkeypatch):
    monkeypatch.setenv("DUPLEX_BENCH_REVIEW_DATABASE", f"sqlite:///{checked.workspace.data}/no/such/folder/x.sqlite")
    with pytest.raises(ValueError, match="replace_rejected = false"):
        checked.chain.items()
