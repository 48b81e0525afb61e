import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.flags import Flag
from duplex_bench.review.agreement import (
    ReviewedSession,
    engine_agreement,
    frame_kappa,
    pair_agreement,
    window_agreement,
    window_status,
)
from duplex_bench.review.errors import ReviewInputError
from duplex_bench.review.judgements import ListenerAnswer, WindowCheck
from duplex_bench.review.regions import Region

pytestmark = pytest.mark.unit


def region(speaker, kind, start_s, end_s):
    return Region(f"{speaker}{kind}{start_s}", speaker, kind, start_s, end_s)


def table(*sessions):
    return {row.measure: row for row in engine_agreement(sessions)}


def test_table_6_counts_that_can_be_made_on_paper():
    engine = (
        region("left", "turn", 0.0, 2.0),  # merged with the next one: matched, moved by 3 s
        region("left", "turn", 3.0, 5.0),  # merged: moved by 3 s
        region("right", "turn", 6.0, 8.0),  # moved by 150 ms, flagged
        region("right", "turn", 9.0, 9.8),  # became a backchannel, flagged
        region("left", "turn", 10.0, 12.0),  # as it was
        region("left", "turn", 14.0, 16.0),  # gone
        region("left", "turn", 18.0, 20.0),  # covered by exactly half: not more than half, so dropped
    )
    human = (
        region("left", "turn", 0.0, 5.0),
        region("right", "turn", 6.15, 8.0),
        region("right", "backchannel", 9.0, 9.8),
        region("left", "turn", 10.0, 12.0),
        region("right", "turn", 14.0, 16.0),
        region("left", "turn", 19.0, 20.0),
    )
    flags = (Flag("right", "turn", 6.0, 8.0, "f", ""), Flag("right", "turn", 9.0, 9.8, "f", ""))
    found = table(ReviewedSession("s", 120.0, engine, human, flags))
    assert found["minutes"].count == 2
    assert found["engine turns"].count == 7
    assert found["human turns"].count == 5
    assert (found["engine turns matched"].count, found["engine turns matched"].total) == (4, 7)
    assert found["engine turns dropped"].count == 3
    assert found["engine turns that became backchannels"].count == 1
    assert [found[f"matched, a boundary moved by more than {ms} ms"].count for ms in (100, 250, 1000)] == [3, 2, 2]
    assert (found["flagged engine turns changed"].count, found["flagged engine turns changed"].total) == (2, 2)
    assert (found["unflagged engine turns changed"].count, found["unflagged engine turns changed"].total) == (4, 5)
    assert found["conversations"].share is None


def test_nothing_changed_and_nothing_reviewed():
    turns = (region("left", "turn", 0.0, 2.0),)
    same = table(ReviewedSession("s", 60.0, turns, turns))
    assert same["engine turns matched"].share == 1
    assert same["unflagged engine turns changed"].share == 0
    assert same["flagged engine turns changed"].share is None
    assert table()["engine turns matched"].share is None


def test_two_people_by_kind_and_by_time():
    ann = [region("left", "turn", 0.0, 2.0), region("right", "backchannel", 1.0, 1.4)]
    ben = [region("left", "turn", 0.0, 2.2), region("right", "turn", 5.0, 6.0)]
    rows = {(row.kind, row.tolerance_s): row.f1 for row in pair_agreement("s", {"ben": ben, "ann": ann})}
    assert rows[("turn", 0.25)] == pytest.approx(2 / 3)
    assert rows[("turn", 0.1)] == 0
    assert rows[("backchannel", 0.1)] == 0
    assert frame_kappa(ann, ann, 10.0) == 1
    assert frame_kappa(ann, ben, 10.0) == frame_kappa(ben, ann, 10.0) < 1
    assert math.isnan(frame_kappa([], [], 10.0))


def test_frame_kappa_against_a_table_by_hand():
    # Of 2 x 100 frames: both turn 40, only first 10, only second 10, neither 140.
    first, second = [region("left", "turn", 0.0, 0.5)], [region("left", "turn", 0.1, 0.6)]
    chance = (50 * 50 + 150 * 150) / 200**2
    assert frame_kappa(first, second, 1.0) == pytest.approx((180 / 200 - chance) / (1 - chance))


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_window_kappa_is_that_of_its_definition(pairs):
    checks = []
    for number, (a, b) in enumerate(pairs):
        for person, accepted in (("ann", a), ("ben", b)):
            checks.append(WindowCheck(f"p{number}", "s", person, accepted, "" if accepted else "off"))
    (found,) = window_agreement(checks)
    said = np.array(pairs)
    observed = (said[:, 0] == said[:, 1]).mean()
    p, q = said.mean(axis=0)
    chance = p * q + (1 - p) * (1 - q)
    assert (found.n_both, found.n_agree) == (len(pairs), int((said[:, 0] == said[:, 1]).sum()))
    if chance < 1:
        assert found.kappa == pytest.approx((observed - chance) / (1 - chance))
    else:
        assert math.isnan(found.kappa)


def test_a_window_is_accepted_by_two_and_split_by_one_against_another():
    yes, also = WindowCheck("p", "s", "ann", True, ""), WindowCheck("p", "s", "ben", True, "")
    no = WindowCheck("p", "s", "cem", False, "off")
    assert window_status([yes], "p") == "open"
    assert window_status([yes, also], "p") == "accepted"
    assert window_status([yes, also, no], "p") == "split"
    assert window_status([no], "p") == "open"
    assert window_status([yes, also], "q") == "open"


def test_answers_that_contradict_themselves_are_refused():
    with pytest.raises(ReviewInputError, match="needs a reason"):
        WindowCheck("p", "s", "ann", False, "  ")
    with pytest.raises(ReviewInputError, match="press the key"):
        ListenerAnswer("p", "s", "ann", True, None, "")
    with pytest.raises(ReviewInputError, match="no moment of speaking"):
        ListenerAnswer("p", "s", "ann", False, 0.5, "")
    with pytest.raises(ReviewInputError, match="answers end"):
        ListenerAnswer("p", "s", "ann", True, 5.1, "")
