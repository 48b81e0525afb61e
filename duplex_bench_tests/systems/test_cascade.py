import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from duplex_bench.contract.types import HistoryPart, OpenRequest, Prompt
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.systems.adapters.cascade.cascade import Cascade, CascadeSettings, Parts, create
from duplex_bench.systems.adapters.cascade.endpointers import SemanticEndpointer, SilenceEndpointer
from duplex_bench.systems.adapters.cascade.listening import RATE_HZ, UNIT_SAMPLES, Listening

pytestmark = pytest.mark.unit

TALK = "We went to the lake on Sunday."
DUTY = "Answer only when asked. Otherwise, stay silent."


class FixedTurnEnd:
    """Calls turns complete by a list, one answer a question."""

    engine_id = "fixed"

    def __init__(self, *answers):
        self.answers = list(answers)
        self.lengths = []

    def completion_probability(self, samples, sample_rate_hz):
        self.lengths.append(len(samples) / sample_rate_hz)
        return self.answers.pop(0)


@pytest.fixture
def go(level_recogniser, tone_voice, turns):
    def runner(texts, parts, request=None, turn_end=None, **changes):
        cascade = Cascade(CascadeSettings(**changes), Parts(level_recogniser(texts), tone_voice, turn_end))
        result = run(cascade, request or OpenRequest(seed=0, stimulus_id="x"), turns(*parts), RATE_HZ, StreamPlan(4.0))
        assert result.reason == ""
        return result

    return runner


def onset_s(result):
    heard = np.flatnonzero(result.listener)
    return heard[0] / RATE_HZ if len(heard) else None


def texts_of(result):
    return [event["text"] for event in result.events if event["kind"] == "text"]


@pytest.mark.parametrize(("silence_s", "latency_s"), [(0.3, 0.5), (0.5, 0.5), (0.5, 0.0), (0.7, 1.0)])
def test_a_reply_begins_one_silence_and_one_latency_after_the_turn(go, silence_s, latency_s):
    result = go([TALK], [(0.2, None), (2.0, 0)], silence_s=silence_s, latency_s=latency_s)
    assert onset_s(result) == pytest.approx(2.2 + silence_s + latency_s, abs=1e-6)


@pytest.mark.parametrize(
    ("pause_s", "silence_s", "takes_over"),
    [(0.7, 0.3, False), (0.9, 0.3, True), (0.9, 0.5, False), (1.2, 0.5, True), (0.72, 0.3, False), (0.82, 0.3, True)],
)
def test_a_pause_is_taken_if_it_is_longer_than_endpointer_and_latency(go, pause_s, silence_s, takes_over):
    result = go([TALK], [(1.0, 0), (pause_s, None), (2.0, 0)], silence_s=silence_s, latency_s=0.5)
    assert bool(onset_s(result) < 1.0 + pause_s) is takes_over


def test_a_reply_that_was_cancelled_is_made_after_the_whole_turn(go):
    result = go([TALK], [(1.0, 0), (0.6, None), (1.0, 0)], silence_s=0.5)
    assert onset_s(result) == pytest.approx(2.6 + 1.0, abs=1e-6)
    assert len(texts_of(result)) == 1


def test_without_cancelling_the_reply_comes_although_the_speaker_resumed(go):
    result = go([TALK], [(1.0, 0), (0.6, None), (1.0, 0)], silence_s=0.5, cancel_on_speech=False)
    assert onset_s(result) == pytest.approx(2.0, abs=1e-6)


def test_it_stops_when_spoken_over_for_half_a_second(go, tone_voice):
    result = go([TALK, "No wait."], [(1.0, 0), (1.2, None), (1.0, 1)], silence_s=0.5, barge_in_s=0.3)
    flush = next(event for event in result.events if event["kind"] == "flush")
    # Spoken over from 2.2 s on, while the reply of 2.0 s is being heard.
    assert flush["available_s"] == pytest.approx(2.5)
    assert flush["cut"][0]["heard_s"] == pytest.approx(0.5)
    heard = np.flatnonzero(result.listener) / RATE_HZ
    assert not ((heard >= 2.5) & (heard < 3.2)).any()


def test_a_short_acknowledgement_does_not_stop_it(go):
    result = go([TALK, "Yeah."], [(1.0, 0), (1.2, None), (0.2, 1)], silence_s=0.5)
    assert not [event for event in result.events if event["kind"] == "flush"]


def test_clicks_and_silence_are_no_turns(go):
    result = go([TALK], [(1.0, None), (0.02, 0), (1.0, None), (0.03, 0), (2.0, None)])
    assert onset_s(result) is None


def test_under_a_duty_it_answers_what_it_is_asked_and_nothing_else(go):
    texts = [DUTY, "There are twelve lemons.", "Ben, could you stir the soup?", "And seven more lemons.",
             "Aria, how many lemons are there altogether?", "Thanks a lot."]  # fmt: skip
    parts = [entry for k in range(6) for entry in ((1.0, k), (3.0, None))]
    result = go(texts, parts)
    assert texts_of(result) == ["That makes 19 altogether."]
    assert onset_s(result) == pytest.approx(17.0 + 1.0, abs=1e-6)


def test_a_duty_in_the_prompt_counts_and_history_is_context(go):
    request = OpenRequest(
        0, "x", Prompt(text=f"You are Aria. {DUTY}"), (HistoryPart("user", "I put the keys under the mat.", 0.0, 2.0),)
    )
    result = go(["We should go.", "Can anyone tell me where the keys are?"], [(1.0, 0), (2.0, None), (1.0, 1)], request)
    (said,) = texts_of(result)
    assert "under the mat" in said


def test_every_stretch_is_recognised_once(level_recogniser, tone_voice, turns):
    recogniser = level_recogniser([TALK])
    cascade = Cascade(CascadeSettings(silence_s=0.3), Parts(recogniser, tone_voice))
    parts = [entry for _ in range(5) for entry in ((1.0, 0), (3.0, None))]
    run(cascade, OpenRequest(0, "x"), turns(*parts), RATE_HZ, StreamPlan(1.0))
    assert recogniser.calls == 5


def test_the_semantic_endpointer_answers_at_once_or_at_its_cap(go):
    complete = FixedTurnEnd(0.9)
    result = go([TALK], [(2.0, 0)], turn_end=complete, endpointer="semantic")
    assert onset_s(result) == pytest.approx(2.0 + 0.2 + 0.5, abs=1e-6)
    assert complete.lengths == [pytest.approx(2.2)]
    incomplete = FixedTurnEnd(0.1)
    result = go([TALK], [(2.0, 0)], turn_end=incomplete, endpointer="semantic", cap_s=1.5)
    assert onset_s(result) == pytest.approx(2.0 + 1.5 + 0.5, abs=1e-6)


def test_the_semantic_endpointer_judges_each_silence_anew_and_hears_eight_seconds(go):
    detector = FixedTurnEnd(0.1, 0.9)
    result = go([TALK], [(9.0, 0), (0.4, None), (1.0, 0)], turn_end=detector, endpointer="semantic")
    assert onset_s(result) == pytest.approx(10.4 + 0.2 + 0.5, abs=1e-6)
    assert detector.lengths == [8.0, 8.0]


def test_settings_that_make_no_sense_are_refused(level_recogniser, tone_voice):
    for changes in ({"endpointer": "magic"}, {"latency_s": -1.0}, {"barge_in_s": 0.0}, {"join_s": 0.0}):
        with pytest.raises(ValueError, match="cascade"):
            CascadeSettings(**changes)
    with pytest.raises(ValueError, match="detector"):
        Cascade(CascadeSettings(endpointer="semantic"), Parts(level_recogniser([]), tone_voice))
    with pytest.raises(ValueError, match="colour"):
        create({"colour": "red"})
    with pytest.raises(ValueError, match="silence_s"):
        SilenceEndpointer(0.0)
    with pytest.raises(ValueError, match="check_after_s"):
        SemanticEndpointer(FixedTurnEnd(), RATE_HZ, 3.0, 0.5, 2.0)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 60), st.booleans()), min_size=1, max_size=12))
def test_stretches_are_speech_parted_by_three_tenths_of_silence(runs):
    """Against the plain definition, on tracks made of whole units."""
    flags = [flag for length, flag in runs for _ in range(length)]
    listening = Listening(recogniser=None)
    for flag in flags:
        listening.hear(np.full(UNIT_SAMPLES, 0.2 if flag else 0.0, dtype=np.float32))
    spans, start = [], None
    for at, flag in enumerate([*flags, False]):
        if flag and start is None:
            start = at
        if not flag and start is not None:
            if at - start >= 3:
                spans.append([start, at])
            start = None
    joined = []
    for span in spans:
        if joined and span[0] - joined[-1][1] < 15:
            joined[-1][1] = span[1]
        else:
            joined.append(span)
    assert [[stretch.start, stretch.stop] for stretch in listening.stretches] == joined
