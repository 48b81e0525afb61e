"""Scores of the track with the embedded judge: reference policies, and answers that the grammar can expect."""

import pytest

from duplex_bench.judging.embedded_judge import judge
from duplex_bench.multiparty.grammar import SIZES, GrammarSettings, generate_pairs
from duplex_bench.multiparty.scoring import questions, score_item
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item
from duplex_bench.records.score import Measurement, Question

pytestmark = pytest.mark.unit


def embedded(item: Item, activity: list[tuple[float, float]], words: list[TimedWord]) -> list[Measurement]:
    verdicts = {question.question_id: judge(question) for question in questions(item, activity, words)}
    return score_item(item, activity, words, verdicts)


def values(measured: list[Measurement], metric: str) -> list[float | None]:
    return [one.score.value for one in measured if one.metric == metric]


def test_always_speak_with_real_words_is_exact(item: Item) -> None:
    loop = ["the", "weather", "was", "lovely", "in", "the", "mountains", "and", "everybody", "went", "swimming"]
    end_s = float(item.reference.attributes["scene_s"])
    words = [TimedWord(loop[n % len(loop)], n * 0.3, n * 0.3 + 0.25) for n in range(int(end_s / 0.3))]
    measured = embedded(item, [(0.0, end_s)], words)
    assert values(measured, "response_presence") == [1.0]
    assert values(measured, "fresh_onset_response") == [0.0]
    assert values(measured, "answer_accuracy") == [0.0]
    assert values(measured, "silence_preservation") == [0.0] * 6
    assert values(measured, "answering_window_yield") == [None]


def test_a_backchannel_passes(item: Item) -> None:
    window = next(window for window in item.reference.windows if window.kind == "silence")
    spoken = [(window.start_s + 0.5, window.start_s + 0.8)]
    measured = embedded(item, spoken, [TimedWord("Mm-hmm.", *spoken[0])])
    assert values(measured, "silence_preservation") == [1.0] * 6
    intruding = embedded(item, spoken, [TimedWord("Rome", *spoken[0])])
    assert values(intruding, "silence_preservation").count(0.0) == 1


def test_gold_answers_are_found_in_plain_sentences_and_not_elsewhere() -> None:
    pairs = generate_pairs(GrammarSettings(110, seed=2, size=SIZES["demo"]))
    for pair in pairs:
        gold = pair.explicit.gold_answer
        for answer, verdict in ((f"That would be {gold}.", "correct"), ("I am not sure about that.", "incorrect")):
            fields = {"gold": gold, "answer": answer, "request": pair.explicit.request.text}
            assert judge(Question("q", "w", "answer_correctness", fields)).verdict == verdict, (gold, answer)
        # No request gives its own answer away.
        for script in (pair.explicit, pair.implicit):
            fields = {"gold": gold, "answer": script.request.text, "request": script.request.text}
            assert judge(Question("q", "w", "answer_correctness", fields)).verdict == "incorrect", script.request.text
