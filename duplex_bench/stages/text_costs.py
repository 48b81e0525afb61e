"""What a profile's text models would be paid, before they are asked."""

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl

from duplex_bench.judging.model_judge import question_plan
from duplex_bench.judging.sentinels import sentinels
from duplex_bench.multiparty.llm.engine import plan_cost
from duplex_bench.multiparty.transcript_reference import Addressee, Decision, addressee_request, decision_request
from duplex_bench.multiparty.windows import REQUEST, SILENCE
from duplex_bench.stages.items import items_of
from duplex_bench.stages.profile import Profile
from duplex_bench.stages.transcript_reference import wanted_cases
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame
from duplex_bench.textmodels.access import has_key
from duplex_bench.textmodels.model import CostPlan, TextModel
from duplex_bench.textmodels.settings import ModelSettings
from duplex_bench.textmodels.spend import SpendLedger


@dataclass(frozen=True, slots=True)
class TextCost:
    """One role of a text model: its calls as a range, or why they cannot be counted yet."""

    role: str
    model: str
    has_key: bool
    plan: CostPlan | None
    note: str = ""


def text_models_of(profile: Profile) -> list[tuple[str, ModelSettings]]:
    """Every role that a profile gives to a text model, with the model; empty where all is embedded."""
    settings, found = profile.multiparty, []
    if settings.engine == "llm" and settings.llm is not None and not settings.scenario_file:
        found.append(("script writer", settings.llm.model))
    if settings.reference.engine == "model" and settings.reference.model is not None:
        found.append(("transcript reference", settings.reference.model))
    if profile.judge.engine == "model":
        pair = (("judge", profile.judge.model), ("second judge", profile.judge.second))
        found += [(role, model) for role, model in pair if model is not None]
    return found


def text_costs(workspace: Workspace, systems: Sequence[str]) -> list[TextCost]:
    """Every role that the profile gives to a text model on the multiparty track; nothing where all is embedded."""
    settings = workspace.profile.multiparty
    found: list[TextCost] = []
    for role, model in text_models_of(workspace.profile):
        if role == "script writer" and settings.llm is not None:
            found.append(_cost(role, model, plan_cost(TextModel(model, workspace.store), settings.llm)))
        elif role == "transcript reference":
            found.append(_reference(workspace, model, settings.reference.runs))
        else:
            found.append(_judge(workspace, role, model, len(systems)))
    return found


def spent_usd(workspace: Workspace) -> float:
    """Dollars that text models were paid on this data folder, and what runs under way have set aside."""
    return SpendLedger(workspace.store).counted_usd()


def _cost(role: str, settings: ModelSettings, plan: CostPlan | None, note: str = "") -> TextCost:
    return TextCost(role, settings.name, has_key(settings), plan, note or (plan.note if plan else ""))


def _stored(workspace: Workspace, name: str) -> pl.DataFrame | None:
    key = workspace.table_key(("multiparty", name), None)
    return read_frame(workspace.store, key) if workspace.store.exists(key) else None


def _reference(workspace: Workspace, settings: ModelSettings, runs: int) -> TextCost:
    pairs, items = _stored(workspace, "pairs"), _stored(workspace, "items")
    if pairs is None or items is None:
        return _cost("transcript reference", settings, None, "its calls can be counted once the items are made")
    model = TextModel(settings, workspace.store)
    cases = wanted_cases(pairs, items)
    decisions = {model.key(one, Decision): one for case in cases for run in range(runs)
                 for one in (decision_request(case, run),)}  # fmt: skip
    named = {model.key(one, Addressee): one for case in cases for run in range(runs)
             for one in (addressee_request(case, run),)}  # fmt: skip
    return _cost(
        "transcript reference",
        settings,
        added(model.plan(list(decisions.values()), Decision), model.plan(list(named.values()), Addressee)),
    )


def _judge(workspace: Workspace, role: str, settings: ModelSettings, systems: int) -> TextCost:
    items = _stored(workspace, "items")
    if items is None:
        return _cost(role, settings, None, "its questions can be bounded once the items are made")
    kinds = [window.kind for item in items_of(items).values() for window in item.reference.windows]
    most = sum(kind in {REQUEST, SILENCE} for kind in kinds) * systems
    one = question_plan(TextModel(settings, workspace.store))
    # A system that never speaks raises no question, one that always speaks raises all of them.
    plan = CostPlan(
        requests=most,
        cached=0,
        input_tokens_low=0,
        input_tokens_high=one.input_tokens_high * (most + len(sentinels()) * systems),
        output_tokens_low=0,
        output_tokens_high=one.output_tokens_high * (most + len(sentinels()) * systems),
        usd_low=None if one.usd_low is None else 0.0,
        usd_high=None if one.usd_high is None else one.usd_high * (most + len(sentinels()) * systems),
        note=one.note,
    )
    return _cost(role, settings, plan)


def added(one: CostPlan, other: CostPlan) -> CostPlan:
    """Two plans as one; dollars only where both know theirs."""

    def both(name: str) -> float | None:
        values = (getattr(one, name), getattr(other, name))
        return None if None in values else values[0] + values[1]

    counts = {
        name: getattr(one, name) + getattr(other, name)
        for name in ("requests", "cached", "input_tokens_low", "input_tokens_high", "output_tokens_low",
                     "output_tokens_high")
    }  # fmt: skip
    return CostPlan(**counts, usd_low=both("usd_low"), usd_high=both("usd_high"), note=one.note or other.note)
