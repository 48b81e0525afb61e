import json

import pytest

from duplex_bench.judging import embedded_judge
from duplex_bench.judging.embedded_judge import EmbeddedJudgeSettings, judge
from duplex_bench.judging.rubrics import RUBRIC_IDS, RubricError, rubric
from duplex_bench.judging.strict import GoldAnswerError
from duplex_bench.records.score import Question

pytestmark = pytest.mark.unit


def question(name: str, **fields: str) -> Question:
    return Question("q1", "w1", name, fields)


def test_answers() -> None:
    found = judge(question("answer_correctness", gold="Thursday at five", answer="On Thursday, at 5."))
    assert (found.question_id, found.rubric, found.rubric_version) == ("q1", "answer_correctness", 1)
    assert (found.verdict, found.reason) == ("correct", "2 of 2 content words of the gold answer")
    assert json.loads(found.raw) == {"found": ["5", "thursday"], "missing": [], "min_share": 1.0}
    assert judge(question("answer_correctness", gold="Thursday at five", answer="Thursday.")).verdict == "incorrect"
    half = EmbeddedJudgeSettings(min_share=0.5)
    assert judge(question("answer_correctness", gold="Thursday at five", answer="Thursday."), half).verdict == "correct"


@pytest.mark.parametrize(
    ("text", "verdict"),
    [("Mm-hmm.", "acknowledgement"), ("It is seven.", "intrusion"), ("Okay, Bob.", None), ("", None)],
)
def test_acknowledgements(text: str, verdict: str | None) -> None:
    found = judge(question("acknowledgement", text=text, turn="Bob, can you come?"))
    assert found.verdict == verdict
    assert found.reason
    assert found.reason.startswith("undecided") == (verdict is None)


@pytest.mark.parametrize("name", RUBRIC_IDS)
def test_every_verdict_is_one_the_rubric_allows(name: str) -> None:
    for text in ("", "yes", "seven", "okay bob", "a long answer about nothing"):
        verdict = judge(question(name, gold="seven", answer=text, text=text)).verdict
        assert verdict is None or verdict in rubric(name).verdicts


def test_the_version_names_all_that_decides() -> None:
    assert embedded_judge.version("answer_correctness") == "strict/1 normaliser/2 stop-words/1 min_share/1"
    assert embedded_judge.version("answer_correctness", EmbeddedJudgeSettings(0.5)).endswith("min_share/0.5")
    assert embedded_judge.version("acknowledgement") == ("lexicon/acknowledgement_en/1 normaliser/2 stop-words/1")
    assert judge(question("acknowledgement", text="yes")).judge == embedded_judge.version("acknowledgement")


def test_faults_of_the_question_are_errors_not_verdicts() -> None:
    with pytest.raises(RubricError, match="lacks field 'gold'"):
        judge(question("answer_correctness", answer="five"))
    with pytest.raises(RubricError, match="no rule for rubric 'temptation'"):
        judge(question("temptation", text="x"))
    with pytest.raises(GoldAnswerError):
        judge(question("answer_correctness", gold="it is", answer="five"))
    with pytest.raises(ValueError, match="min_share"):
        EmbeddedJudgeSettings(0.0)
