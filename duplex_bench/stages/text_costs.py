"""What a profile's text models would be paid, before they are asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from duplex_bench.judging.model_judge import question_plan
from duplex_bench.judging.sentinels import sentinels
from duplex_bench.multiparty.llm.engine import plan_cost
from duplex_bench.multiparty.transcript_reference import Addressee, Decision, addressee_request, decision_request
from duplex_bench.multiparty.windows import REQUEST, SILENCE
from duplex_bench.records.items import Track
from duplex_bench.stages.conversation_text_costs import (
    added,
    at_batch_price,
    ceiling_plan,
    point_judge_plan,
    probes_plan,
    scaled,
)
from duplex_bench.stages.items import items_of
from duplex_bench.stages.profile import Profile
from duplex_bench.stages.transcript_reference import wanted_cases
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame
from duplex_bench.textmodels.access import has_key
from duplex_bench.textmodels.model import CostPlan, TextModel
from duplex_bench.textmodels.prices import batch_factor
from duplex_bench.textmodels.settings import ModelSettings
from duplex_bench.textmodels.spend import SpendLedger

TRACKS: Final[tuple[Track, ...]] = ("multiparty", "conversation")


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
    conversation = profile.conversation
    if conversation.point_judge is not None:
        found.append(("point judge", conversation.point_judge))
    if conversation.recall.enabled and conversation.recall.model is not None:
        found += [(role, conversation.recall.model) for role in ("recall probes", "text ceiling")]
    return found


def text_costs(workspace: Workspace, systems: Sequence[str]) -> list[TextCost]:
    """Every role that the profile gives to a text model, on either track; nothing where all is embedded."""
    settings = workspace.profile.multiparty
    found: list[TextCost] = []
    for role, model in text_models_of(workspace.profile):
        if role == "script writer" and settings.llm is not None:
            found.append(_cost(role, model, plan_cost(TextModel(model, workspace.store), settings.llm)))
        elif role == "transcript reference":
            found.append(_reference(workspace, model, settings.reference.runs))
        elif role in {"judge", "second judge"}:
            found.append(_judge(workspace, role, model, len(systems)))
        else:
            found.append(_conversation(workspace, role, model))
    return found


def spent_usd(workspace: Workspace) -> float:
    """Dollars that text models were paid on this data folder, and what runs under way have set aside."""
    return SpendLedger(workspace.store).counted_usd()


def _cost(role: str, settings: ModelSettings, plan: CostPlan | None, note: str = "") -> TextCost:
    return TextCost(role, settings.name, has_key(settings), plan, note or (plan.note if plan else ""))


def _stored(workspace: Workspace, name: str, track: Track = "multiparty") -> pl.DataFrame | None:
    key = workspace.table_key((track, name), None)
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


def _conversation(workspace: Workspace, role: str, settings: ModelSettings) -> TextCost:
    needed = {"point judge": "labels", "recall probes": "lively_sessions", "text ceiling": "items"}[role]
    table = _stored(workspace, needed, "conversation")
    if table is None:
        return _cost(role, settings, None, f"its calls can be counted once {needed.replace('_', ' ')} are made")
    if role == "point judge":
        return _cost(role, settings, point_judge_plan(workspace, settings, table))
    if role == "recall probes":
        return _cost(role, settings, probes_plan(workspace, settings, table))
    return _cost(role, settings, ceiling_plan(workspace, settings, items_of(table)))


def _judge(workspace: Workspace, role: str, settings: ModelSettings, systems: int) -> TextCost:
    stored = [_stored(workspace, "items", track) for track in TRACKS]
    if all(table is None for table in stored):
        return _cost(role, settings, None, "its questions can be bounded once the items are made")
    items = [item for table in stored if table is not None for item in items_of(table).values()]
    windows = sum(window.kind in {REQUEST, SILENCE} for item in items for window in item.reference.windows)
    recall = sum(item.stimulus.protocol == "recall" for item in items)
    probes = workspace.profile.conversation.recall
    ceiling = 0 if probes.model is None else recall * (1 + probes.heard_ceiling)
    # The second judge is asked about the first repeat alone.
    repeats = workspace.profile.rollout.repeats if role == "judge" and workspace.profile.judge.later_repeats else 1
    most = (windows + recall) * systems * repeats + ceiling
    one = question_plan(TextModel(settings, workspace.store))
    # A system that never speaks raises no question, one that always speaks raises all of them.
    plan = scaled(one, 0, most + len(sentinels()) * systems * min(repeats, 2))
    batch = batch_factor(settings.vendor) if workspace.profile.judge.batch.enabled else None
    if batch is not None:
        # Sentinels are asked singly: at the usual price they are few.
        plan = at_batch_price(plan, batch.factor)
    return _cost(role, settings, replace(plan, requests=most))
