import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.measures import MeasureError
from duplex_bench.conversation.sensitivity import (
    BoundaryShift,
    StoredPause,
    stored_pause,
    takeover_by_length,
    takeover_by_tercile,
    takeover_curve,
    takeover_under_shifts,
)

pytestmark = pytest.mark.unit


def pause(onset_s, length_s=1.0, name="p", ranking=0.5):
    """A pause from 5 s; the system speaks for half a second, ``onset_s`` after its start."""
    start = 5.0 + onset_s
    return StoredPause(
        name, f"c-{name}", (5.0, 5.0 + length_s), ranking, [(start, start + 0.5)], [(start, start + 0.4)]
    )


def test_shifts_move_what_they_should():
    # Words inside, just after the end, just before the end, under way and over 200 ms into the pause.
    pauses = [pause(0.5), pause(1.1), pause(0.9), pause(-0.3)]
    rates = {row.group: row.rate for row in takeover_under_shifts(pauses)}
    assert rates == {"as labelled": 0.75, "end -250 ms": 0.5, "end +250 ms": 1.0, "start +250 ms": 0.5}


def test_a_pause_without_length_leaves_the_row():
    rows = takeover_under_shifts([pause(0.1, 0.2), pause(0.5)], [BoundaryShift("end -250 ms", 0.0, -0.25)])
    assert (rows[0].n, rows[0].rate, rows[0].clusters) == (1, 1.0, ("c-p",))


def test_bins_by_length_with_a_reason_below_the_minimum():
    pauses = [pause(0.7, 0.6, f"a{n}") for n in range(10)] + [pause(0.7, 0.8, f"b{n}") for n in range(10)]
    rows = takeover_by_length([*pauses, pause(1.0, 3.0, "c")])
    assert [(row.group, row.n, row.rate) for row in rows] == [
        ("0.6 to 0.8 s", 10, 0.0),
        ("0.8 to 1 s", 10, 1.0),
        ("1 to 1.5 s", 0, None),
        ("1.5 to 2.5 s", 0, None),
        ("2.5 s and more", 1, None),
    ]
    assert rows[-1].reason == "1 pauses, at least 10 wanted"
    assert rows[-1].high is None


def test_a_pause_that_sample_rounding_shortens_stays_in_its_bin():
    edge = StoredPause("p", "c", (5.0, 5.6 - 1 / 24_000), 0.5, [], [])
    assert takeover_by_length([edge], minimum_n=1)[0].n == 1


def test_lengths_outside_the_bins_and_bad_edges_are_named():
    with pytest.raises(ValueError, match="pause p is outside"):
        takeover_by_length([pause(0.0, 0.5)])
    with pytest.raises(ValueError, match="above the one before"):
        takeover_by_length([pause(0.0)], (1.0, 1.0))


def test_terciles_of_the_ranking():
    pauses = [pause(0.5 if n < 3 else 2.0, name=f"p{n}", ranking=n / 10) for n in range(9)]
    rows = takeover_by_tercile(pauses[::-1], minimum_n=1)
    assert [(row.n, row.rate, row.low, row.high) for row in rows] == [
        (3, 1.0, 0.0, 0.2),
        (3, 0.0, 0.3, 0.5),
        (3, 0.0, 0.6, 0.8),
    ]
    assert [row.n for row in takeover_by_tercile(pauses[:1])] == [0, 1, 0]


def test_stored_pauses_come_from_items(make_item, timed):
    stored = stored_pause(make_item("pause", ranking=0.7), [(5.5, 6.0)], timed(("so", 5.5, 5.8), ("um", None, None)))
    assert (stored.pause_s, stored.ranking, stored.word_times_s) == ((5.0, 6.0), 0.7, [(5.5, 5.8)])
    with pytest.raises(MeasureError, match="turn_end"):
        stored_pause(make_item("turn_end"), [], [])


@given(st.lists(st.tuples(st.integers(-20, 60), st.integers(6, 40)), min_size=1, max_size=12))
def test_takeovers_only_grow_with_the_pause_end(cases):
    pauses = [pause(onset / 10, length / 10, f"p{n}") for n, (onset, length) in enumerate(cases)]
    rates = [row.rate for row in takeover_curve(pauses, [0.0, 0.25, 0.5, 1.0])]
    assert rates == sorted(rates)
