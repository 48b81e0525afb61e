"""The engine: draft, check by the validators of every script, send back with the reasons, at most so often."""

from dataclasses import dataclass

from duplex_bench.multiparty.grammar.overlap import SharedText
from duplex_bench.multiparty.llm.drafts import Draft, pair_of
from duplex_bench.multiparty.llm.plan import PROMPTS, plan_scenario, prompt, writing_request
from duplex_bench.multiparty.llm.settings import LlmSettings
from duplex_bench.multiparty.scripts import Pair
from duplex_bench.storage.digests import digest_value
from duplex_bench.textmodels.model import CostPlan, TextModel

# Raise when the same drafts would give other pairs.
ENGINE_VERSION = 1
_REASONS_FED_BACK = 12
_LEAST_TOKENS_OF_A_SCRIPT = 500


@dataclass(frozen=True, slots=True)
class Written:
    """One scenario: its pair, or None with what was wrong with the last draft. ``rejected`` holds every draft's."""

    scenario_id: str
    pair: Pair | None
    drafts: int
    reason: str
    rejected: tuple[tuple[str, ...], ...] = ()


def scenario_key(model: TextModel, settings: LlmSettings, index: int) -> str:
    """Digest of all that scenario ``index`` depends on: plan, prompts, the model and its settings, drafts allowed."""
    plan = plan_scenario(settings, index)
    request = model.key(writing_request(plan, ()), Draft)
    prompts = {name: prompt(name).sha256 for name in PROMPTS}
    return digest_value("llm script", ENGINE_VERSION, prompts, plan, request, settings.attempts)


def write_scenario(model: TextModel, settings: LlmSettings, index: int) -> Written:
    """Write scenario ``index``. Every draft is cached, so that after an interrupt nothing is bought twice.

    Raises:
        MissingKeyError, BudgetError, RequestRefusedError, ModelUnavailableError: as ``TextModel.ask``.
    """
    plan = plan_scenario(settings, index)
    rejected: list[tuple[str, ...]] = []
    reasons: list[str] = []
    for draft_number in range(1, settings.attempts + 1):
        answer = model.ask(writing_request(plan, reasons[:_REASONS_FED_BACK]), Draft, plan.scenario_id)
        if answer.value is None:
            pair, reasons = None, [answer.reason]
        else:
            pair, reasons = pair_of(answer.value, plan)
        if pair is not None:
            return Written(plan.scenario_id, pair, draft_number, "", tuple(rejected))
        rejected.append(tuple(reasons))
        if answer.reason.startswith(("refused", "blocked")):
            break
    return Written(plan.scenario_id, None, len(rejected), "; ".join(rejected[-1]), tuple(rejected))


def distinct(written: list[Written], settings: LlmSettings) -> tuple[list[Pair], list[str]]:
    """Pairs in order, without those too like an earlier one, and one message for each scenario left out."""
    accepted = SharedText()
    kept: list[Pair] = []
    refused: list[str] = []
    for one in written:
        if one.pair is None:
            refused.append(f"scenario {one.scenario_id}: no acceptable draft of {one.drafts}: {one.reason}")
            continue
        share = accepted.largest_share(one.pair.explicit)
        if share > settings.max_shared_text:
            refused.append(f"scenario {one.scenario_id}: {share:.0%} of its text stands in one earlier script")
            continue
        accepted.add(one.pair.explicit)
        kept.append(one.pair)
    return kept, refused


def plan_cost(model: TextModel, settings: LlmSettings) -> CostPlan:
    """What writing takes if every first draft is accepted (low) or every scenario needs all drafts (high)."""
    first = [writing_request(plan_scenario(settings, index), ()) for index in range(settings.n_pairs)]
    once = model.plan(first, Draft, _LEAST_TOKENS_OF_A_SCRIPT)
    return CostPlan(
        requests=once.requests,
        cached=once.cached,
        input_tokens_low=once.input_tokens_low,
        input_tokens_high=once.input_tokens_high * settings.attempts,
        output_tokens_low=once.output_tokens_low,
        output_tokens_high=once.output_tokens_high * settings.attempts,
        usd_low=once.usd_low,
        usd_high=None if once.usd_high is None else once.usd_high * settings.attempts,
        note=once.note,
    )
