"""Scoring of a measured rollout, by track: what a judge is asked, and every metric as a value or a reason."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import polars as pl

from duplex_bench.conversation import cards as conversation_cards
from duplex_bench.conversation import recall_scoring
from duplex_bench.conversation import scoring as conversation_scoring
from duplex_bench.conversation.measures import Spans
from duplex_bench.judging.strict import matches
from duplex_bench.multiparty import cards as multiparty_cards
from duplex_bench.multiparty import scoring as multiparty_scoring
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item, Track
from duplex_bench.records.metric_card import MetricCard
from duplex_bench.records.outcome import Outcome
from duplex_bench.records.score import Judgement, Measurement, Question
from duplex_bench.stages.measured import Intervals, Measured
from duplex_bench.stages.profile import Profile
from duplex_bench.text.vectors import TextVectors


@cache
def vectors() -> TextVectors:
    """Sentence vectors, loaded once per process."""
    return TextVectors()


def metric_cards(track: Track) -> tuple[MetricCard, ...]:
    """The metric cards of a track."""
    return multiparty_cards.CARDS if track == "multiparty" else _conversation_cards()


def _conversation_cards() -> tuple[MetricCard, ...]:
    return (*conversation_cards.POINT_CARDS, *conversation_cards.RECALL_CARDS)


def versions(track: Track) -> dict[str, int]:
    """Metric versions of a track: part of the key of every measurement."""
    return {card.id: card.version for card in metric_cards(track)}


def settings(track: Track, profile: Profile) -> Any:
    """Every number of a profile that scores of a track depend on."""
    if track == "multiparty":
        return (profile.multiparty.scoring, profile.multiparty.detector)
    return (_conversation_settings(profile), dict(profile.conversation.recall.min_share))


def _conversation_settings(profile: Profile) -> conversation_scoring.ScoringSettings:
    return dataclasses.replace(profile.conversation.scoring, gate=profile.gate)


def _heard(one: Measured, profile: Profile) -> tuple[Intervals, Sequence[TimedWord]]:
    if one.gate_s is None or one.vad_s is None or one.transcript is None:
        raise ValueError(f"rollout {one.rollout_key} was not measured: it has no score, only a reason")
    detected = one.vad_s if profile.multiparty.detector == "vad" else one.gate_s
    return detected, one.transcript.words


def questions(track: Track, one: Measured, profile: Profile) -> list[Question]:
    """What a judge must be asked about a rollout; pauses and turn ends need none."""
    if track == "conversation":
        if one.item.stimulus.protocol != "recall" or one.gate_s is None or one.transcript is None:
            return []
        found = recall_scoring.recall_question(
            one.item, one.gate_s, one.transcript.words, _min_share(one, profile), _conversation_settings(profile)
        )
        return [] if found is None else [found]
    detected, words = _heard(one, profile)
    return multiparty_scoring.questions(one.item, detected, words, profile.multiparty.scoring)


def score(track: Track, one: Measured, verdicts: Mapping[str, Judgement], profile: Profile) -> list[Measurement]:
    """Every metric on every window of a rollout; ``verdicts`` by question id."""
    why = one.why_not_scored
    if track == "multiparty":
        if why is not None:
            return multiparty_scoring.unscored(one.item, why)
        detected, words = _heard(one, profile)
        return multiparty_scoring.score_item(one.item, detected, words, verdicts, profile.multiparty.scoring)
    # A rollout that could not be measured is scored as one lost in transport: reasons only, never zeros.
    lost = why is not None
    words = () if one.transcript is None else one.transcript.words
    intervals: Spans = [] if one.gate_s is None else one.gate_s
    outcome = Outcome.TRANSPORT_ERROR if lost else one.outcome
    if one.item.stimulus.protocol == "recall":
        found = recall_scoring.score_recall(
            one.item, intervals, words, verdicts, outcome=outcome, matches=matches,
            min_share=_min_share(one, profile), settings=_conversation_settings(profile),
        )  # fmt: skip
    else:
        found = conversation_scoring.score_item(
            one.item, intervals, words, outcome=outcome, timeline_s=one.timeline_s, vectors=vectors(),
            settings=_conversation_settings(profile),
        )  # fmt: skip
    if not lost:
        return found
    return [dataclasses.replace(each, score=dataclasses.replace(each.score, reason=why)) for each in found]


def _min_share(one: Measured, profile: Profile) -> float:
    return profile.conversation.recall.min_share[one.item.condition]


def verdicts_by_rollout(table: pl.DataFrame) -> dict[str, dict[str, Judgement]]:
    """Stored verdicts by rollout and question id."""
    found: dict[str, dict[str, Judgement]] = {}
    for row in table.iter_rows(named=True):
        question = f"{row['item_id']}:{row['window_id']}:{row['rubric']}"
        found.setdefault(row["rollout_key"], {})[question] = Judgement(
            question,
            row["rubric"],
            row["rubric_version"],
            row["judge"],
            row["verdict"],
            row["reason"],
            row["raw"],
        )
    return found


def expected_metrics(track: Track, item: Item) -> list[tuple[str, str]]:
    """Window and metric of every measurement that a planned rollout of an item must have."""
    if track == "multiparty":
        by_kind: Mapping[str, Sequence[str]] = multiparty_scoring.METRICS_OF_KIND
    else:
        by_kind = {
            "pause": conversation_cards.PAUSE_METRICS,
            "turn_end": conversation_cards.TURN_END_METRICS,
            "recall": conversation_cards.RECALL_METRICS,
        }
    return [(window.window_id, metric) for window in item.reference.windows for metric in by_kind.get(window.kind, ())]
