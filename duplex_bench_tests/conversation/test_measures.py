"""Pauses drawn as timelines: one character is 100 ms."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.conversation.measures import MeasureError, classify_pause

pytestmark = pytest.mark.unit

STEP_S = 0.1


def spans(row: str, mark: str) -> list[tuple[float, float]]:
    """Runs of ``mark`` in a row of 100 ms characters; ``|`` in a run of words ends a word."""
    found, start = [], None
    for place, sign in enumerate([*row, " "]):
        if sign == mark and start is None:
            start = place
        elif sign != mark and start is not None:
            found.append((round(start * STEP_S, 6), round(place * STEP_S, 6)))
            start = None
    return found


def outcome_of(pause: str, gate: str, words: str = "", **settings):
    (region,) = spans(pause, "p")
    return classify_pause(spans(gate, "#"), spans(words, "w"), region, **settings)


#                  0         1         2         3
PAUSE = "          pppppppppp          "


@pytest.mark.parametrize(
    ("name", "gate", "words", "outcome", "latency_s"),
    [
        ("nothing", "", "", "silent", None),
        ("words inside", "             ####    ", "             www     ", "takeover", 0.3),
        ("word straddles the pause start", "        ######      ", "         www        ", "takeover", 0.0),
        ("interval under way, first word later", "        ##########  ", "             ww     ", "takeover", 0.3),
        ("its word after the pause", "                  ######## ", "                      ww ", "takeover", 1.2),
        ("from the first instant of the pause", "          ####      ", "          ww        ", "takeover", 0.0),
        ("ends where the pause starts", "     #####           ", "     ww              ", "silent", None),
        ("begins where the pause ends", "                    ####", "                    ww", "after", None),
        ("no words in the pause", "            ####    ", "", "wordless", None),
        ("no words after the pause", "                      ####", "", "wordless", None),
        ("breath, then words", "            ###         ####", "                        ww ", "after", None),
        ("a word where the gate is shut", "", "             www ", "silent", None),
        ("a word beside noise", "               ### ", "            ww    ", "wordless", None),
        ("words before only, breath inside", "   ####      ###   ", "   www            ", "wordless", None),
    ],
)  # fmt: skip
def test_outcome(name, gate, words, outcome, latency_s):
    result = outcome_of(PAUSE, gate, words)
    assert result.outcome == outcome
    assert result.takeover_latency_s == (None if latency_s is None else pytest.approx(latency_s))


def test_speech_wholly_before_the_pause_is_flagged_and_not_counted():
    result = outcome_of(PAUSE, "   #### ", "   www  ")
    assert (result.outcome, result.spoke_before, result.already_speaking) == ("silent", True, False)


def test_speech_under_way_is_flagged():
    result = outcome_of(PAUSE, "       ######", "       ww   ")
    assert (result.outcome, result.already_speaking, result.takeover_latency_s) == ("takeover", True, 0.0)


def test_a_word_in_two_intervals_bears_both():
    # One long word over a dip of the gate: its onset lies before the pause, so the takeover has no latency.
    result = classify_pause([(0.5, 0.8), (1.2, 1.5)], [(0.6, 1.4)], (1.0, 2.0))
    assert (result.outcome, result.takeover_latency_s) == ("takeover", 0.0)


def test_first_of_two_takeovers_gives_the_latency():
    result = classify_pause([(1.2, 1.4), (1.6, 1.9)], [(1.25, 1.3), (1.6, 1.7)], (1.0, 2.0))
    assert result.takeover_latency_s == pytest.approx(0.25)


def test_bridge_decides_what_is_under_way_but_not_the_outcome():
    # A gap of 150 ms lies across the pause start: a continuous speaker is not fresh by chance.
    gate, words = [(0.0, 0.9), (1.05, 3.0)], [(0.1, 0.5), (1.1, 1.4)]
    assert classify_pause(gate, words, (1.0, 2.0)).takeover_latency_s == pytest.approx(0.1)
    bridged = classify_pause(gate, words, (1.0, 2.0), bridge_s=0.25)
    assert (bridged.outcome, bridged.takeover_latency_s, bridged.already_speaking) == ("takeover", 0.0, True)
    # A breath right after a remark stays wordless, though bridging would join it to the remark.
    assert classify_pause([(0.0, 0.9), (1.05, 1.2)], [(0.1, 0.5)], (1.0, 2.0), bridge_s=0.25).outcome == "wordless"


def test_first_word_is_given_for_later_speech_too():
    assert outcome_of(PAUSE, "                       ### ", "                       ww ").first_word_s == pytest.approx(
        2.3
    )


def test_words_that_no_interval_holds_are_counted():
    assert outcome_of(PAUSE, "            ###", "            ww    ww").words_outside == 1


@pytest.mark.parametrize(
    ("gate", "words", "pause"),
    [
        ([(2.0, 1.0)], [], (0.0, 1.0)),
        ([(0.0, float("nan"))], [], (0.0, 1.0)),
        ([(0.0, 1.0, 2.0)], [], (0.0, 1.0)),
        ([], [(1.0, 0.5)], (0.0, 1.0)),
        ([], [], (1.0, 1.0)),
        ([], [], (2.0, 1.0)),
    ],
)
def test_malformed_input_is_named(gate, words, pause):
    with pytest.raises(MeasureError, match=r"intervals_s|word_times_s|pause_s"):
        classify_pause(gate, words, pause)


def test_unsorted_words_and_intervals_do_not_matter():
    gate, words = [(1.6, 1.9), (1.2, 1.4)], [(1.7, 1.8), (1.2, 1.3)]
    assert classify_pause(gate, words, (1.0, 2.0)) == classify_pause(gate[::-1], words[::-1], (1.0, 2.0))


@st.composite
def rollouts(draw):
    """Gate intervals apart from each other, words anywhere, a pause; all on a grid of 10 ms."""
    edges = sorted(draw(st.sets(st.integers(0, 600), max_size=12)))
    gate = [(a / 100, b / 100) for a, b in zip(edges[::2], edges[1::2], strict=False)]
    words = [
        (start / 100, (start + length) / 100)
        for start, length in draw(st.lists(st.tuples(st.integers(0, 600), st.integers(0, 60)), max_size=6))
    ]
    start = draw(st.integers(0, 500))
    return gate, words, (start / 100, (start + draw(st.integers(1, 200))) / 100)


@given(rollouts())
def test_outcome_by_definition(case):
    """Against the words of design 15.2, written out one interval at a time."""
    gate, words, (start, end) = case
    result = classify_pause(gate, words, (start, end))
    bearing = [(a, b) for a, b in gate if any(w < b and (v > a or (w == v and w >= a)) for w, v in words)]
    takeovers = [(a, b) for a, b in bearing if a < end and b > start]
    if takeovers:
        a, b = takeovers[0]
        first = min(w for w, v in words if w < b and (v > a or (w == v and w >= a)))
        assert result.outcome == "takeover"
        assert result.takeover_latency_s == max(0.0, first - start)
    elif any(a >= end for a, _ in bearing):
        assert result.outcome == "after"
    elif any(b > start for _, b in gate):
        assert result.outcome == "wordless"
    else:
        assert result.outcome == "silent"
    assert (result.takeover_latency_s is None) == (result.outcome != "takeover")
    assert result.spoke_before == any(b <= start for _, b in gate)


@given(rollouts(), st.integers(1, 64))
def test_shift_invariance(case, shift):
    gate, words, pause = case
    # A power-of-two grid, so that shifting is exact.
    scale = [np.round(np.asarray(part, dtype=float).reshape(-1, 2) * 100) / 128 for part in (gate, words, [pause])]
    moved = [part + shift for part in scale]
    before = classify_pause(scale[0], scale[1], scale[2][0], bridge_s=0.25)
    after = classify_pause(moved[0], moved[1], moved[2][0], bridge_s=0.25)
    assert before.outcome == after.outcome
    assert before.takeover_latency_s == after.takeover_latency_s
    assert before.already_speaking == after.already_speaking


@given(rollouts(), st.integers(1, 300))
def test_takeover_is_monotone_in_the_pause_end(case, more):
    gate, words, (start, end) = case
    longer = classify_pause(gate, words, (start, end + more / 100))
    if classify_pause(gate, words, (start, end)).outcome == "takeover":
        assert longer.outcome == "takeover"


@given(rollouts(), st.integers(0, 25))
def test_bridging_never_changes_the_outcome(case, bridge):
    gate, words, pause = case
    bridged = classify_pause(gate, words, pause, bridge_s=bridge / 100)
    plain = classify_pause(gate, words, pause)
    assert bridged.outcome == plain.outcome
    if plain.takeover_latency_s is not None:
        assert bridged.takeover_latency_s <= plain.takeover_latency_s
