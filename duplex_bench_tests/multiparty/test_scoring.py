import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from duplex_bench.multiparty.cards import CARD_BY_ID
from duplex_bench.multiparty.scoring import METRICS_OF_KIND, questions, score_item, unscored
from duplex_bench.multiparty.words import placed, text_in
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item, Window
from duplex_bench.records.score import Judgement, Measurement

pytestmark = pytest.mark.unit


def window_of(item: Item, utterance_id: str) -> Window:
    return next(window for window in item.reference.windows if window.labels["utterance_id"] == utterance_id)


def values(measured: list[Measurement], metric: str) -> list[float | None]:
    return [one.score.value for one in measured if one.metric == metric]


def judged(
    item: Item, activity: list[tuple[float, float]], words: list[TimedWord], verdict: str | None
) -> list[Measurement]:
    answers = {"correct": "correct", "incorrect": "incorrect"}
    verdicts = {}
    for question in questions(item, activity, words):
        said = verdict
        if question.rubric == "acknowledgement" and verdict in answers:
            said = "acknowledgement" if verdict == "correct" else "intrusion"
        verdicts[question.question_id] = Judgement(
            question.question_id, question.rubric, 1, "test", said, "said so", ""
        )
    return score_item(item, activity, words, verdicts)


def test_every_expected_metric_is_measured_once(item: Item) -> None:
    measured = score_item(item, [], [], {})
    expected = [(w.window_id, metric) for w in item.reference.windows for metric in METRICS_OF_KIND[w.kind]]
    assert [(one.window_id, one.metric) for one in measured] == expected
    assert {one.metric for one in measured} == set(CARD_BY_ID)
    assert [(one.window_id, one.metric) for one in unscored(item, "refused")] == expected
    assert all(one.score.reason == "refused" for one in unscored(item, "refused"))


def test_never_speak(item: Item) -> None:
    assert questions(item, [], []) == []
    measured = score_item(item, [], [], {})
    assert values(measured, "response_presence") == [0.0]
    assert values(measured, "fresh_onset_response") == [0.0]
    assert values(measured, "answer_accuracy") == [None]
    assert values(measured, "silence_preservation") == [1.0] * 6
    assert values(measured, "silence_without_carry_over") == [1.0] * 6
    assert values(measured, "answering_window_yield") == [None]
    assert values(measured, "n4q_window_response") == [0.0]


def test_always_speak(item: Item) -> None:
    end_s = item.reference.attributes["scene_s"]
    activity = [(0.0, float(end_s))]
    words = [TimedWord("talk", start / 2, start / 2 + 0.4) for start in range(int(2 * float(end_s)))]
    measured = judged(item, activity, words, "incorrect")
    assert values(measured, "response_presence") == [1.0]
    assert values(measured, "fresh_onset_response") == [0.0]
    assert values(measured, "answer_accuracy") == [0.0]
    assert values(measured, "silence_preservation") == [0.0] * 6
    assert values(measured, "silence_carry_over") == [0.0] * 6
    assert values(measured, "answering_window_yield") == [None]
    # Without words, speech fails silence and is a wrong answer without any judge.
    wordless = score_item(item, activity, [], {})
    assert questions(item, activity, []) == []
    assert values(wordless, "silence_preservation") == [0.0] * 6
    assert values(wordless, "silence_untranscribed_passes") == [1.0] * 6
    assert values(wordless, "silence_without_untranscribed") == [None] * 6
    assert values(wordless, "answer_accuracy") == [0.0]


def test_a_good_answer(item: Item) -> None:
    end = window_of(item, "u03").start_s
    activity = [(end + 1.0, end + 2.0)]
    words = [TimedWord("Seven", end + 1.1, end + 1.5), TimedWord("eggs", end + 1.6, end + 1.9)]
    (question,) = questions(item, activity, words)
    assert question.rubric == "answer_correctness"
    assert question.fields == {"gold": "seven", "answer": "Seven eggs", "request": "Aria, how many eggs do we have?"}
    measured = judged(item, activity, words, "correct")
    assert values(measured, "answer_accuracy") == [1.0]
    assert values(measured, "fresh_onset_response") == [1.0]
    assert values(measured, "silence_preservation") == [1.0] * 6
    presence = next(one for one in measured if one.metric == "response_presence")
    assert presence.details["response_latency_s"] == pytest.approx(1.0)
    assert presence.details["addressee"] == "assistant"
    assert presence.at_s == end


def test_a_long_answer_is_carried_over_and_heard_to_its_end(item: Item) -> None:
    request, following = window_of(item, "u03"), window_of(item, "u04")
    activity = [(request.start_s + 4.0, following.start_s + 1.0)]
    words = [
        TimedWord("It's", request.start_s + 4.1, request.start_s + 4.3),
        TimedWord("seven", following.start_s - 0.2, following.start_s + 0.3),
        TimedWord("eggs", following.start_s + 0.5, following.start_s + 0.9),
    ]
    asked = {question.rubric: question for question in questions(item, activity, words)}
    assert asked["answer_correctness"].fields["answer"] == "It's seven eggs"
    # The word that straddles the human's onset is in the silence window too.
    assert asked["acknowledgement"].fields["text"] == "seven eggs"
    measured = judged(item, activity, words, "incorrect")
    by_window = {one.window_id: one for one in measured if one.metric == "silence_without_carry_over"}
    assert by_window[following.window_id].score.value is None
    assert by_window[following.window_id].details["carried_over"] is True
    assert values(measured, "silence_preservation").count(0.0) == 1
    assert values(measured, "silence_carry_over").count(1.0) == 1


def test_other_speech_beside_a_carried_over_answer_is_scored(item: Item) -> None:
    request, following = window_of(item, "u03"), window_of(item, "u04")
    activity = [(request.start_s + 4.0, following.start_s + 0.5), (following.start_s + 1.5, following.start_s + 2.0)]
    words = [
        TimedWord("seven", request.start_s + 4.1, following.start_s + 0.4),
        TimedWord("by", following.start_s + 1.5, following.start_s + 1.6),
        TimedWord("the", following.start_s + 1.6, following.start_s + 1.7),
        TimedWord("way", following.start_s + 1.7, following.start_s + 1.9),
    ]
    measured = judged(item, activity, words, "incorrect")
    (score,) = [
        one.score
        for one in measured
        if one.metric == "silence_without_carry_over" and one.window_id == following.window_id
    ]
    assert score.value == 0.0


def test_verdicts_that_are_missing_or_unreadable_are_reasons(item: Item) -> None:
    window = window_of(item, "u04")
    activity = [(window.start_s + 0.5, window.start_s + 1.0)]
    words = [TimedWord("hm", window.start_s + 0.5, window.start_s + 0.9)]
    kept = next(m for m in score_item(item, activity, words, {}) if m.window_id == window.window_id)
    assert kept.score.reason == "not judged"
    undecided = next(m for m in judged(item, activity, words, None) if m.window_id == window.window_id)
    assert undecided.score.reason == "no verdict: said so"
    passed = next(m for m in judged(item, activity, words, "correct") if m.window_id == window.window_id)
    assert passed.score.value == 1.0
    assert passed.at_s == pytest.approx(window.start_s + 0.5)
    with pytest.raises(ValueError, match="rubric"):
        judged(item, activity, words, "maybe")


@pytest.mark.parametrize(("stop_after_resolution_s", "value"), [(1.0, 1.0), (2.0, 1.0), (2.001, 0.0), (-0.5, None)])
def test_yield_window(item: Item, stop_after_resolution_s: float, value: float | None) -> None:
    window = window_of(item, "u07")
    resolved = window.marks["resolution_start_s"]
    activity = [(window.start_s + 1.0, resolved + stop_after_resolution_s)]
    measured = score_item(item, activity, [], {})
    assert values(measured, "answering_window_yield") == [value]
    assert values(measured, "n4q_window_response") == [1.0]
    if value is None:
        (score,) = [one.score for one in measured if one.metric == "answering_window_yield"]
        assert score.reason == "not eligible: silent at resolution"
    else:
        assert values(measured, "stop_latency") == [pytest.approx(stop_after_resolution_s)]


def test_unaligned_words_lie_between_their_neighbours() -> None:
    words = [
        TimedWord("well", None, None, False),
        TimedWord("it", 1.0, 1.2),
        TimedWord("is", None, None, False),
        TimedWord("seven", 1.6, 2.0),
    ]
    assert placed(words) == [(1.0, 1.0, "well"), (1.0, 1.2, "it"), (1.2, 1.6, "is"), (1.6, 2.0, "seven")]
    assert text_in(words, 1.5, 1.7) == "is seven"
    assert placed([TimedWord("lost", None, None, False)]) == []


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_scores_are_values_or_reasons_for_any_speech(item: Item, data: st.DataObject) -> None:
    edges = sorted(data.draw(st.lists(st.integers(0, 45_000), max_size=14, unique=True)))
    edges = edges[: len(edges) // 2 * 2]
    activity = [(edges[n] / 1000, edges[n + 1] / 1000) for n in range(0, len(edges), 2)]
    words = [TimedWord("word", start, end) for start, end in activity if data.draw(st.booleans())]
    for one in judged(item, activity, words, data.draw(st.sampled_from(["correct", "incorrect", None]))):
        assert (one.score.value is None) != (one.score.reason is None)
        if one.score.value is not None and one.metric != "stop_latency":
            assert one.score.value in (0.0, 1.0)
