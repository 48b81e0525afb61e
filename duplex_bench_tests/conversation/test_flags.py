"""Doubtful turns are flagged at the papers' limits, and no others."""

import numpy as np
import pytest

from duplex_bench.conversation.flags import FlagRules, flags_of
from duplex_bench.conversation.label_types import Label, Word
from duplex_bench.speech.projection.settings import FloorProjection

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


def foreseen(left_now: float, left_future: float, seconds: float = 10.0) -> FloorProjection:
    n_frames = round(seconds * 50)
    return FloorProjection(
        50.0, np.full(n_frames, left_now, dtype=np.float32), np.full(n_frames, left_future, dtype=np.float32)
    )


@pytest.mark.parametrize(("left_share", "flagged"), [(0.66, True), (0.64, False)])
@pytest.mark.parametrize("speaker", ["left", "right"])
def test_a_turn_that_the_projection_expects_to_go_on_is_flagged(speaker, left_share, flagged):
    share = left_share if speaker == "left" else 1 - left_share
    ended = Label(speaker, "turn", 1.0, 4.0, "rule", 1.0)
    found = flags_of([ended], {"left": [], "right": []}, floor=foreseen(share, 0.5))
    assert [flag.flag for flag in found] == (["projection_keeps_floor"] if flagged else [])
    assert not flagged or (found[0].speaker, "0.66" in found[0].reason) == (speaker, True)


@pytest.mark.parametrize(("left_share", "flagged"), [(0.61, True), (0.59, False)])
@pytest.mark.parametrize("speaker", ["left", "right"])
def test_a_backchannel_that_the_projection_expects_to_become_a_turn_is_flagged(speaker, left_share, flagged):
    share = left_share if speaker == "left" else 1 - left_share
    short = Label(speaker, "backchannel", 2.0, 2.4, "rule", 1.0)
    found = flags_of([short], {"left": [], "right": []}, floor=foreseen(0.5, share))
    assert [flag.flag for flag in found] == (["projection_hands_over"] if flagged else [])


def test_the_projection_is_read_just_after_the_turn_and_over_the_backchannels_onset():
    floor = foreseen(0.0, 0.0)
    # Frame k ends at (k + 1) / 50 s: 4.05 to 4.25 s, and 6.0 to 6.2 s.
    floor.now[203:212] = 1.0
    floor.future[300:310] = 1.0
    labels = [Label("left", "turn", 1.0, 4.0, "rule", 1.0), Label("left", "backchannel", 6.0, 6.4, "rule", 1.0)]
    found = flags_of(labels, {"left": [], "right": []}, floor=floor)
    assert [flag.flag for flag in found] == ["projection_keeps_floor", "projection_hands_over"]


def test_a_turn_at_the_very_end_has_no_projection_after_it():
    ended = Label("left", "turn", 1.0, 10.0, "rule", 1.0)
    assert flags_of([ended], {"left": [], "right": []}, floor=foreseen(1.0, 1.0)) == []


@pytest.mark.parametrize(
    "wrong", [{"keeps_floor": 0.0}, {"hands_over": 1.2}, {"after_turn_end_s": (0.3, 0.2)}, {"backchannel_onset_s": 0.0}]
)
def test_rules_that_cannot_be_are_refused(wrong):
    with pytest.raises(ValueError, match="flag"):
        FlagRules(**wrong)
