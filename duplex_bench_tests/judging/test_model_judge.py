"""The model judge over loopback servers: what it sends, what it makes of answers, what it remembers."""

import json

import pytest

from duplex_bench.judging.conflicts import conflict, maker_of
from duplex_bench.judging.embedded_judge import judge as stand_in
from duplex_bench.judging.model_judge import JudgeSettings, JudgeSettingsError, ModelJudge
from duplex_bench.judging.rubrics import RUBRIC_IDS, RubricError, rubric
from duplex_bench.judging.sentinels import judge_sentinels, sentinels
from duplex_bench.records.score import Question
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.settings import CallSettings, ModelSettings

pytestmark = pytest.mark.process

ANSWER = Question(
    "i:w:answer_correctness", "w", "answer_correctness",
    {"request": "Aria, how many?", "gold": "twenty", "answer": "There are twenty {of} them."},
)  # fmt: skip
SPEECH = Question("i:v:acknowledgement", "v", "acknowledgement", {"turn": "I left it there.", "text": "Mm-hm."})


def by_prompt(prompt, body):
    """A judge of sorts: it reads the prompt it is sent."""
    if "answered a spoken request" in prompt:
        gold = prompt.split("Reference answer:\n")[1].split("\n")[0]
        said = prompt.split("recogniser:\n")[1].split("\n\n")[0].lower().replace("10:15", "ten fifteen")
        right = gold.lower() in said and " or " not in said
        return {"reason": f"it says {said}", "verdict": "correct" if right else "incorrect"}
    text = prompt.split("recogniser:\n")[1].split("\n\n")[0]
    return {"reason": text, "verdict": "acknowledgement" if len(text) < 14 else "intrusion"}


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


@pytest.fixture(params=["openai", "anthropic", "gemini"])
def api(request, text_api):
    return text_api(request.param, by_prompt)


@pytest.fixture
def judge(api, store):
    return ModelJudge(TextModel(api.settings(), store, role="judge", calls=CallSettings(first_wait_s=0.0)))


def test_verdicts_come_with_all_that_they_rest_on(judge, api):
    found = judge.judge(ANSWER, "moshi")
    assert (found.verdict, found.rubric, found.judge) == ("correct", "answer_correctness", f"{api.vendor}/a-model")
    assert found.rubric_version == rubric("answer_correctness").version
    told = json.loads(found.raw)
    assert "twenty" in told["response"]
    assert (told["model"], told["output_tokens"], told["readings"]) == ("a-model", 20, 1)
    assert rubric("answer_correctness").render(ANSWER.fields) == api.prompt_in(api.seen[0].body)
    assert judge.judge(SPEECH).verdict == "acknowledgement"


def test_a_verdict_is_never_bought_twice(judge, api):
    assert judge.needs_call(ANSWER)
    judge.judge(ANSWER)
    assert not judge.needs_call(ANSWER)
    judge.judge(ANSWER)
    assert len(api.seen) == 1


@pytest.mark.parametrize("text", ["Correct.", '{"reason": "fine", "verdict": "Correct"}', '{"verdict": "correct"}'])
def test_what_is_not_exactly_a_verdict_is_none(judge, api, text):
    api.mishaps.extend([text] * 2)
    found = judge.judge(ANSWER)
    assert found.verdict is None
    assert found.reason.startswith("unreadable: ")
    assert json.dumps(text)[1:-1] in json.loads(found.raw)["response"]


def test_a_verdict_of_another_rubric_is_none(judge, api):
    api.mishaps.extend([json.dumps({"reason": "r", "verdict": "intrusion"})] * 2)
    assert judge.judge(ANSWER).verdict is None


def test_the_key_holds_model_rubric_and_fields(judge, api, store):
    keys = {judge.key(ANSWER), judge.key(SPEECH)}
    keys.add(judge.key(Question("", "", "answer_correctness", {**ANSWER.fields, "answer": "No."})))
    keys.add(ModelJudge(TextModel(api.settings(model="b-model"), store)).key(ANSWER))
    keys.add(ModelJudge(TextModel(api.settings(max_output_tokens=7), store)).key(ANSWER))
    assert len(keys) == 5
    # Where the question was asked does not matter.
    assert judge.key(Question("other", "x", ANSWER.rubric, ANSWER.fields)) in keys


def test_a_question_without_a_field_is_named(judge):
    with pytest.raises(RubricError, match="lacks field 'gold'"):
        judge.judge(Question("q", "w", "answer_correctness", {"request": "?", "answer": "a"}))


def test_sentinels_are_asked_anew_in_every_run_and_movement_is_seen(judge, api, store):
    first = judge_sentinels(judge, store, "run 1")
    assert first.moved is None
    assert (first.asked, first.wrong, first.no_verdict) == (len(sentinels()), (), ())
    again = judge_sentinels(judge, store, "run 2")
    assert again.moved == ()
    assert len(api.seen) == 2 * len(sentinels())
    api.reply = lambda prompt, body: {
        "reason": "r",
        "verdict": "correct" if "spoken request" in prompt else "intrusion",
    }
    drifted = judge_sentinels(judge, store, "run 3")
    assert set(drifted.moved) == set(drifted.wrong)
    assert "answer-other-number" in drifted.wrong
    assert "speech-listening" in drifted.wrong
    assert "speech-offer" not in drifted.wrong


def test_sentinels_cover_every_verdict_and_the_stand_in_never_contradicts_them():
    assert {(one.question.rubric, one.verdict) for one in sentinels()} == {
        (name, verdict) for name in RUBRIC_IDS for verdict in rubric(name).verdicts
    }
    clear = [one for one in sentinels() if one.question.question_id != "answer-two-values"]
    for one in clear:
        assert stand_in(one.question).verdict in (one.verdict, None), one


@pytest.mark.parametrize(
    ("vendor", "model", "provider", "warned"),
    [
        ("openai", "gpt-4o", "openai", True),
        ("gemini", "gemini-3.1-pro", "google", True),
        ("anthropic", "claude-opus-5", "openai", False),
        ("openai_compatible", "vendor/gpt-oss", "openai", True),
        ("openai_compatible", "some-model", "openai", False),
        ("anthropic", "claude-opus-5", "", False),
    ],
)
def test_a_judge_by_the_maker_of_the_system_is_warned_about(vendor, model, provider, warned):
    url = {"base_url": "http://127.0.0.1/v1"} if vendor == "openai_compatible" else {}
    settings = ModelSettings(vendor, model, **url)
    told = conflict("judge", settings, "the-system", provider)
    assert bool(told) is warned
    assert not warned or (maker_of(settings) in told and "the-system" in told)


def test_judges_that_cannot_be_made_say_so():
    model = ModelSettings("anthropic", "claude-opus-5")
    for settings in ({"engine": "model"}, {"second": model}, {"engine": "model", "model": model, "second": model}):
        with pytest.raises(JudgeSettingsError):
            JudgeSettings(**settings)
