import pytest

from duplex_bench.conversation.label_types import Label
from duplex_bench.conversation.recordings import (
    RECORDING_METRICS,
    recording_measurements,
    recording_windows,
    still_going_measurements,
)

pytestmark = pytest.mark.unit

LABELS = [
    Label("left", "turn", 0.0, 6.0, "r", 1.0),
    Label("left", "pause", 2.0, 3.0, "r", 1.0),
    Label("left", "pause", 4.0, 4.4, "r", 1.0),
    Label("right", "turn", 6.5, 9.0, "r", 1.0),
    Label("left", "turn", 10.0, 12.0, "r", 1.0),
    Label("left", "turn", 13.0, 13.5, "r", 1.0),
]


def test_windows_of_the_user_alone():
    windows = recording_windows(LABELS, "left", 20.0)
    assert [(w.window_id, w.start_s, w.end_s, w.marks["until_s"]) for w in windows] == [
        ("pause-0", 2.0, 3.0, 4.0),
        ("turn_end-1", 6.0, 6.0, 10.0),
        ("turn_end-2", 12.0, 12.0, 13.0),
    ]
    assert [w.start_s for w in recording_windows(LABELS, "right", 20.0)] == [9.0]


def test_a_turn_cut_off_by_the_end_of_the_recording_is_no_turn_end():
    assert [w.start_s for w in recording_windows(LABELS, "left", 12.0)] == [2.0, 6.0]


def test_scores_stay_within_their_window(timed):
    windows = recording_windows(LABELS, "left", 20.0)
    gate = [(2.5, 2.8), (6.5, 9.0), (14.0, 15.0)]
    words = timed(("okay", 2.5, 2.7), ("so", 6.6, 7.0), ("late", 14.1, 14.5), ("lost", None, None))
    found = {(m.window_id, m.metric): m.score for m in recording_measurements("rec", windows, gate, words, 20.0)}
    assert found["pause-0", "pause_takeover"].value == 1.0
    assert found["pause-0", "takeover_latency"].value == pytest.approx(0.5)
    assert found["turn_end-1", "turn_end_latency"].value == pytest.approx(0.6)
    assert found["turn_end-1", "resumptions"].value == 0.0
    # What the system says at 14 s comes after the user has spoken again.
    assert found["turn_end-2", "response_rate"].value == 0.0
    assert {metric for _, metric in found} == set(RECORDING_METRICS)


def test_a_reply_is_not_speech_after_an_earlier_pause(timed):
    windows = recording_windows(LABELS, "left", 20.0)
    measured = recording_measurements("rec", windows, [(6.5, 9.0)], timed(("so", 6.6, 7.0)), 20.0)
    found = {(m.window_id, m.metric): m.score.value for m in measured}
    assert found["pause-0", "pause_silent"] == 1.0


def still_going(labels, gate, words):
    windows = recording_windows(labels, "left", 20.0)
    measured = recording_measurements("rec", windows, gate, words, 20.0)
    found = still_going_measurements(windows, measured, labels, gate)
    return {one.window_id: (one.score.value, one.at_s) for one in found}


RESUMED = [
    Label("left", "turn", 0.0, 4.0, "other_starts", 1.0),
    Label("right", "turn", 4.5, 9.0, "nobody_speaks", 1.0),
    Label("left", "turn", 6.0, 8.0, "other_already_talking", 1.0),
]


def test_a_system_that_talks_on_over_the_resuming_user_took_the_floor(timed):
    found = still_going(RESUMED, [(4.5, 9.0)], timed(("well", 4.5, 5.0)))
    assert found["turn_end-0"] == (1.0, 4.5)


def test_a_system_that_has_stopped_when_the_user_speaks_again_answered(timed):
    assert still_going(RESUMED, [(4.5, 5.7)], timed(("well", 4.5, 5.0))) == {}


def test_a_user_who_comes_back_after_the_look_ahead_had_finished(timed):
    late = [RESUMED[0], RESUMED[1], Label("left", "turn", 9.1, 10.0, "nobody_speaks", 1.0)]
    assert still_going(late, [(4.5, 12.0)], timed(("well", 4.5, 5.0))) == {}


def test_a_backchannel_is_no_going_on(timed):
    nodding = [RESUMED[0], RESUMED[1], Label("left", "backchannel", 6.0, 6.4, "while_other_speaks", 1.0)]
    assert still_going(nodding, [(4.5, 9.0)], timed(("well", 4.5, 5.0))) == {}


def test_a_user_who_fails_to_stop_a_long_speech_was_not_taken_over(timed):
    monologue = [Label("left", "turn", 2.0, 4.0, "other_already_talking", 1.0), RESUMED[2]]
    assert still_going(monologue, [(0.5, 9.0)], timed(("well", 0.5, 9.0))) == {}


def test_pauses_count_as_their_takeover_does(timed):
    found = still_going(LABELS, [(2.5, 2.8), (6.5, 9.0)], timed(("okay", 2.5, 2.7), ("so", 6.6, 7.0)))
    assert found == {"pause-0": (1.0, 2.5)}
    assert still_going(LABELS, [(6.5, 9.0)], timed(("so", 6.6, 7.0))) == {"pause-0": (0.0, 2.0)}
