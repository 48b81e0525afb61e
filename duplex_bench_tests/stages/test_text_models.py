"""Stages over text models: judges, scripts, transcript reference; resumed, counted, within budget, no key left."""

import copy
import re

import polars as pl
import pytest

from duplex_bench.judging.sentinels import sentinels
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.multiparty.transcript_reference import RULE_SYSTEM, SYSTEM
from duplex_bench.multiparty.validate import pair_faults
from duplex_bench.records.score import Question
from duplex_bench.stages import checks, judges, multiparty, scoring, summary
from duplex_bench.stages.profile import ProfileError, parse_profile
from duplex_bench.stages.stand_ins import stand_ins_of
from duplex_bench.stages.text_costs import spent_usd, text_costs
from duplex_bench.stages.transcript_reference import transcript_reference
from duplex_bench.storage.frames import read_frame, write_frame
from duplex_bench.storage.serial import from_json
from duplex_bench.textmodels.errors import MissingKeyError
from duplex_bench.textmodels.spend import SpendLedger

pytestmark = pytest.mark.process

ALL_KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "LOCAL_KEY")


def plain_judge(prompt, body):
    """Right where the gold answer is said; acknowledgement where little is said."""
    said = prompt.split("recogniser:\n")[1].split("\n\n")[0].lower().replace("10:15", "ten fifteen")
    if "spoken request" in prompt:
        gold = prompt.split("Reference answer:\n")[1].split("\n")[0].lower()
        return {"reason": said, "verdict": "correct" if gold in said and " or " not in said else "incorrect"}
    return {"reason": said, "verdict": "acknowledgement" if len(said) < 14 else "intrusion"}


def asked(count=3):
    found = []
    for n in range(count):
        fields = {
            "request": "Aria, how many?",
            "gold": "twenty",
            "answer": f"About {'twenty' if n % 2 else 'ten'} {n}.",
        }
        question = Question(f"i{n}:u03-request:answer_correctness", "u03-request", "answer_correctness", fields)
        found.append(judges.Asked(f"i{n}", f"r{n}", question))
    fields = {"turn": "It rains.", "text": "Mm-hm."}
    found.append(
        judges.Asked("i0", "r0", Question("i0:u05-silence:acknowledgement", "u05-silence", "acknowledgement", fields))
    )
    return found


def model_table(api, **more):
    return {"vendor": api.vendor, "model": "a-model", "base_url": api.url, **more}


@pytest.fixture
def opened(tmp_path, small_workspace):
    """Opens the small workspace with more settings merged into its profile."""
    base = small_workspace(tmp_path).profile

    def build(**more):
        table = {
            "name": base.name,
            "seed": base.seed,
            "multiparty": {"grammar": {"n_pairs": 2, "seed": 3}, **more.pop("multiparty", {})},
            "conversation": {"generator": {"n_sessions": 1}},
            "statistics": {"n_resamples": 50},
            **more,
        }
        return small_workspace(tmp_path, copy.deepcopy(table))

    return build


def test_a_model_judges_what_the_profile_names_it_for(text_api, opened):
    api = text_api("openai", plain_judge)
    workspace = opened(judge={"engine": "model", "model": model_table(api)})
    result = judges.judged(workspace, "multiparty", "some-system", asked())
    verdicts = dict(result.frame.select("item_id", "verdict").filter(pl.col("item_id") != "i0").iter_rows())
    assert verdicts == {"i1": "correct", "i2": "incorrect"}
    assert set(result.frame["judge"]) == {"openai/a-model"}
    assert checks.verdict_share(result.frame).passed
    assert result.counts["computed"] == 4
    # Only the sentinels of the rubrics that this track asks about.
    asked_of = {"answer_correctness", "acknowledgement"}
    assert result.counts["judge_sentinels"] == sum(one.question.rubric in asked_of for one in sentinels())
    assert result.counts["judge_sentinels_wrong"] == 0
    # Scores find them by the question's id.
    by_rollout = scoring.verdicts_by_rollout(result.frame)
    assert by_rollout["r1"]["i1:u03-request:answer_correctness"].verdict == "correct"
    calls = list(SpendLedger(workspace.store).calls())
    assert {(call.role, call.subject) for call in calls} == {("judge", "some-system"), ("judge", "sentinels")}


def test_judging_again_buys_nothing_and_needs_no_key(text_api, opened, monkeypatch):
    api = text_api("anthropic", plain_judge)
    workspace = opened(judge={"engine": "model", "model": model_table(api)})
    first = judges.judged(workspace, "multiparty", "s", asked())
    seen = len(api.seen)
    for name in ALL_KEYS:
        monkeypatch.delenv(name)
    again = judges.judged(workspace, "multiparty", "s", asked())
    assert again.frame.equals(first.frame)
    assert len(api.seen) == seen
    # Another system with the same words is judged from the same responses.
    assert judges.judged(workspace, "multiparty", "t", asked()).counts["verdicts"] == 4
    assert len(api.seen) == seen
    with pytest.raises(MissingKeyError, match="ANTHROPIC_API_KEY"):
        judges.judged(workspace, "multiparty", "s", asked(5))


def test_calls_that_fail_are_counted_and_tried_again(text_api, opened):
    api = text_api("openai", plain_judge)
    calls = {"attempts": 1, "concurrency": 1}
    workspace = opened(judge={"engine": "model", "model": model_table(api), "sentinels": False}, text_calls=calls)
    api.mishaps.extend([(503, {"error": {"message": "down"}}), (400, {"error": {"message": "odd"}})])
    result = judges.judged(workspace, "multiparty", "s", asked())
    assert (result.counts["failed"], result.counts["computed"], result.frame.height) == (2, 2, 2)
    assert "HTTP 503" in result.note
    assert "HTTP 400" in result.note
    after = judges.judged(workspace, "multiparty", "s", asked())
    assert (after.counts["failed"], after.counts["reused"], after.frame.height) == (0, 2, 4)


def test_a_run_made_again_over_the_same_questions_asks_its_sentinels_anew(text_api, opened):
    questions = asked()[:1]
    of_rubric = sum(one.question.rubric == questions[0].question.rubric for one in sentinels())

    def then_down(prompt, body):
        if len(api.seen) == of_rubric:
            api.mishaps.append((503, {"error": {"message": "down"}}))
        return plain_judge(prompt, body)

    api = text_api("openai", then_down)
    workspace = opened(judge={"engine": "model", "model": model_table(api)}, text_calls={"attempts": 1})
    lost = judges.judged(workspace, "multiparty", "s", questions)
    assert (lost.counts["failed"], len(api.seen)) == (1, of_rubric + 1)
    again = judges.judged(workspace, "multiparty", "s", questions)
    assert (again.counts["computed"], again.counts["judge_sentinels"]) == (1, of_rubric)
    assert len(api.seen) == 2 * (of_rubric + 1)


def test_a_second_judge_scores_nothing_and_its_agreement_is_told(text_api, opened):
    first = text_api("openai", plain_judge)
    second = text_api("gemini", lambda prompt, body: {**plain_judge(prompt, body), "verdict": "incorrect"}
                      if "spoken request" in prompt else "what?")  # fmt: skip
    workspace = opened(judge={"engine": "model", "model": model_table(first), "second": model_table(second)})
    result = judges.judged(workspace, "multiparty", "s", asked())
    assert set(result.frame["judge"]) == {"openai/a-model"}
    assert result.counts["second_judge_answer_correctness_both"] == 3
    assert result.counts["second_judge_answer_correctness_agreement"] == pytest.approx(2 / 3, abs=1e-4)
    assert result.counts["second_judge_acknowledgement_undecided_by_one"] == 1
    assert result.counts["second_judge_sentinels_wrong"] > 0
    stored = read_frame(workspace.store, workspace.table_key(("multiparty", judges.SECOND), "s"))
    assert set(stored["judge"]) == {"gemini/a-model"}
    assert stored["verdict"].null_count() == 1


def test_a_judge_by_the_maker_of_the_system_is_told(text_api, opened):
    api = text_api("openai", plain_judge)
    workspace = opened(judge={"engine": "model", "model": model_table(api), "sentinels": False})
    folder = workspace.systems_folder
    folder.mkdir(parents=True)
    (folder / "theirs.toml").write_text(
        'name = "theirs"\ntitle = "Theirs"\nfamily = "hosted"\nadapter = "a.b:c"\nprovider = "openai"\n'
        'licence = "terms"\n'
    )
    result = judges.judged(workspace, "multiparty", "theirs", asked())
    assert result.counts["vendor_conflicts"] == 1
    assert "both by OpenAI" in result.note
    assert "vendor_conflicts" not in judges.judged(workspace, "multiparty", "other", asked()).counts


def test_the_budget_ends_judging_and_keeps_what_it_bought(text_api, opened):
    api = text_api("openai", plain_judge)
    priced = model_table(api, input_usd_per_million=100.0, output_usd_per_million=1000.0, max_output_tokens=200)
    settings = {"engine": "model", "model": priced, "sentinels": False}
    calls = {"budget_usd": 0.5, "block_usd": 0.1, "concurrency": 1}
    workspace = opened(judge=settings, text_calls=calls)
    result = judges.judged(workspace, "multiparty", "s", asked(40))
    assert 0 < result.counts["computed"] < 41
    assert result.counts["failed"] == 41 - result.counts["computed"]
    assert "raise budget_usd" in result.note
    assert SpendLedger(workspace.store).counted_usd() <= 0.5
    richer = opened(judge=settings, text_calls={**calls, "budget_usd": 50.0})
    after = judges.judged(richer, "multiparty", "s", asked(40))
    assert (after.counts["failed"], after.counts["reused"]) == (0, result.counts["computed"])


def writer(prompt, body):
    """A conversation that follows the plan in the prompt; the first draft of every other one is wrong."""
    names = dict(re.findall(r"([A-D]) = (\w+)", prompt))
    silent, n1, n3, n4 = map(int, re.search(
        r"one T; (\d+) turns .* them (\d+) N1 and (\d+) N3; (\d+) N4Q", prompt
    ).groups())  # fmt: skip
    word = f"w{re.search(r'do not mention it.: (.+)', prompt).group(1)}"
    people = list(names)
    turns = [("A", "N2", f"There are four lamps with {word} here.", "group", None),
             ("B", "N2", f"And three more of {word} upstairs.", "group", None)]  # fmt: skip
    turns += [("A", "N1", f"{names['B']}, could you carry {word}?", "B", None)] * n1
    turns.append(("C", "T", f"Aria, how many lamps of {word} are there?", "assistant", None))
    turns += [("B", "N3", f"Aria told me about {word} and a joke.", "group", None)] * n3
    turns += [
        (people[n % len(people)], "N2", f"I like {word} a lot.", "group", None) for n in range(silent - 2 - n1 - n3)
    ]
    turns += [("A", "N4Q", "Aria, where is the tape?", "assistant", "in the drawer"),
              ("C", "N4R", "It's in the drawer.", "A", None)] * n4  # fmt: skip
    turns.append((people[-1], "N2", "Good then.", "group", None))
    wrong = int(word[1:]) % 2 and "was not accepted" not in prompt
    return {
        "turns": [dict(zip(("speaker", "type", "text", "to", "answer"), turn, strict=True)) for turn in turns],
        "implicit_request": f"Can someone say how many lamps of {word} there are?",
        "implicit_before": None,
        "gold_answer": "nine" if wrong else "seven",
        "operation": "sum",
        "evidence": [
            {"turn": 1, "quote": "four", "number": 4, "key": ""},
            {"turn": 2, "quote": "three", "number": 3, "key": ""},
        ],
    }


def test_scripts_by_a_model_become_scenes_and_are_read_by_the_reference(text_api, opened, quick_engines):
    scripts = text_api("openai", writer)

    def read(prompt, body):
        now = prompt.split("just now:\n")[1].split("\n")[0].split(": ", 1)[1]
        if "To whom" in prompt:
            return {"addressee": "assistant" if "Aria," in now else "group"}
        return {"decision": "RESPOND", "answer": "Seven."} if "Aria," in now else {"decision": "SILENT", "answer": None}

    reader = text_api("gemini", read)
    workspace = opened(
        multiparty={
            "engine": "llm",
            "llm": {"n_pairs": 3, "seed": 5, "model": model_table(scripts, max_output_tokens=6000)},
            "reference": {"engine": "model", "model": model_table(reader)},
        }
    )
    written = multiparty.scenarios(workspace)
    assert written.frame.height == 3
    assert written.counts["engine"] == "openai/a-model"
    assert written.counts["drafts"] == 3 + 3 - written.counts["accepted_at_first"]
    assert all(not pair_faults(from_json(Pair, text)) for text in written.frame["pair"])
    seen = len(scripts.seen)
    assert multiparty.scenarios(workspace).frame.equals(written.frame)
    assert len(scripts.seen) == seen
    pairs = multiparty.pairs(workspace, written.frame).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    items = multiparty.items(workspace, pairs, multiparty.scenes(workspace, pairs, speech).frame).frame

    found = transcript_reference(workspace, pairs, items)
    table = found.measurements.frame
    assert checks.measurements_add_up("multiparty", table, items).passed
    assert found.measurements.counts["explicit_response"] == 1.0
    assert found.measurements.counts["implicit_response"] == 0.0
    assert found.measurements.counts["run_agreement"] == 1.0
    present = table.filter(pl.col("metric") == "response_presence")
    assert dict(present.group_by("condition").agg(pl.col("value").mean()).iter_rows()) == {
        "explicit": 1.0, "implicit": 0.0,
    }  # fmt: skip
    right = table.filter((pl.col("metric") == "answer_accuracy") & (pl.col("condition") == "explicit"))
    assert right["value"].to_list() == [1.0] * 3
    assert set(table.filter(pl.col("metric") == "stop_latency")["reason"]) == {
        "not applicable: a decision on a transcript cannot stop speaking"
    }
    estimates, comparisons = summary.aggregate(workspace, "multiparty", {}, table)
    shown = estimates.frame.filter((pl.col("metric") == "response_presence") & (pl.col("condition") == "explicit"))
    assert shown.select("system", "estimate", "tie_group").rows() == [(SYSTEM, 1.0, None)]
    assert comparisons.frame.height == 0

    asked_before = len(reader.seen)
    again = transcript_reference(workspace, pairs, items)
    assert again.measurements.frame.equals(table)
    assert len(reader.seen) == asked_before
    written_bytes = b"".join(path.read_bytes() for path in workspace.data.rglob("*") if path.is_file())
    assert text_api.canary.encode() not in written_bytes
    assert b"Can someone say how many lamps" in written_bytes


def test_two_runs_that_differ_are_told(text_api, opened, quick_engines):
    turn = {"n": 0}

    def unsure(prompt, body):
        if "To whom" in prompt:
            return {"addressee": "group"}
        turn["n"] += 1
        return {"decision": "RESPOND" if turn["n"] % 3 == 0 else "SILENT", "answer": None}

    reader = text_api("anthropic", unsure)
    workspace = opened(multiparty={"reference": {"engine": "model", "model": model_table(reader)}})
    pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    items = multiparty.items(workspace, pairs, multiparty.scenes(workspace, pairs, speech).frame).frame
    found = transcript_reference(workspace, pairs, items)
    (shares,) = (table.frame for table in summary.stored_tables(workspace, found.tables.frame)
                 if table.id == "transcript_reference")  # fmt: skip
    agreed = shares.filter(pl.col("measure") == "decisions that agree").row(0, named=True)
    assert 0 < agreed["share"] < 1
    assert agreed["n"] == agreed["n_expected"]
    assert agreed["kappa"] < 1
    assert set(shares["run"]) == {"1", "2", "1 and 2"}


def test_the_rule_reads_without_a_key_and_off_makes_nothing(opened, quick_engines, monkeypatch):
    for name in ALL_KEYS:
        monkeypatch.delenv(name, raising=False)
    workspace = opened()
    pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    items = multiparty.items(workspace, pairs, multiparty.scenes(workspace, pairs, speech).frame).frame
    found = transcript_reference(workspace, pairs, items)
    assert checks.measurements_add_up("multiparty", found.measurements.frame, items).passed
    assert set(found.measurements.frame["system"]) == {RULE_SYSTEM}
    assert "stand-in" in summary.stored_tables(workspace, found.tables.frame)[0].caption
    off = transcript_reference(opened(multiparty={"reference": {"engine": "off"}}), pairs, items)
    assert off.measurements.frame.height == 0
    assert off.tables.frame.height == 0


def test_a_profile_names_only_the_stand_ins_that_it_uses(opened):
    names = {one.role for one in stand_ins_of(opened().profile)}
    assert {"answer judge", "acknowledgement judge", "scripts", "transcript reference"} <= names
    model = {"vendor": "anthropic", "model": "claude-opus-5"}
    real = opened(
        judge={"engine": "model", "model": model},
        multiparty={"engine": "llm", "llm": {"model": model}, "reference": {"engine": "off"}},
    )
    left = {one.role for one in stand_ins_of(real.profile)}
    assert names - left == {"answer judge", "acknowledgement judge", "scripts", "transcript reference"}


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"judge": {"engine": "model"}}, "name one in judge.model"),
        ({"judge": {"engine": "model", "model": {"vendor": "acme", "model": "m"}}}, "judge.model.vendor"),
        ({"judge": {"engine": "model", "model": {"vendor": "openai", "model": "m", "key": "k"}}}, "judge.model.key"),
        ({"text_calls": {"budget_usd": -1}}, "budget_usd"),
    ],
)
def test_a_profile_that_cannot_be_followed_says_so(table, told):
    base = {"name": "x", "seed": 1, "multiparty": {"grammar": {"n_pairs": 1}},
            "conversation": {"generator": {"n_sessions": 1}}}  # fmt: skip
    with pytest.raises(ProfileError, match=told):
        parse_profile({**base, **table}, "x.toml")


def test_costs_are_planned_by_role_and_fall_with_the_cache(text_api, opened, quick_engines):
    api = text_api("openai", lambda prompt, body: {"addressee": "group"} if "To whom" in prompt else
                   {"decision": "SILENT", "answer": None})  # fmt: skip
    priced = model_table(api, input_usd_per_million=10.0, output_usd_per_million=10.0, max_output_tokens=100)
    more = {
        "multiparty": {"reference": {"engine": "model", "model": priced}},
        "judge": {"engine": "model", "model": priced, "second": model_table(api)},
    }
    assert text_costs(opened(), ["a"]) == []
    workspace = opened(**copy.deepcopy(more))
    before = {cost.role: cost for cost in text_costs(workspace, ["a", "b"])}
    assert before["judge"].plan is None
    assert "once the items are made" in before["transcript reference"].note
    pairs = multiparty.pairs(workspace, multiparty.scenarios(workspace).frame).frame
    speech = multiparty.utterance_speech(workspace, pairs).frame
    items = multiparty.items(workspace, pairs, multiparty.scenes(workspace, pairs, speech).frame).frame
    for name, frame in (("pairs", pairs), ("items", items)):
        write_frame(workspace.store, workspace.table_key(("multiparty", name), None), frame)
    planned = {cost.role: cost for cost in text_costs(workspace, ["a", "b"])}
    reading = planned["transcript reference"].plan
    assert reading.requests > 40
    assert 0 < reading.usd_low < reading.usd_high
    assert planned["judge"].plan.usd_low == 0.0 < planned["judge"].plan.usd_high
    assert planned["second judge"].plan.usd_high is None
    assert "not known" in planned["second judge"].note
    transcript_reference(workspace, pairs, items)
    after = {cost.role: cost for cost in text_costs(workspace, ["a", "b"])}["transcript reference"].plan
    assert after.requests == after.cached == reading.requests == len(api.seen)
    assert after.usd_high == 0.0
    # What was spent lies inside what was planned: the fake server counts 100 tokens in and 20 out.
    assert spent_usd(workspace) == pytest.approx(len(api.seen) * 120 * 10 / 1e6)
