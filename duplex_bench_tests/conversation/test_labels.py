"""Label engine: each rule on a drawn timeline, each limit on its exact instant, invariants on random tracks."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.conversation.labels import (
    Label,
    LabelInputError,
    LabelRules,
    SpeakerTrack,
    Word,
    label_conversation,
)

pytestmark = pytest.mark.unit

MANY = 9


def spoken(*segments: tuple[float, float, int]) -> SpeakerTrack:
    """A track from (start, end, number of words) segments, the words spread evenly."""
    words = [
        Word(f"w{k}", start + (end - start) * k / n, start + (end - start) * (k + 1) / n)
        for start, end, n in segments
        for k in range(n)
    ]
    return SpeakerTrack([(start, end) for start, end, _ in segments], words)


def drawn(line: str, step_s: float = 0.5) -> SpeakerTrack:
    """A track from a picture: ``=`` speaks substantively (many words), ``-`` speaks one word, space is silence."""
    segments = []
    position = 0
    while position < len(line):
        mark, stop = line[position], position
        while stop < len(line) and line[stop] == mark:
            stop += 1
        if mark != " ":
            segments.append((position * step_s, stop * step_s, MANY if mark == "=" else 1))
        position = stop
    return spoken(*segments)


def brief(labels: list[Label]) -> list[tuple[str, str, float, float]]:
    return [(label.speaker, label.kind, label.start_s, label.end_s) for label in labels]


def found(left: SpeakerTrack, right: SpeakerTrack) -> list[tuple[str, str, float, float]]:
    return brief(label_conversation(left, right))


def kinds(left: SpeakerTrack, right: SpeakerTrack, speaker: str) -> list[str]:
    return [label.kind for label in label_conversation(left, right) if label.speaker == speaker]


def test_same_speaker_resumes_is_a_pause_inside_one_turn():
    left_ = drawn("====  ====")
    assert found(left_, SpeakerTrack([])) == [
        ("left", "turn", 0.0, 5.0),
        ("left", "pause", 2.0, 3.0),
    ]


def test_other_starts_and_keeps_the_floor_is_an_end_of_turn():
    left_ = drawn("====                  ====")
    right = drawn("     ============         ")
    assert found(left_, right) == [
        ("left", "turn", 0.0, 2.0),
        ("right", "turn", 2.5, 8.5),
        ("left", "turn", 11.0, 13.0),
    ]


def test_other_starts_stops_and_first_resumes_is_a_pause_and_a_failed_take():
    left_ = drawn("====     ====")
    right = drawn("     ===     ")
    assert found(left_, right) == [
        ("left", "turn", 0.0, 6.5),
        ("left", "pause", 2.0, 4.5),
        ("right", "failed_take", 2.5, 4.0),
    ]


def test_a_take_that_stops_after_the_resumption_failed_and_overlaps():
    left_ = drawn("====   ======")
    right = drawn("     ====    ")
    assert found(left_, right) == [
        ("left", "turn", 0.0, 6.5),
        ("left", "pause", 2.0, 3.5),
        ("right", "failed_take", 2.5, 4.5),
        ("right", "overlap", 3.5, 4.5),
    ]


def test_a_take_that_outlasts_the_resumption_has_the_floor():
    left_ = drawn("====   ===       ")
    right = drawn("     ============")
    assert found(left_, right) == [
        ("left", "turn", 0.0, 2.0),
        ("right", "turn", 2.5, 8.5),
        ("left", "turn", 3.5, 5.0),
        ("left", "overlap", 3.5, 5.0),
    ]


def test_several_takes_inside_one_pause_all_fail():
    left_ = drawn("====        ====")
    right = drawn("     === ==     ")
    assert [row for row in found(left_, right) if row[0] == "right"] == [
        ("right", "failed_take", 2.5, 4.0),
        ("right", "failed_take", 4.5, 5.5),
    ]


def test_other_already_talking_and_going_on_is_an_end_of_turn():
    left_ = drawn("======    =====")
    right = drawn("    =====      ")
    labels = label_conversation(left_, right)
    assert brief(labels) == [
        ("left", "turn", 0.0, 3.0),
        ("right", "turn", 2.0, 4.5),
        ("right", "overlap", 2.0, 3.0),
        ("left", "turn", 5.0, 7.5),
    ]
    assert labels[0].rule == "other_already_talking"


def test_nobody_is_an_end_of_turn():
    labels = label_conversation(drawn("===="), SpeakerTrack([]))
    assert [(label.kind, label.rule, label.confidence) for label in labels] == [("turn", "nobody_speaks", 1.0)]


def test_small_segment_while_the_other_speaks_is_a_backchannel_and_no_overlap():
    left_ = drawn("==========")
    right = drawn("    --    ")
    labels = label_conversation(left_, right)
    assert brief(labels) == [("left", "turn", 0.0, 5.0), ("right", "backchannel", 2.0, 3.0)]
    assert labels[1].rule == "while_other_speaks"


def test_small_segment_in_a_pause_of_the_other_is_a_backchannel():
    left_ = drawn("====     ====")
    right = drawn("     --      ")
    labels = label_conversation(left_, right)
    assert brief(labels) == [
        ("left", "turn", 0.0, 6.5),
        ("left", "pause", 2.0, 4.5),
        ("right", "backchannel", 2.5, 3.5),
    ]
    assert labels[2].rule == "while_other_pauses"


def test_small_segment_that_opens_the_own_turn_is_no_backchannel():
    left_ = drawn("====                    ====")
    right = drawn("     --  ===========        ")
    assert found(left_, right) == [
        ("left", "turn", 0.0, 2.0),
        ("right", "turn", 2.5, 10.0),
        ("right", "pause", 3.5, 4.5),
        ("left", "turn", 12.0, 14.0),
    ]


def test_small_segment_after_the_own_turn_is_no_backchannel_of_the_one_before():
    # Left's floor ended when right took it: right's short word goes on with right's turn.
    left_ = drawn("====                       ====")
    right = drawn("     ============   --         ")
    assert kinds(left_, right, "right") == ["turn", "pause"]


def test_small_answer_is_a_turn_when_the_first_speaker_stays_silent_too_long():
    left_ = drawn("====                ====")
    right = drawn("     --                 ")
    assert kinds(left_, right, "right") == ["turn"]


def test_two_small_segments_that_begin_together_do_not_hold_the_floor_from_each_other():
    both = spoken((0.0, 0.6, 1))
    assert [label.kind for label in label_conversation(both, both)].count("backchannel") == 0


def test_small_segment_that_begins_with_a_large_one_is_a_backchannel():
    assert kinds(spoken((0.0, 3.0, MANY)), spoken((0.0, 0.6, 1)), "right") == ["backchannel"]


def test_a_backchannel_does_not_hold_the_floor():
    # Right's word answers left; left's own word inside it is still left's turn.
    left_ = spoken((0.0, 3.0, MANY), (3.6, 4.0, 1), (4.5, 7.0, MANY))
    right = spoken((3.3, 4.1, 1))
    assert kinds(left_, right, "left") == ["turn", "pause", "pause"]
    assert kinds(left_, right, "right") == ["backchannel"]


@pytest.mark.parametrize(("gap_s", "closed"), [(0.25, True), (0.250001, False)])
def test_a_gap_of_exactly_250_ms_is_closed(gap_s: float, closed: bool):
    labels = label_conversation(spoken((0.1, 1.1, 4), (1.1 + gap_s, 2.7, 4)), SpeakerTrack([]))
    assert [label.kind for label in labels] == (["turn"] if closed else ["turn", "pause"])


@pytest.mark.parametrize(("length_s", "small"), [(1.0, True), (1.000001, False)])
@pytest.mark.parametrize(("words", "few"), [(0, True), (2, True), (3, False)])
def test_exactly_one_second_and_exactly_two_words_are_small(length_s: float, small: bool, words: int, few: bool):
    # 0.7 + 1.0 - 0.7 is not 1.0 in floating point.
    right = spoken((0.7, 0.7 + length_s, words))
    assert (kinds(spoken((0.0, 5.0, MANY)), right, "right") == ["backchannel"]) is (small and few)


@pytest.mark.parametrize(("resumes_s", "pause"), [(8.1, True), (8.100001, False)])
def test_exactly_five_seconds_is_inside_the_look_ahead(resumes_s: float, pause: bool):
    left_ = spoken((0.0, 3.1, MANY), (resumes_s, 10.0, MANY))
    assert kinds(left_, SpeakerTrack([]), "left") == (["turn", "pause"] if pause else ["turn", "turn"])
    right = spoken((4.0, 5.2, 5))
    assert kinds(left_, right, "right") == (["failed_take"] if pause else ["turn"])


@pytest.mark.parametrize(("starts_s", "rule"), [(8.1, "other_starts"), (8.100001, "nobody_speaks")])
def test_the_other_starting_at_exactly_five_seconds_counts(starts_s: float, rule: str):
    labels = label_conversation(spoken((0.0, 3.1, MANY)), spoken((starts_s, 12.0, MANY)))
    assert labels[0].rule == rule


def test_both_starting_at_once_after_an_offset_is_a_pause_for_the_one_who_resumes():
    left_ = spoken((0.0, 2.0, MANY), (3.0, 6.0, MANY))
    right = spoken((3.0, 5.0, MANY))
    assert kinds(left_, right, "left") == ["turn", "pause"]
    assert kinds(left_, right, "right") == ["turn", "overlap"]


def test_both_stopping_at_once_keeps_every_pause_inside_a_turn():
    left_ = spoken((0.0, 2.0, MANY), (2.5, 4.0, MANY))
    right = spoken((0.5, 2.0, MANY), (4.5, 7.0, MANY))
    assert kinds(left_, right, "left").count("pause") == 1
    assert "failed_take" not in kinds(left_, right, "left")


def test_a_shorter_limit_for_failed_takes_makes_a_reply_a_turn():
    left_, right = drawn("====       ===="), drawn("     =====     ")
    rules = LabelRules(failed_take_max_s=2.0)
    assert "failed_take" in kinds(left_, right, "right")
    assert [label.kind for label in label_conversation(left_, right, rules) if label.speaker == "right"] == ["turn"]


def test_wordless_activity_is_labelled_with_half_the_confidence():
    sure = label_conversation(spoken((0.0, 2.0, 5)), SpeakerTrack([]))[0]
    unsure = label_conversation(spoken((0.0, 2.0, 0)), SpeakerTrack([]))[0]
    assert (sure.kind, unsure.kind) == ("turn", "turn")
    assert unsure.confidence == sure.confidence / 2


def test_a_word_counts_for_the_segment_it_overlaps_longest():
    left_ = spoken((0.0, 6.0, MANY))
    words = [Word("a", 1.0, 1.2), Word("b", 1.2, 1.4), Word("stretched", 1.4, 3.2)]
    right = SpeakerTrack([(1.0, 1.5), (2.0, 3.2)], words)
    assert kinds(left_, right, "right")[0] == "backchannel"


def test_numbers_are_coerced_and_rows_sorted():
    track = SpeakerTrack([(np.float32(2), 3), (0, np.int64(1))], [("b", 2, 3), Word("a", 0, 1)])  # type: ignore[list-item]
    assert track.speech == ((0.0, 1.0), (2.0, 3.0))
    assert [(word.text, word.start_s) for word in track.words] == [("a", 0.0), ("b", 2.0)]
    assert all(type(word.start_s) is float for word in track.words)


@pytest.mark.parametrize(
    ("speech", "words", "says"),
    [
        ([(0.0, 1.0), (3.0, 2.0)], [], "speech row 1"),
        ([(1.0, 1.0)], [], "speech row 0"),
        ([(0.0, None)], [], "speech row 0: end"),
        ([(0.0, math.nan)], [], "speech row 0: end"),
        ([(0.0, 9.0)], [Word("a", 0.0, 1.0), Word("b", 2.0, 1.0)], r"word row 1 \('b'\)"),
        ([(0.0, 9.0)], [Word("a", None, 1.0)], r"word row 0 \('a'\): start"),  # type: ignore[arg-type]
        ([(0.0, 9.0)], [Word("a", 0.0, math.inf)], r"word row 0 \('a'\): end"),
        ([(0.0, 1.0, 2.0)], [], "speech row 0"),
    ],
)
def test_bad_rows_are_named(speech: list, words: list, says: str):
    with pytest.raises(LabelInputError, match=says):
        SpeakerTrack(speech, words)


@pytest.mark.parametrize("bad", [-0.1, math.nan, math.inf])
def test_rules_refuse_numbers_that_are_no_limit(bad: float):
    with pytest.raises(ValueError, match="look_ahead_s"):
        LabelRules(look_ahead_s=bad)


# --- Invariants -------------------------------------------------------------------------------------------------

# A 50 ms grid makes exact limits and ties frequent.
_STEP_MS = 50


@st.composite
def tracks(draw: st.DrawFn) -> SpeakerTrack:
    lengths = draw(st.lists(st.tuples(st.integers(1, 60), st.integers(1, 120), st.integers(0, 4)), max_size=14))
    position, segments = 0, []
    for gap, length, words in lengths:
        start = position + gap
        position = start + length
        segments.append((start * _STEP_MS / 1000, position * _STEP_MS / 1000, words))
    return spoken(*segments)


def mirrored(labels: list[Label]) -> set[Label]:
    return {dataclasses.replace(label, speaker="right" if label.speaker == "left" else "left") for label in labels}


def ambiguous_overlap(labels: list[Label]) -> bool:
    """Two turns that begin and end together: who came second has no answer."""
    spans = [(label.start_s, label.end_s) for label in labels if label.kind in {"turn", "failed_take"}]
    return len(set(spans)) < len(spans)


@given(tracks(), tracks())
@settings(max_examples=400, deadline=None)
def test_invariants(left_: SpeakerTrack, right: SpeakerTrack):
    labels = label_conversation(left_, right)
    for speaker, track in (("left", left_), ("right", right)):
        mine = {kind: [label for label in labels if (label.speaker, label.kind) == (speaker, kind)]
                for kind in ("turn", "pause", "backchannel", "failed_take")}  # fmt: skip
        turns, pauses = mine["turn"], mine["pause"]
        assert all(one.end_s <= two.start_s for one, two in pairwise(turns))
        for pause in pauses:
            around = [turn for turn in turns if turn.start_s < pause.start_s and pause.end_s < turn.end_s]
            assert len(around) == 1
            assert 0.25 < pause.end_s - pause.start_s <= 5.0 + 1e-9
        closed = label_conversation(track, SpeakerTrack([]), LabelRules(look_ahead_s=0.0))
        spoken_s = sum(label.end_s - label.start_s for label in closed)
        labelled_s = sum(x.end_s - x.start_s for kind in ("turn", "backchannel", "failed_take") for x in mine[kind])
        assert labelled_s - sum(x.end_s - x.start_s for x in pauses) == pytest.approx(spoken_s, abs=1e-6)
        assert all(0.0 <= label.confidence <= 1.0 for label in labels)
        for small in mine["backchannel"]:
            assert small.end_s - small.start_s <= 1.0 + 1e-9


@given(tracks(), tracks())
@settings(max_examples=200, deadline=None)
def test_left_and_right_are_symmetric(left_: SpeakerTrack, right: SpeakerTrack):
    labels = label_conversation(left_, right)
    swapped = mirrored(label_conversation(right, left_))
    if ambiguous_overlap(labels):
        labels = [label for label in labels if label.kind != "overlap"]
        swapped = {label for label in swapped if label.kind != "overlap"}
    assert set(labels) == swapped


@given(tracks(), tracks(), st.floats(-50, 5000))
@settings(max_examples=200, deadline=None)
def test_a_shift_of_the_clock_shifts_the_labels(left_: SpeakerTrack, right: SpeakerTrack, shift_s: float):
    def moved(track: SpeakerTrack) -> SpeakerTrack:
        return SpeakerTrack(
            [(start + shift_s, end + shift_s) for start, end in track.speech],
            [Word(word.text, word.start_s + shift_s, word.end_s + shift_s) for word in track.words],
        )

    before = label_conversation(left_, right)
    after = label_conversation(moved(left_), moved(right))
    assert len(before) == len(after)
    for one, two in zip(before, after, strict=True):
        assert (one.speaker, one.kind, one.rule) == (two.speaker, two.kind, two.rule)
        assert (two.start_s, two.end_s) == pytest.approx((one.start_s + shift_s, one.end_s + shift_s), abs=1e-6)


@given(tracks(), tracks(), st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_the_order_of_rows_does_not_matter(left_: SpeakerTrack, right: SpeakerTrack, random):
    def shuffled(track: SpeakerTrack) -> SpeakerTrack:
        speech, words = list(track.speech), list(track.words)
        random.shuffle(speech)
        random.shuffle(words)
        return SpeakerTrack(speech, words)

    assert label_conversation(left_, right) == label_conversation(shuffled(left_), shuffled(right))


@given(tracks(), tracks())
@settings(max_examples=150, deadline=None)
def test_overlaps_are_where_both_speak_in_a_turn_or_take(left_: SpeakerTrack, right: SpeakerTrack):
    labels = label_conversation(left_, right)

    def floor_steps(speaker: str) -> set[int]:
        def steps(*wanted: str) -> set[int]:
            return {
                step
                for label in labels
                if label.speaker == speaker and label.kind in wanted
                for step in range(round(label.start_s * 1000) // _STEP_MS, round(label.end_s * 1000) // _STEP_MS)
            }

        return steps("turn", "failed_take") - steps("pause")

    overlapped = {
        step
        for label in labels
        if label.kind == "overlap"
        for step in range(round(label.start_s * 1000) // _STEP_MS, round(label.end_s * 1000) // _STEP_MS)
    }
    assert overlapped == floor_steps("left") & floor_steps("right")
