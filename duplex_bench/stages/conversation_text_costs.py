"""What the text models of the conversation track would be paid: point judge, recall probes, text ceiling."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import polars as pl

from duplex_bench.conversation.point_judge import Selection, typical_request
from duplex_bench.conversation.recall_writing import Guess, ceiling_request, typical_requests
from duplex_bench.records.items import Item
from duplex_bench.stages.heard_histories import all_heard, heard_histories, with_history
from duplex_bench.stages.workspace import Workspace
from duplex_bench.textmodels.model import CostPlan, TextModel
from duplex_bench.textmodels.settings import ModelSettings

# Two people in lively talk (ours): more than most sessions hold, so that the high end is one.
WORDS_PER_S: Final = 3.5


def scaled(one: CostPlan, low: float, high: float) -> CostPlan:
    """The plan of one request as that of ``low`` to ``high`` such requests; what is cached is not known."""
    return CostPlan(
        requests=round(high),
        cached=0,
        input_tokens_low=round(one.input_tokens_low * low),
        input_tokens_high=round(one.input_tokens_high * high),
        output_tokens_low=round(one.output_tokens_low * low),
        output_tokens_high=round(one.output_tokens_high * high),
        usd_low=None if one.usd_low is None else one.usd_low * low,
        usd_high=None if one.usd_high is None else one.usd_high * high,
        note=one.note,
    )


def point_judge_plan(workspace: Workspace, settings: ModelSettings, labels: pl.DataFrame) -> CostPlan:
    """At most every labelled pause and turn is read around; which pass the gates is not known before."""
    one = TextModel(settings, workspace.store).plan([typical_request(WORDS_PER_S)], Selection)
    return scaled(one, 0, labels.filter(pl.col("kind").is_in(["pause", "turn"])).height)


def probes_plan(workspace: Workspace, settings: ModelSettings, sessions: pl.DataFrame) -> CostPlan:
    """Two identity prompts and two questions a session; each question may need a check and a guess."""
    model = TextModel(settings, workspace.store)
    early_s = workspace.profile.conversation.recall.lengths_s[0]
    least = {"identity": 2, "recall_fact": 2, "specificity": 0, "answer_alone": 0}
    found: list[CostPlan] = []
    for duration_s in sessions.filter(pl.col("selected"))["duration_s"]:
        asked = typical_requests(round(WORDS_PER_S * duration_s), round(WORDS_PER_S * early_s))
        found += [scaled(model.plan([request], kind), least[name], 2) for name, (request, kind) in asked.items()]
    return added_up(found)


def ceiling_plan(workspace: Workspace, settings: ModelSettings, items: Mapping[str, Item]) -> CostPlan:
    """One request for each recall item, the cache looked up; and one more for what a recogniser hears of its history.

    Before the histories are heard, as many words are reckoned with as the labels have.
    """
    asked = [item for item in items.values() if item.stimulus.protocol == "recall"]
    read = list(asked)
    if workspace.profile.conversation.recall.heard_ceiling:
        heard = all_heard(workspace, asked)
        read += heard_histories(workspace, asked).items.values() if heard else [_filled(item) for item in asked]
    # Histories that read the same are asked about once.
    requests = {ceiling_request(item): None for item in read}
    return TextModel(settings, workspace.store).plan(list(requests), Guess)


def _filled(item: Item) -> Item:
    """An item whose history is as long but says nothing, so that no stored answer is taken for its own."""
    turns = [replace(turn, text=" ".join("word" for _ in turn.text.split())) for turn in item.stimulus.history]
    return with_history(item, tuple(turns))


def added_up(plans: list[CostPlan]) -> CostPlan:
    """Plans as one; dollars only where all know theirs; of none, a plan of nothing."""
    total = CostPlan(0, 0, 0, 0, 0, 0, 0.0, 0.0, "")
    for plan in plans:
        total = added(total, plan)
    return total


def added(one: CostPlan, other: CostPlan) -> CostPlan:
    """Two plans as one; dollars only where both know theirs."""

    def both(a: float | None, b: float | None) -> float | None:
        return None if a is None or b is None else a + b

    return CostPlan(
        requests=one.requests + other.requests,
        cached=one.cached + other.cached,
        input_tokens_low=one.input_tokens_low + other.input_tokens_low,
        input_tokens_high=one.input_tokens_high + other.input_tokens_high,
        output_tokens_low=one.output_tokens_low + other.output_tokens_low,
        output_tokens_high=one.output_tokens_high + other.output_tokens_high,
        usd_low=both(one.usd_low, other.usd_low),
        usd_high=both(one.usd_high, other.usd_high),
        note=one.note or other.note,
    )


def at_batch_price(plan: CostPlan, factor: float) -> CostPlan:
    """The plan with dollars at a batch's price."""
    low, high = (None if usd is None else factor * usd for usd in (plan.usd_low, plan.usd_high))
    return replace(plan, usd_low=low, usd_high=high)
