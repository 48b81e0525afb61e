"""The script engine over a text model: a fake writer on loopback that makes the mistakes writers make."""

import json
import re

import pytest

from duplex_bench.multiparty.llm.drafts import Draft, pair_of
from duplex_bench.multiparty.llm.engine import distinct, plan_cost, scenario_key, write_scenario
from duplex_bench.multiparty.llm.plan import PROMPTS, THIRDS, plan_scenario, prompt, writing_request
from duplex_bench.multiparty.llm.settings import FAMILIES, LlmScriptError, LlmSettings
from duplex_bench.multiparty.spoken import cardinal
from duplex_bench.multiparty.validate import pair_faults
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.errors import ModelUnavailableError
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.settings import CallSettings, ModelSettings

pytestmark = pytest.mark.process

# A changed file needs a new version here and in its head: scripts of other words are not comparable.
KNOWN = {
    "write_scenario": (1, "b3727943f9d4222f9c7cc201a5230a9657a5629b24867b04f00844843edadffa"),
    "feedback": (1, "8cc1c0c2b6e78e4f5a3208241ef2e7f7c15db1d780e9bb1aeff6533b57b4b165"),
}


def draft_for(text, number=0):
    """What an obedient writer hands back: it reads names and sizes in the prompt."""
    names = dict(re.findall(r"([A-D]) = (\w+)", text))
    sizes = re.search(r"Write (\d+) turns: one T; (\d+) turns .* them (\d+) N1 and (\d+) N3; (\d+) N4Q", text)
    _, silent, n1, n3, n4 = map(int, sizes.groups())
    salt = int(re.search(r"do not mention it\): (\d+)", text).group(1)) + number
    first, second = 3 + salt % 11, 2 + salt // 11 % 9
    word = f"w{salt % 97}"
    turns = [
        ("A", "N2", f"There are {cardinal(first)} lamps with {word} in the hall.", "group", None),
        ("B", "N2", f"And {cardinal(second)} more of {word} upstairs.", "group", None),
    ]
    fill = [("A", "N1", f"{names['B']}, could you carry the {word} ladder?", "B", None)] * n1
    fill += [("B", "N3", f"Aria told me about {word} and a joke.", "group", None)] * n3
    people = list(names)
    fill += [
        (people[n % len(people)], "N2", f"I like {word} on day {cardinal(n + 40)}.", "group", None)
        for n in range(silent - 2 - n1 - n3)
    ]
    turns += fill[: len(fill) // 2]
    turns.append(("C", "T", f"Aria, how many lamps of {word} are there?", "assistant", None))
    turns += fill[len(fill) // 2 :]
    for _ in range(n4):
        turns.append(("A", "N4Q", f"Aria, where is the {word} tape?", "assistant", "in the drawer"))
        turns.append(("C", "N4R", "It's in the drawer.", "A", None))
    turns.append(("D" if "D" in names else "B", "N2", f"Good, {word} it is.", "group", None))
    keys = ("speaker", "type", "text", "to", "answer")
    return {
        "turns": [dict(zip(keys, turn, strict=True)) for turn in turns],
        "implicit_request": f"Can someone say how many lamps of {word} there are?",
        "implicit_before": None,
        "gold_answer": cardinal(first + second),
        "operation": "sum",
        "evidence": [
            {"turn": 1, "quote": cardinal(first), "number": first, "key": ""},
            {"turn": 2, "quote": cardinal(second), "number": second, "key": ""},
        ],
    }


def faulty(text, change):
    draft = draft_for(text)
    change(draft)
    return draft


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


@pytest.fixture
def api(text_api):
    return text_api("anthropic", lambda prompt, body: draft_for(prompt))


@pytest.fixture
def settings(api):
    return LlmSettings(api.settings(max_output_tokens=4000), n_pairs=6, seed=3)


@pytest.fixture
def model(settings, store):
    return TextModel(settings.model, store, calls=CallSettings(first_wait_s=0.0), role="script writer")


def test_no_prompt_changes_silently():
    assert {name: (prompt(name).version, prompt(name).sha256) for name in PROMPTS} == KNOWN


def test_what_is_written_passes_every_rule_and_follows_its_plan(model, settings):
    written = [write_scenario(model, settings, index) for index in range(settings.n_pairs)]
    pairs, refused = distinct(written, settings)
    assert len(pairs) == 6
    assert not refused
    assert all(not pair_faults(pair) for pair in pairs)
    assert all(one.drafts == 1 for one in written)
    for index, pair in enumerate(pairs):
        plan = plan_scenario(settings, index)
        assert pair.scenario_id == plan.scenario_id
        assert pair.explicit.names == plan.names
        assert pair.explicit.n_humans == plan.n_humans
        assert pair.rewritten == (pair.explicit.request.utterance_id,)


MISTAKES = [
    ("the gold answer is wrong", lambda draft: draft.update(gold_answer="ninety"), "the facts give"),
    ("T names nobody", lambda draft: draft.update(implicit_request="Aria, how many?"), "the implicit form says 'Aria'"),
    ("two requests", lambda draft: draft["turns"][0].update(type="T", to="assistant"), "there are 2 turns of type T"),
    ("evidence is not said", lambda draft: draft["evidence"][0].update(quote="ninety"), "is not said there"),
    ("evidence of no turn", lambda draft: draft["evidence"][0].update(turn=99), "evidence names turn 99"),
    ("no evidence", lambda draft: draft.update(evidence=[]), "has no evidence"),
    ("a label is spoken", lambda draft: draft["turns"][1].update(text="[laughs] N2 seven"), "the speech contains"),
    ("half of it", lambda draft: draft.update(turns=draft["turns"][:4]), "turns of types N1, N2 and N3"),
    ("the role is named", lambda draft: draft.update(implicit_request="Computer, how many?"), "says 'computer'"),
]


@pytest.mark.parametrize(("change", "reason"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_a_bad_draft_goes_back_with_the_reason(api, model, settings, change, reason):
    api.reply = lambda text, body: faulty(text, change) if "was not accepted" not in text else draft_for(text)
    written = write_scenario(model, settings, 0)
    assert written.pair is not None
    assert written.drafts == 2
    second = api.prompt_in(api.seen[1].body)
    assert reason in second
    assert any(reason in told for told in written.rejected[0])


def test_who_never_learns_is_given_up_with_the_reason(api, model, settings):
    api.reply = lambda text, body: faulty(text, lambda draft: draft.update(gold_answer="ninety"))
    written = write_scenario(model, settings, 0)
    assert written.pair is None
    assert (written.drafts, "the facts give" in written.reason) == (settings.attempts, True)
    pairs, refused = distinct([written], settings)
    assert not pairs
    assert "no acceptable draft of 4" in refused[0]


def test_malformed_output_is_fed_back_and_a_refusal_is_not_argued_with(api, model, settings):
    api.mishaps.extend(["Once upon a time"] * 2)
    written = write_scenario(model, settings, 0)
    assert written.drafts == 2
    assert "the answer is not JSON" in api.prompt_in(api.seen[-1].body)
    seen = len(api.seen)
    api.mishaps.append(api.wrapped("", finish="refusal"))
    written = write_scenario(model, settings, 1)
    assert written.pair is None
    assert written.reason.startswith("refused")
    assert len(api.seen) == seen + 1


def test_rate_limits_and_cut_connections_are_ridden_out(api, model, settings):
    limited = {"type": "error", "error": {"type": "rate_limit_error", "message": "slow"}}
    api.mishaps.extend([(429, limited, {"retry-after": "0"}), "cut"])
    assert write_scenario(model, settings, 0).drafts == 1
    assert len(api.seen) == 3


def test_an_interrupted_scenario_resumes_from_its_drafts(api, settings, store):
    calls = CallSettings(attempts=1)
    api.reply = lambda text, body: faulty(text, lambda draft: draft.update(gold_answer="ninety"))
    api.mishaps.extend([None, (503, {"error": {}})])
    with pytest.raises(ModelUnavailableError):
        write_scenario(TextModel(settings.model, store, calls=calls), settings, 0)
    api.reply = lambda text, body: draft_for(text)
    again = write_scenario(TextModel(settings.model, store, calls=calls), settings, 0)
    assert again.drafts == 2
    assert len(api.seen) == 3


def test_plans_do_not_depend_on_how_many_there_are(settings):
    more = LlmSettings(settings.model, n_pairs=600, seed=3)
    assert [plan_scenario(settings, n) for n in range(6)] == [plan_scenario(more, n) for n in range(6)]
    plans = [plan_scenario(more, n) for n in range(600)]
    assert len({plan.scenario_id for plan in plans}) == 600
    assert {third: sum(plan.third == third for plan in plans) for third in THIRDS} == dict.fromkeys(THIRDS, 200)
    assert {plan.family for plan in plans} == set(FAMILIES)
    mean = sum(plan.n_silence for plan in plans) / 600
    assert abs(mean - more.size.silence_turns_mean) < 0.2
    assert 0.4 < sum(plan.n_humans == 4 for plan in plans) / 600 < 0.6
    assert all(plan.names == tuple(dict.fromkeys(plan.names)) for plan in plans)


def test_the_key_holds_model_prompt_and_plan(model, settings, store):
    keys = {scenario_key(model, settings, n) for n in range(3)}
    other = TextModel(ModelSettings("anthropic", "b", base_url=settings.model.base_url), store)
    keys.add(scenario_key(other, settings, 0))
    keys.add(scenario_key(model, LlmSettings(settings.model, seed=4), 0))
    assert len(keys) == 5


def test_scripts_too_alike_are_left_out(model, settings):
    one = write_scenario(model, settings, 0)
    pairs, refused = distinct([one, one], settings)
    assert len(pairs) == 1
    assert "100% of its text" in refused[0]


def test_the_plan_of_costs_says_what_the_cache_saves(api, settings, store):
    priced = api.settings(max_output_tokens=4000, input_usd_per_million=5.0, output_usd_per_million=25.0)
    chosen = LlmSettings(priced, n_pairs=6, seed=3)
    model = TextModel(priced, store)
    before = plan_cost(model, chosen)
    assert (before.requests, before.cached) == (6, 0)
    assert 0 < before.usd_low < before.usd_high
    assert before.output_tokens_high == 6 * 4000 * chosen.attempts
    write_scenario(model, chosen, 0)
    after = plan_cost(model, chosen)
    assert after.cached == 1
    assert after.usd_high < before.usd_high


def test_settings_that_cannot_be_followed_say_so():
    model = ModelSettings("openai", "m")
    for settings in ({"n_pairs": 0}, {"domains": ("moon",)}, {"families": ("rhyme",)}, {"four_humans_share": 2.0}):
        with pytest.raises(LlmScriptError):
            LlmSettings(model, **settings)


def test_an_implicit_form_may_revise_the_turn_before(settings):
    plan = plan_scenario(settings, 0)
    text = writing_request(plan, ()).turns[0].text
    draft = draft_for(text)
    at = next(n for n, turn in enumerate(draft["turns"]) if turn["type"] == "T")
    leads = {
        "N1": f"{plan.names[1]}, could you carry that now?",
        "N2": "Well, nobody counted.",
        "N3": "Somebody asked that yesterday.",
    }
    draft["implicit_before"] = leads[draft["turns"][at - 1]["type"]]
    pair, problems = pair_of(Draft.model_validate_json(json.dumps(draft)), plan)
    assert not problems
    assert len(pair.rewritten) == 2
