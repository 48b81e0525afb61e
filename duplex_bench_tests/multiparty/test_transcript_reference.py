"""The reference that reads: what it may see, what it decides, and where it is scored."""

import json

import pytest

from duplex_bench.multiparty.reference_scoring import NOT_APPLICABLE, reference_questions, score_reference
from duplex_bench.multiparty.scoring import METRICS_OF_KIND
from duplex_bench.multiparty.transcript_reference import (
    DECIDED_TYPES,
    PROMPTS,
    Case,
    Decided,
    ModelDecider,
    ReferenceSettings,
    ReferenceSettingsError,
    RuleDecider,
    addressee_request,
    case_of,
    decision_request,
    prompt,
)
from duplex_bench.records.score import Judgement
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.model import TextModel

pytestmark = pytest.mark.process

# A changed file needs a new version here and in its head: decisions on other words are not comparable.
KNOWN = {
    "decide": (1, "fd8cd3fdfb04ab60eef9ed220298801b84692b7dfab3bc1c56b918a269722cc6"),
    "addressee": (1, "79e2ff8def1f96d76dde2a45d8d0c80749c08f23901a9a980af4f39e2082d9f5"),
}


def reader(text, body):
    """Responds where the utterance begins with the name; takes everything for said to the group otherwise."""
    now = text.split("just now:\n")[1].split("\n")[0].split(": ", 1)[1]
    called = now.startswith("Aria,")
    if "To whom" in text:
        return {"addressee": "assistant" if called else "group"}
    return {"decision": "RESPOND", "answer": "Seven eggs."} if called else {"decision": "SILENT", "answer": None}


@pytest.fixture
def api(text_api):
    return text_api("gemini", reader)


@pytest.fixture
def decider(api, tmp_path):
    return ModelDecider(TextModel(api.settings(), FolderStore(tmp_path / "store")))


def test_no_prompt_changes_silently():
    assert {name: (prompt(name).version, prompt(name).sha256) for name in PROMPTS} == KNOWN


def test_a_decision_sees_what_was_said_before_and_nothing_else(explicit_script):
    for number, turn in enumerate(explicit_script.utterances):
        case = case_of(explicit_script, turn.utterance_id)
        for request in (decision_request(case, 0), addressee_request(case, 0)):
            text = json.dumps([part.text for part in request.turns])
            assert turn.text in text
            assert all(earlier.text in text for earlier in explicit_script.utterances[:number])
            assert not any(later.text in text for later in explicit_script.utterances[number + 1 :])
            assert "Ben" in text
            # The gold answer and the labels are sealed.
            assert explicit_script.gold_answer not in text
            assert not any(label in text for label in ("N1", "N2", "N3", "N4", "gold", turn.utterance_id))


def test_a_model_decides_each_utterance_and_names_the_addressee(decider, explicit_script, api):
    found = {
        turn.utterance_id: decider.decide(case_of(explicit_script, turn.utterance_id), 0)
        for turn in explicit_script.utterances
        if turn.turn_type in DECIDED_TYPES
    }
    assert found["u03"] == Decided(True, "Seven eggs.", "assistant")
    assert found["u04"] == Decided(False, "", "group")
    assert len(found) == 8
    assert len(api.seen) == 16


def test_an_unreadable_decision_is_none_with_the_reason(decider, explicit_script, api):
    api.mishaps.extend(["I would respond."] * 2)
    found = decider.decide(case_of(explicit_script, "u03"), 0)
    assert found.respond is None
    assert found.answer == ""
    assert found.addressee == "assistant"
    assert "not JSON" in found.reason


def test_runs_are_asked_apart_and_equal_words_once(decider, explicit_script, implicit_script, api):
    case = case_of(explicit_script, "u02")
    # Before T both forms say the same.
    assert decider.key(case, 0) == decider.key(case_of(implicit_script, "u02"), 0)
    assert decider.key(case, 0) != decider.key(case, 1)
    for run in (0, 0, 1):
        decider.decide(case, run)
    assert len(api.seen) == 4
    assert not decider.needs_call(case, 1)


@pytest.mark.parametrize(
    ("text", "respond", "addressee"),
    [
        ("Aria, how many eggs do we have?", True, "assistant"),
        ("Okay Aria, when is it?", True, "assistant"),
        ("When is it, Aria?", True, "assistant"),
        ("Can anyone tell me how many eggs we have?", True, "assistant"),
        ("I asked Aria about it yesterday.", False, "group"),
        ("Aria told me a joke yesterday.", False, "group"),
        ("Carla, can anyone reach that?", False, "C"),
        ("Ben, could you stir the soup?", False, "A"),
        ("Could you stir the soup?", False, "B"),
        ("There are four eggs.", False, "group"),
    ],
)
def test_the_rule_goes_by_names_and_openers(text, respond, addressee):
    case = Case("A", text, (("B", "I counted four eggs in the bowl."),), ("Ben", "Anna", "Carla"), "Aria")
    found = RuleDecider().decide(case, 0)
    assert (found.respond, found.addressee) == (respond, addressee)
    assert bool(found.answer) is respond


def test_the_rule_answers_with_the_nearest_earlier_words():
    before = (("B", "The eggs are in the bowl."), ("A", "It is warm."), ("B", "No, the eggs are on the shelf."))
    case = Case("C", "Aria, where are the eggs?", before, ("Ben", "Anna", "Carla"), "Aria")
    assert RuleDecider().decide(case, 0).answer == "No, the eggs are on the shelf."
    alone = Case("C", "Aria, who won?", before, ("Ben", "Anna", "Carla"), "Aria")
    assert RuleDecider().decide(alone, 0).answer == "I don't know."


def decided(item, respond):
    return {window.labels["utterance_id"]: respond(window) for window in item.reference.windows}


def scores(item, decisions, verdicts=None):
    found = score_reference(item, decisions, verdicts or {})
    assert len(found) == sum(len(METRICS_OF_KIND[window.kind]) for window in item.reference.windows)
    return {(one.window_id, one.metric): one.score for one in found}


def test_the_perfect_reader_passes_where_it_is_scored_and_nowhere_else(item):
    decisions = decided(item, lambda window: Decided(window.kind != "silence", "seven", None))
    (question,) = reference_questions(item, decisions)
    assert question.fields == {
        "gold": "seven", "answer": "seven", "request": "Aria, how many eggs do we have?",
    }  # fmt: skip
    verdict = Judgement(question.question_id, question.rubric, 1, "j", "correct", "", "")
    found = scores(item, decisions, {question.question_id: verdict})
    for (_, metric), score in found.items():
        if metric in NOT_APPLICABLE:
            assert score.reason.startswith("not applicable: ")
        else:
            assert score.value == 1.0


def test_always_and_never_responding_have_their_truth(item):
    always = scores(item, decided(item, lambda window: Decided(True, "", None)))
    never = scores(item, decided(item, lambda window: Decided(False, "", None)))
    for key in always:
        if key[1] == "silence_preservation":
            assert (always[key].value, never[key].value) == (0.0, 1.0)
        if key[1] in {"response_presence", "n4q_window_response"}:
            assert (always[key].value, never[key].value) == (1.0, 0.0)
        if key[1] == "answer_accuracy":
            assert always[key].value == 0.0
            assert never[key].reason == "no response in the window"


def test_no_decision_is_a_reason_and_no_zero(item):
    lost = scores(item, decided(item, lambda window: Decided(None, "", None, "refused: no")))
    assert all(score.value is None for score in lost.values())
    assert scores(item, {})["u03-request", "response_presence"].reason == "no decision: not decided"
    unjudged = scores(item, decided(item, lambda window: Decided(True, "seven", None)))
    assert unjudged["u03-request", "answer_accuracy"].reason == "not judged"


def test_settings_that_cannot_be_followed_say_so():
    for settings in ({"engine": "model"}, {"runs": 0}):
        with pytest.raises(ReferenceSettingsError):
            ReferenceSettings(**settings)
