import pytest

from duplex_bench.conversation.label_types import Label
from duplex_bench.conversation.recordings import RECORDING_METRICS, recording_measurements, recording_windows

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
