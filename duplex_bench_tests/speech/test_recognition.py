import numpy as np
import pytest

from duplex_bench.audio.gate import GateSettings
from duplex_bench.records.audio import TimedWord
from duplex_bench.speech.interfaces import SpokenClip
from duplex_bench.speech.recognition import (
    Heard,
    PlacedSpeech,
    conditions,
    detector_table,
    edge_table,
    framed,
    short_table,
    start_errors_ms,
    word_table,
)

pytestmark = pytest.mark.unit
RATE = 24_000


def clip(length_s=1.0, starts=()):
    return SpokenClip(np.full(round(length_s * RATE), 0.1, dtype=np.float32), RATE, starts)


def words(*pairs, aligned=True):
    return tuple(TimedWord(text, start_s, start_s + 0.2, aligned) for text, start_s in pairs)


def test_word_errors_and_times_of_a_voice():
    right = Heard("Yes, really.", clip(1.0, (0.0, 0.5)), words(("yes", 0.02), ("really", 0.49)))
    wrong = Heard("No, really.", clip(1.0, (0.0, 0.5)), words(("no", 0.3), ("rally", 0.9)))
    row = word_table({"a": [right, wrong]}).row(0, named=True)
    assert (row["n_words"], row["substitutions"], row["word_error_rate"]) == (4, 1, 0.25)
    # The clip with an error gives no times: which onset belongs to which word would be a guess.
    assert (row["n_timed"], row["start_median_ms"]) == (2, pytest.approx(15.0))
    assert row["start_bias_ms"] == pytest.approx(5.0)


def test_a_voice_without_known_onsets_has_no_times_rather_than_zero():
    row = word_table({"a": [Heard("Yes.", clip(), words(("yes", 0.1)))]}).row(0, named=True)
    assert (row["n_timed"], row["start_bias_ms"]) == (0, None)
    assert start_errors_ms(Heard("Yes.", clip(1.0, (0.0,)), words(("yes", 0.1), aligned=False))) == []


def test_short_replies_by_length():
    table = short_table(
        [
            Heard("Yes.", clip(0.3), ()),
            Heard("Yes.", clip(0.3), words(("yes", 1.1))),
            Heard("No.", clip(0.5), words(("know", 1.1))),
            Heard("A long answer.", clip(2.0), words(("a", 0.0))),
        ]
    )
    assert table.rows() == [("0 to 0.4 s", 0.0, 0.4, 2, 0.5, 0.5, 0.0), ("0.4 to 0.6 s", 0.4, 0.6, 1, 1.0, 0.0, 1.0)]
    assert len(framed(clip(0.5), 1.0)) == round(2.5 * RATE)


class Late:
    """Finds the loud part 20 ms late and lets go 50 ms late."""

    engine_id = "late"

    def speech_regions(self, samples, sample_rate_hz):
        del sample_rate_hz
        loud = np.flatnonzero(np.abs(samples) > 0.05)
        return np.array([[loud[0] + 480, loud[-1] + 1 + 1200]]) if len(loud) else np.zeros((0, 2), dtype=np.int64)


def track():
    samples = np.zeros(3 * RATE, dtype=np.float32)
    samples[RATE : 2 * RATE] = 0.1 * np.sin(2 * np.pi * 200 * np.arange(RATE) / RATE)
    samples[RATE : 2 * RATE : 60] = 0.1
    samples[2 * RATE - 1] = 0.1
    return PlacedSpeech(samples, ((RATE, 2 * RATE),))


def test_detectors_are_measured_on_known_edges():
    table = detector_table(track(), Late(), GateSettings())
    as_it_is = {row["detector"]: row for row in table.to_dicts() if row["condition"] == "as it is"}
    late = as_it_is["voice detector"]
    assert (late["onset_ms"], late["offset_ms"]) == (pytest.approx(20.0), pytest.approx(50.0))
    assert late["speech_found"] == pytest.approx(0.98)
    assert late["silence_called_speech"] == 0.0
    assert as_it_is["energy gate"]["speech_found"] > 0.95
    # Thirty-six decibels down the gate hears nothing, and says so without an edge.
    quiet = next(row for row in table.to_dicts() if row["condition"] == "36 dB quieter")
    assert (quiet["speech_found"], quiet["utterances_found"], quiet["onset_ms"]) == (0.0, 0, None)


def test_every_condition_keeps_the_length_and_noise_is_as_stated():
    made = conditions(track())
    assert {len(samples) for samples in made.values()} == {3 * RATE}
    noise = made["white noise 20 dB below"] - track().samples
    speech = track().samples[RATE : 2 * RATE]
    assert 20 * np.log10(np.std(speech) / np.std(noise)) == pytest.approx(20, abs=0.3)
    edges = edge_table(track(), Late())
    assert edges.filter(edges["condition"] == "as it is").row(0)[1:] == pytest.approx((0.02, 0.05))
