"""Labels that windows agree on, and the sweep of the gate against them, on signals with known edges."""

from dataclasses import replace

import numpy as np
import pytest

from duplex_bench.audio.gate import DEFAULT_GATE
from duplex_bench.conversation.gate_calibration import (
    CalibrationSettings,
    Labelled,
    controls,
    label,
    level_auc,
    levels_and_labels,
    settings_tried,
    sweep,
)
from duplex_bench.records.audio import TimedWord

pytestmark = pytest.mark.unit

RATE = 8000
SETTINGS = CalibrationSettings()


def burst(start_s, end_s, level=0.2, length_s=8.0):
    samples = np.zeros(round(length_s * RATE), dtype=np.float32)
    first, last = round(start_s * RATE), round(end_s * RATE)
    tone = np.sin(2 * np.pi * 200 * np.arange(last - first) / RATE)
    samples[first:last] = (level * np.sqrt(2) * tone).astype(np.float32)
    return samples


def words_where_loud(samples, rate):
    """A recogniser that hears one word for each loud stretch of a window, at its true times."""
    loud = np.abs(samples) > 0.3
    if not loud.any():
        return ()
    where = np.flatnonzero(loud)
    return (TimedWord("word", float(where[0]) / rate, float(where[-1] + 1) / rate),)


def test_labels_lie_where_all_windows_hear_a_word_however_soft_it_was():
    for level in (0.3, 0.0005):
        found = label(burst(2.3, 4.1, level), RATE, words_where_loud, SETTINGS)
        assert found == pytest.approx(np.array([[2.3, 4.1]]), abs=0.03)


def test_one_window_that_hears_nothing_takes_the_label_away():
    calls = []

    def sometimes(samples, rate):
        calls.append(1)
        return words_where_loud(samples, rate) if len(calls) % 2 else ()

    assert len(label(burst(2.3, 2.9), RATE, sometimes, SETTINGS)) == 0


def test_words_without_a_place_and_texts_that_repeat_label_nothing():
    def unplaced(samples, rate):
        return [replace(word, aligned=False) for word in words_where_loud(samples, rate)]

    def repeating(samples, rate):
        return [replace(word, text="again " * 40) for word in words_where_loud(samples, rate)]

    assert len(label(burst(2.3, 4.1), RATE, unplaced, SETTINGS)) == 0
    assert len(label(burst(2.3, 4.1), RATE, repeating, SETTINGS)) == 0


def test_silence_is_never_normalised_and_the_controls_are_four():
    def never(samples, rate):
        raise AssertionError("digital silence was heard")

    assert len(label(controls(RATE)["digital silence"], RATE, never, SETTINGS)) == 0
    assert set(controls(RATE)) == {"digital silence", "floor noise", "noise at 0.05", "120 Hz tone"}


def labelled(level, shift_s=0.0):
    spans = np.array([[2.0 + shift_s, 4.0 + shift_s]])
    return Labelled(burst(2.0, 4.0, level), RATE, spans, (3.0, 5.0))


def test_the_sweep_counts_what_a_higher_threshold_misses():
    rows = {row.setting: row for row in sweep([labelled(0.2), labelled(0.006)], DEFAULT_GATE, SETTINGS)}
    assert (rows["as set"].utterances, rows["as set"].matched) == (2, 1)
    assert rows["as set"].takeover_rate == 0.5
    low = rows["threshold 0.003"]
    assert (low.matched, low.takeover_rate) == (2, 1.0)


def test_onset_bias_is_the_gate_minus_the_label():
    row = sweep([labelled(0.2, shift_s=0.3)], DEFAULT_GATE, SETTINGS)[0]
    assert row.onset_bias_s == pytest.approx(-0.3, abs=0.02)
    assert row.onset_error_s == pytest.approx(0.3, abs=0.02)


def test_without_utterances_there_is_no_error_to_tell():
    nothing = Labelled(burst(2.0, 4.0), RATE, np.zeros((0, 2)))
    row = sweep([nothing], DEFAULT_GATE, SETTINGS)[0]
    assert (row.utterances, row.onset_bias_s, row.takeover_rate) == (0, None, None)


def test_levels_of_speech_and_silence_are_told_apart():
    levels, flags = levels_and_labels([labelled(0.2)], DEFAULT_GATE)
    assert flags.sum() == pytest.approx(200, abs=2)
    assert levels[flags].max() == pytest.approx(0.2, rel=0.02)
    assert level_auc([labelled(0.2)], DEFAULT_GATE) > 0.99


def test_every_setting_is_tried_once():
    tried = settings_tried(DEFAULT_GATE, SETTINGS)
    assert len({setting for _, setting in tried}) == len(tried)
    with pytest.raises(ValueError, match="hop_s"):
        CalibrationSettings(hop_s=3.0)
