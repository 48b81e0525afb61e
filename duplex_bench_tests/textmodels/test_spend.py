import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from duplex_bench.storage.object_store import FolderStore
from duplex_bench.textmodels.errors import BudgetError
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.prices import cost_usd, price_of, price_table, token_prices
from duplex_bench.textmodels.replies import Usage
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.settings import CallSettings, ModelSettings
from duplex_bench.textmodels.spend import SpendLedger, SpentCall
from duplex_bench.textmodels.wire import TextRequest, Turn

pytestmark = pytest.mark.process


class Yes(Reply):
    ok: bool


@pytest.fixture
def store(tmp_path):
    return FolderStore(tmp_path / "store")


def spent(usd, call="c"):
    return SpentCall("judge", "s", "openai/m", call, 10, 5, usd, usd)


class MemoryStore:
    """The part of a store that the ledger uses, without a disk."""

    def __init__(self):
        self.held = {}

    def get(self, key):
        return self.held[key]

    def put(self, key, data):
        assert key not in self.held, "the ledger only adds files"
        self.held[key] = data

    def keys(self, prefix):
        return iter(sorted(self.held))


@hypothesis_settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.floats(0.0, 0.6), st.floats(0.0, 1.0), st.integers(0, 2), st.sampled_from("csr")), max_size=30
    ),
    st.floats(0.0, 3.0),
    st.floats(0.01, 1.0),
)
def test_the_budget_is_never_passed(calls, budget, block):
    # Three runs on one store; calls settle at up to what was reserved, are called off, or close their run.
    store = MemoryStore()
    ledgers = [SpendLedger(store, budget, block) for _ in range(3)]
    paid = 0.0
    for reserve, share, who, what in calls:
        try:
            held = ledgers[who].reserve(reserve, "call")
        except BudgetError:
            # Refused only where it would not have fitted beside what is set aside.
            assert SpendLedger(store, budget).counted_usd() + reserve > budget - 1e-6
            continue
        if what == "r":
            ledgers[who].release(held)
            continue
        paid += reserve * share
        ledgers[who].settle(held, spent(reserve * share))
        if what == "c":
            ledgers[who].close()
    for ledger in ledgers:
        ledger.close()
    assert paid <= budget + 1e-6
    assert SpendLedger(store, budget).counted_usd() == pytest.approx(paid, abs=1e-6)


def test_a_killed_run_leaves_its_block_counted(store):
    SpendLedger(store, 1.0, 0.5).reserve(0.1, "call")
    after = SpendLedger(store, 1.0, 0.5)
    assert after.counted_usd() == pytest.approx(0.5)
    after.reserve(0.5, "call")
    with pytest.raises(BudgetError, match="raise budget_usd"):
        after.reserve(0.1, "call")


def test_without_a_price_a_budget_cannot_be_held(store):
    with pytest.raises(BudgetError, match="input_usd_per_million"):
        SpendLedger(store, 5.0).reserve(None, "openai/x")
    assert SpendLedger(store).reserve(None, "openai/x") is None


def test_calls_are_noted_by_role_and_subject(store):
    with SpendLedger(store) as ledger:
        for n in range(25):
            ledger.settle(None, spent(0.01, f"c{n}"))
    found = list(SpendLedger(store).calls())
    assert sorted(call.call for call in found) == sorted(f"c{n}" for n in range(25))
    assert {(call.role, call.subject, call.model) for call in found} == {("judge", "s", "openai/m")}
    assert all(call.at for call in found)


def test_a_model_stops_at_the_budget_and_keeps_what_it_has(text_api, store):
    api = text_api("openai", lambda prompt, body: {"ok": True})
    priced = api.settings(input_usd_per_million=1000.0, output_usd_per_million=1000.0, max_output_tokens=100)
    calls = CallSettings(concurrency=4, budget_usd=1.0, block_usd=0.3)
    model = TextModel(priced, store, calls=calls, role="judge")
    requests = [TextRequest((Turn("user", f"{n}"),)) for n in range(20)]

    def ask(request):
        try:
            return model.ask(request, Yes).value
        except BudgetError:
            return None

    before = threading.active_count()
    with model, ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, requests))
    answered = sum(value is not None for value in found)
    # 120 tokens a call at 0.001 dollars: eight would be 0.96, but each needs its reservation beside what is spent.
    assert 4 <= answered <= 8
    assert len(api.seen) == answered
    assert model.spend.counted_usd() == pytest.approx(0.12 * answered)
    assert threading.active_count() < before + 40


def test_a_response_without_usage_is_charged_at_its_reservation(text_api, store):
    api = text_api("anthropic", lambda prompt, body: {"ok": True}, usage=False)
    priced = api.settings(input_usd_per_million=10.0, output_usd_per_million=10.0)
    with TextModel(priced, store, role="judge") as model:
        answer = model.ask(TextRequest((Turn("user", "?"),)), Yes, subject="moshi")
    assert answer.usd is None
    (call,) = SpendLedger(store).calls()
    assert call.usd == call.reserved_usd > 0.02
    assert call.input_tokens is None
    assert call.subject == "moshi"


def test_a_plan_says_what_the_cache_saves_and_when_it_has_no_price(text_api, store):
    api = text_api("gemini", lambda prompt, body: {"ok": True})
    requests = [TextRequest((Turn("user", f"{n}"),)) for n in range(3)]
    with TextModel(api.settings(), store) as model:
        model.ask(requests[0], Yes)
        plan = model.plan(requests, Yes)
    assert (plan.requests, plan.cached) == (3, 1)
    assert 0 < plan.input_tokens_low < plan.input_tokens_high
    assert plan.usd_low is None
    assert "price of gemini/a-model is not known" in plan.note
    priced = TextModel(api.settings(input_usd_per_million=1.0, output_usd_per_million=2.0), store)
    plan = priced.plan(requests, Yes)
    assert plan.usd_low < plan.usd_high
    assert plan.usd_high == pytest.approx((plan.input_tokens_high + 2 * plan.output_tokens_high) / 1e6)


def test_prices_are_dated_and_only_what_was_read():
    assert all(price.source and price.read_on.year >= 2026 for price in price_table())
    names = [name for price in price_table() for name in price.models]
    assert len(names) == len(set(names))
    assert price_of("gpt-realtime").audio_output == 64.0
    assert price_of("gpt-realtime-2025-08-28") is price_of("gpt-realtime")
    assert price_of("gemini-3.1-flash-live-preview").audio_input == 3.0
    assert price_of("grok-voice-latest").audio == 0.08
    # Another model whose name only begins alike has no known price.
    assert price_of("gpt-realtime-mini") is None
    assert price_of("claude-opus-5") is None
    judge = ModelSettings("anthropic", "claude-opus-5")
    assert token_prices(judge) is None
    assert cost_usd(judge, Usage(10, 10)) is None
