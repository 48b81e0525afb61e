import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.interruptions import find_interruptions, interruption_measurements
from duplex_bench.conversation.label_types import Label
from duplex_bench.conversation.measures import MeasureError

pytestmark = pytest.mark.unit


def test_the_system_stops():
    (one,) = find_interruptions([(5.0, 8.0)], [(2.0, 5.6)])
    assert (one.by, one.kind, one.stopped) == ("user", "interruption", True)
    assert one.stop_latency_s == pytest.approx(0.6)
    assert one.overlap_s == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("system", "resumed"),
    [([(2.0, 9.0)], False), ([(2.0, 7.1)], False), ([(2.0, 5.6), (6.5, 9.0)], True)],
    ids=["speaks through", "stops too late", "begins again"],
)
def test_the_system_does_not_give_way(system, resumed):
    one = find_interruptions([(5.0, 8.0)], system)[0]
    assert (one.stopped, one.stop_latency_s, one.resumed) == (False, None, resumed)


def test_who_starts_first_is_interrupted():
    found = find_interruptions([(1.0, 4.0)], [(3.5, 6.0)])
    assert [(one.by, one.at_s, one.overlap_s) for one in found] == [("system", 3.5, 0.5)]
    assert find_interruptions([(1.0, 4.0)], [(1.0, 6.0)]) == []
    assert find_interruptions([(1.0, 4.0)], [(4.0, 6.0)]) == []


def test_a_gap_of_the_gate_is_no_new_start():
    found = find_interruptions([(5.0, 6.0), (6.2, 8.0)], [(2.0, 9.0)])
    assert len(found) == 1


def test_backchannels_by_rule_and_by_label():
    user, system = [(5.0, 5.4)], [(2.0, 9.0)]
    assert find_interruptions(user, system)[0].kind == "backchannel"
    three = [(5.0, 5.1), (5.1, 5.2), (5.2, 5.3)]
    assert find_interruptions(user, system, user_word_times_s=three)[0].kind == "interruption"
    assert find_interruptions([(5.0, 6.1)], system)[0].kind == "interruption"
    turn = [Label("left", "turn", 5.0, 5.4, "r", 1.0)]
    assert find_interruptions(user, system, labels=turn)[0].kind == "interruption"
    back = [Label("left", "backchannel", 5.0, 5.4, "r", 1.0)]
    assert find_interruptions(user, system, labels=back)[0].kind == "backchannel"
    assert find_interruptions(user, system, labels=back, user_side="right")[0].kind == "interruption"


def test_measurements_carry_the_kind():
    found = find_interruptions([(5.0, 8.0), (12.0, 12.4), (20.0, 22.0)], [(2.0, 5.6), (10.0, 14.0), (21.0, 23.0)])
    scores = {(one.window_id, one.metric): one.score.value for one in interruption_measurements("rec", found)}
    assert scores == {
        ("interruption-0", "interruption_stopped"): 1.0,
        ("interruption-0", "interruption_stop_latency"): pytest.approx(0.6),
        ("interruption-1", "backchannel_kept_on"): 1.0,
        ("interruption-2", "system_interruption_overlap"): pytest.approx(1.0),
    }


def test_no_stop_has_a_reason():
    measured = interruption_measurements("rec", find_interruptions([(5.0, 8.0)], [(2.0, 9.0)]))
    assert [one.score.reason for one in measured if one.metric == "interruption_stop_latency"] == ["did not stop"]


def test_bad_spans_are_named():
    with pytest.raises(MeasureError, match="user_s"):
        find_interruptions([(2.0, 1.0)], [])


spans = st.sets(st.integers(0, 400), max_size=10).map(
    lambda edges: [(a / 8, b / 8) for a, b in zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False)]
)


@given(spans, spans)
def test_exchanging_the_parties_exchanges_who_interrupts(user, system):
    plain = find_interruptions(user, system)
    swapped = find_interruptions(system, user)
    other = {"user": "system", "system": "user"}
    assert [(other[one.by], one.at_s, one.stopped, one.overlap_s) for one in swapped] == [
        (one.by, one.at_s, one.stopped, one.overlap_s) for one in plain
    ]
    assert all(0 < one.overlap_s <= one.until_s - one.at_s for one in plain)
