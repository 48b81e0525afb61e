"""The judge over a vendor's batch endpoint: what is asked ahead, what singly, what is left to the next run."""

import dataclasses

import polars as pl
import pytest

from duplex_bench.judging.sentinels import sentinels
from duplex_bench.records.score import Question
from duplex_bench.stages import judges
from duplex_bench.textmodels.errors import BudgetError
from duplex_bench.textmodels.spend import SpendLedger

pytestmark = pytest.mark.process

PRICED = {"input_usd_per_million": 10.0, "output_usd_per_million": 50.0}
USD_SINGLY = (100 * 10 + 20 * 50) / 1e6


def by_gold(prompt):
    if "spoken request" not in prompt:
        return {"reason": "short", "verdict": "acknowledgement"}
    gold = prompt.split("Reference answer:\n")[1].split("\n")[0]
    said = prompt.split("recogniser:\n")[1].split("\n\n")[0]
    return {"reason": said, "verdict": "correct" if gold in said else "incorrect"}


def asked(count=4):
    return [
        judges.Asked(f"i{n}", f"r{n}", Question(f"i{n}:w:answer_correctness", "w", "answer_correctness", {
            "request": "Aria, how many?", "gold": "twenty", "answer": f"{'twenty' if n % 2 else 'ten'}, number {n}",
        }))
        for n in range(count)
    ]  # fmt: skip


@pytest.fixture(params=["openai", "anthropic", "gemini"])
def api(request, batch_server):
    return batch_server(request.param, reply=by_gold)


@pytest.fixture
def judged(api, small_workspace, tmp_path):
    """Judges the questions in a workspace whose profile puts them to the batch endpoint."""

    def run(questions, system="s", **more):
        base = small_workspace(tmp_path).profile
        model = {"vendor": api.vendor, "model": "a-model", "base_url": api.settings().base_url, **PRICED}
        batch = {"enabled": True, "poll_s": 0.0, "most_wait_s": 30.0, **more.pop("batch", {})}
        table = {
            "name": base.name, "seed": 1, "multiparty": {"grammar": {"n_pairs": 1}},
            "conversation": {"generator": {"n_sessions": 1}},
            "judge": {"engine": "model", "model": model, "batch": batch, "sentinels": False, **more.pop("judge", {})},
            **more,
        }  # fmt: skip
        workspace = small_workspace(tmp_path, table)
        return workspace, judges.judged(workspace, "multiparty", system, questions)

    return run


def verdicts(result):
    return dict(result.frame.sort("item_id").select("item_id", "verdict").iter_rows())


RIGHT = {"i0": "incorrect", "i1": "correct", "i2": "incorrect", "i3": "correct"}


def test_answers_of_a_batch_are_verdicts_at_half_the_price(api, judged):
    workspace, result = judged(asked())
    assert verdicts(result) == RIGHT
    assert (result.counts["judge_by_batch"], result.counts["judge_batch_faults"]) == (4, 0)
    assert (api.n_requests, api.singles) == (4, [])
    calls = list(SpendLedger(workspace.store).calls())
    assert {(call.role, call.subject) for call in calls} == {("judge", "s")}
    assert sum(call.usd for call in calls) == pytest.approx(4 * USD_SINGLY / 2)
    assert all('"usd":0.001' in raw for raw in result.frame["raw"])
    # Another system that said the same, and a run again, cost nothing.
    assert verdicts(judged(asked(), system="t")[1]) == RIGHT
    assert judged(asked())[1].counts["reused"] == 4
    assert api.n_requests == 4


def test_sentinels_are_asked_singly_whatever_the_batch_does(api, judged):
    _, result = judged(asked(), judge={"sentinels": True})
    of_rubric = [one for one in sentinels() if one.question.rubric == "answer_correctness"]
    assert result.counts["judge_sentinels"] == len(of_rubric) == len(api.singles)
    assert api.n_requests == 4


def test_sentinels_that_are_answered_in_prose_are_counted_and_named(api, judged):
    """No verdict is not a wrong one, but a judge that no longer answers in shape must not pass for a sound one."""
    api.reply = lambda prompt: by_gold(prompt) if ", number " in prompt else {"opinion": "It depends."}
    _, result = judged(asked(), judge={"sentinels": True})
    assert result.counts["judge_sentinels_no_verdict"] == result.counts["judge_sentinels"] > 0
    assert result.counts["judge_sentinels_wrong"] == 0
    assert "gave no verdict that can be read on" in result.note
    assert verdicts(result) == RIGHT


def test_what_the_batch_did_not_answer_is_asked_singly_at_the_full_price(api, judged):
    api.fate = lambda prompt: "error" if "number 3" in prompt else "ok"
    workspace, result = judged(asked())
    assert verdicts(result) == RIGHT
    assert (result.counts["judge_by_batch"], result.counts["judge_batch_faults"]) == (3, 1)
    assert "asked singly instead: refused in batch" in result.note
    assert len(api.singles) == 1
    assert "number 3" in api.singles[0]
    paid = sorted(call.usd for call in SpendLedger(workspace.store).calls())
    assert paid == pytest.approx([USD_SINGLY / 2] * 3 + [USD_SINGLY])


def test_answers_that_are_not_ready_are_no_verdicts_and_the_next_run_collects_them(api, judged):
    api.looks = 2
    _, early = judged(asked(), batch={"most_wait_s": 0.0, "poll_s": 1.0})
    assert early.frame.height == 0
    assert (early.counts["judge_waiting"], early.counts["failed"]) == (4, 4)
    assert "run again to collect them" in early.note
    _, late = judged(asked())
    assert verdicts(late) == RIGHT
    assert (api.n_requests, api.singles) == (4, [])


def test_prose_from_a_batch_is_read_again_singly(api, judged):
    api.reply = lambda prompt: by_gold(prompt) if api.singles else "I would say that it is right."
    _, result = judged(asked(2))
    assert verdicts(result) == {"i0": "incorrect", "i1": "correct"}
    assert len(api.singles) == 2


def test_agreement_counts_every_question_of_a_reader_of_the_transcript(api, judged, batch_server):
    """Its verdicts have one rollout key for all items: they must not fall together."""
    other = batch_server("gemini" if api.vendor != "gemini" else "openai", reply=by_gold)
    second = {"vendor": other.vendor, "model": "a-model", "base_url": other.settings().base_url}
    one_key = [dataclasses.replace(one, rollout_key="transcript-reference") for one in asked()]
    _, result = judged(one_key, judge={"second": second})
    assert result.counts["second_judge_answer_correctness_both"] == len(one_key)


def test_the_second_judge_goes_by_batch_too(api, judged, batch_server):
    other = batch_server("gemini" if api.vendor != "gemini" else "openai", reply=by_gold)
    second = {"vendor": other.vendor, "model": "a-model", "base_url": other.settings().base_url}
    _, result = judged(asked(), judge={"second": second})
    assert (result.counts["second_judge_by_batch"], other.n_requests, other.singles) == (4, 4, [])
    assert result.counts["second_judge_answer_correctness_agreement"] == 1.0
    assert set(result.frame["judge"]) == {f"{api.vendor}/a-model"}


def test_a_batch_over_the_budget_is_not_sent(api, judged):
    with pytest.raises(BudgetError, match=r"batch of 4.*raise budget_usd"):
        judged(asked(), text_calls={"budget_usd": 0.01})
    assert api.n_requests == 0


def test_verdicts_of_a_batch_hold_no_reason_of_another_question(api, judged):
    _, result = judged(asked())
    told = result.frame.with_columns(n=pl.col("item_id").str.slice(1))
    assert all(f"number {n}" in reason for n, reason in told.select("n", "reason").iter_rows())
