import json
from typing import Literal

import pytest

from duplex_bench.judging.model_judge import JudgeSettings, JudgeSettingsError
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.batches import BatchSettings, ask_ahead
from duplex_bench.textmodels.errors import BudgetError, RequestRefusedError, TransientError
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.prices import batch_factor
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.settings import CallSettings, ModelSettings
from duplex_bench.textmodels.wire import TextRequest, Turn

pytestmark = pytest.mark.process

VENDORS = ("openai", "anthropic", "gemini")
PRICED = {"input_usd_per_million": 10.0, "output_usd_per_million": 50.0}
USD_EACH = 0.5 * (100 * 10 + 20 * 50) / 1e6


class Mood(Reply):
    mood: Literal["good", "bad"]


@pytest.fixture(params=VENDORS)
def api(request, batch_server):
    return batch_server(request.param)


def asked(*prompts):
    return [(TextRequest((Turn("user", prompt),)), Mood) for prompt in prompts]


def ahead(api, store, questions, model=None, **more):
    waits = []
    settings = {"enabled": True, "poll_s": 1.0, "most_wait_s": 30.0, **more}
    clock = iter(range(10_000))
    model = model or TextModel(api.settings(**PRICED), store)
    found = ask_ahead(
        model, questions, store, BatchSettings(**settings), subject="a-system", sleep=waits.append,
        now=lambda: float(next(clock)),
    )  # fmt: skip
    return model, found, waits


def never(_):
    raise AssertionError("a stored answer needs no connection")


def test_answers_are_in_the_cache_and_cost_half(api, tmp_path):
    api.looks = 3
    store = FolderStore(tmp_path)
    questions = asked("a good day", "a wet day", "a good day")
    model, found, waits = ahead(api, store, questions)
    assert (len(found.stored), found.faults, found.waiting, waits) == (2, {}, {}, [1.0, 1.0])
    silent = TextModel(api.settings(**PRICED), store, connect=never)
    answers = [silent.ask(*question) for question in questions]
    assert [answer.value.mood for answer in answers] == ["good", "bad", "good"]
    assert all(answer.cached and answer.usd == pytest.approx(USD_EACH) for answer in answers)
    calls = list(model.spend.calls())
    assert [call.subject for call in calls] == ["a-system"] * 2
    assert sum(call.usd for call in calls) == pytest.approx(2 * USD_EACH)
    assert ahead(api, store, questions)[1].stored == set()
    assert api.n_requests == 2
    assert "sk-canary" not in "".join(path.read_text() for path in tmp_path.rglob("*.json"))


def test_one_bad_request_is_a_fault_of_its_own(api, tmp_path):
    api.fate = lambda prompt: "error" if "wet" in prompt else "ok"
    model, found, _ = ahead(api, FolderStore(tmp_path), asked("a good day", "a wet day"))
    assert len(found.stored) == 1
    (why,) = found.faults.values()
    assert why.startswith("refused in batch")
    assert "bad request" in why
    assert len(list(model.spend.calls())) == 1


def test_what_expires_costs_nothing_and_may_be_asked_again(api, tmp_path):
    api.fate = lambda prompt: "expired" if "wet" in prompt else "ok"
    store = FolderStore(tmp_path)
    model, found, _ = ahead(api, store, asked("a wet day"))
    assert not found.stored
    assert all(why.startswith("not tried in batch") for why in found.faults.values())
    assert list(model.spend.calls()) == []
    api.fate = lambda prompt: "ok"
    assert len(ahead(api, store, asked("a wet day"))[1].stored) == 1


def test_a_run_that_does_not_wait_leaves_its_batch_to_the_next(api, tmp_path):
    api.looks = 4
    store = FolderStore(tmp_path)
    _, found, _ = ahead(api, store, asked("a good day"), most_wait_s=2.0)
    assert list(found.waiting.values()) == list(api.batches)
    _, again, _ = ahead(api, store, asked("a good day", "a wet day"))
    assert len(again.stored) == 2
    assert api.n_requests == 2


def test_a_kill_between_sending_and_noting_the_id_is_not_paid_twice(api, tmp_path):
    store = FolderStore(tmp_path)
    api.cut_after_submit = True
    with pytest.raises(TransientError):
        ahead(api, store, asked("a good day", "a wet day"))
    api.cut_after_submit = False
    _, found, _ = ahead(api, store, asked("a good day", "a wet day"))
    assert len(found.stored) == 2
    assert (len(api.batches), api.n_requests) == (1, 2)


def test_a_kill_before_sending_sends_anew(api, tmp_path):
    store = FolderStore(tmp_path)
    right, api.url = api.url, "http://127.0.0.1:9"
    with pytest.raises(TransientError):
        ahead(api, store, asked("a good day"))
    api.url = right
    for name in list(store.keys("textmodels/batches")):
        record = json.loads(store.get(name)) | {"base_url": api.settings().base_url}
        store.put(name, json.dumps(record).encode())
    assert len(ahead(api, store, asked("a good day"))[1].stored) == 1
    assert api.n_requests == 1


def test_large_sets_are_cut(api, tmp_path):
    _, found, _ = ahead(api, FolderStore(tmp_path), asked(*(f"day {n}" for n in range(5))), most_requests=2)
    assert len(found.stored) == 5
    assert [len(batch["rows"]) for batch in api.batches.values()] == [2, 2, 1]


def test_the_budget_is_asked_before_a_batch_is_sent(api, tmp_path):
    store = FolderStore(tmp_path)
    poor = TextModel(api.settings(**PRICED), store, calls=CallSettings(budget_usd=0.01))
    with pytest.raises(BudgetError):
        ahead(api, store, asked("a good day"), poor)
    assert api.n_requests == 0


def test_a_batch_under_way_is_set_aside_after_its_run_ends(api, tmp_path):
    """The first run ends before its batch does: another run may not spend the same money meanwhile."""
    api.looks = 99
    store = FolderStore(tmp_path)
    one = TextModel(api.settings(**PRICED), store)
    each = 0.5 * one.most_usd(one.keyed(*asked("a good day")[0])[0])
    calls = CallSettings(budget_usd=1.5 * each, block_usd=0.01)
    with TextModel(api.settings(**PRICED), store, calls=calls) as first:
        _, found, _ = ahead(api, store, asked("a good day"), first, most_wait_s=0.0)
    assert found.waiting
    with TextModel(api.settings(**PRICED), store, calls=calls) as second, pytest.raises(BudgetError):
        ahead(api, store, asked("a bad day"), second, most_wait_s=0.0)
    assert api.n_requests == 1
    api.looks = 0
    with TextModel(api.settings(**PRICED), store, calls=calls) as third:
        assert len(ahead(api, store, asked("a good day"), third)[1].stored) == 1
        # Collected, it counts by what it cost: what was set aside beyond that is free.
        assert third.spend.counted_usd() == pytest.approx(USD_EACH)


def test_a_batch_that_the_vendor_no_longer_has_is_asked_anew(api, tmp_path):
    api.looks = 99
    store = FolderStore(tmp_path)
    ahead(api, store, asked("a good day"), most_wait_s=0.0)
    api.batches.clear()
    api.looks = 1
    _, found, _ = ahead(api, store, asked("a good day"))
    assert [why.split(" in batch ")[0] for why in found.faults.values()] == ["not tried"]
    assert len(ahead(api, store, asked("a good day"))[1].stored) == 1


def test_an_answer_with_a_line_separator_is_one_line_of_a_result(api, tmp_path):
    """JSON leaves U+2028 as it is, and so do vendors' result files."""
    api.reply = lambda prompt: {"mood": "good", "reason": "first\u2028second"}
    store = FolderStore(tmp_path)
    assert len(ahead(api, store, asked("a good day"))[1].stored) == 1


def test_gemini_answers_without_keys_come_in_order(api, tmp_path):
    if api.vendor != "gemini":
        pytest.skip("only Gemini leaves keys out")
    api.keep_keys = False
    store = FolderStore(tmp_path)
    questions = asked("a wet day", "a good day")
    model, _, _ = ahead(api, store, questions)
    assert [model.ask(*question).value.mood for question in questions] == ["bad", "good"]


def test_two_nameless_batches_that_could_be_ours_are_not_guessed_at(api, tmp_path):
    if api.vendor != "anthropic":
        pytest.skip("the others keep a name")
    store = FolderStore(tmp_path)
    api.cut_after_submit = True
    with pytest.raises(TransientError):
        ahead(api, store, asked("a good day"))
    api.cut_after_submit = False
    api.begin("", [("somebody-else", "a day")])
    with pytest.raises(RequestRefusedError, match="could all be one"):
        ahead(api, store, asked("a good day"))


@pytest.mark.parametrize("vendor", VENDORS)
def test_every_batch_price_names_its_source(vendor):
    price = batch_factor(vendor)
    assert 0 < price.factor < 1
    assert price.source


def test_a_server_without_batches_is_refused():
    local = ModelSettings("openai_compatible", "m", base_url="http://127.0.0.1:1/v1")
    with pytest.raises(JudgeSettingsError, match="batch"):
        JudgeSettings("model", local, batch=BatchSettings(enabled=True))
    assert batch_factor("openai_compatible") is None
