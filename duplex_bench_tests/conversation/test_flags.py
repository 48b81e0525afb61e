"""Doubtful turns are flagged at the papers' limits, and no others."""

import pytest

from duplex_bench.conversation.flags import flags_of
from duplex_bench.conversation.label_types import Label, Word

pytestmark = pytest.mark.unit


def turn(start_s: float, end_s: float) -> Label:
    return Label("left", "turn", start_s, end_s, "rule", 1.0)


def said(*words: tuple[str, float, bool]) -> dict[str, list[Word]]:
    return {"left": [Word(text, at, at + 0.1, gap_filled=filled) for text, at, filled in words], "right": []}


def test_a_turn_with_half_its_words_from_gap_fill_is_flagged():
    words = said(("so", 0.1, False), ("yes", 0.5, True))
    assert [flag.flag for flag in flags_of([turn(0.0, 2.0)], words)] == ["gap_fill_turn"]


def test_a_turn_with_fewer_is_not():
    words = said(("so", 0.1, False), ("well", 0.3, False), ("yes", 0.5, True))
    assert flags_of([turn(0.0, 2.0)], words) == []


@pytest.mark.parametrize(("end_s", "flagged"), [(0.399, True), (0.4, False)])
def test_a_lexical_turn_under_400_ms_is_flagged(end_s, flagged):
    found = flags_of([turn(0.0, end_s)], said(("no", 0.1, False)))
    assert [flag.flag for flag in found] == (["short_lexical_turn"] if flagged else [])


def test_a_turn_without_words_and_a_backchannel_are_not_flagged():
    backchannel = Label("left", "backchannel", 0.0, 0.3, "rule", 1.0)
    assert flags_of([turn(0.0, 0.2), backchannel], said()) == []
