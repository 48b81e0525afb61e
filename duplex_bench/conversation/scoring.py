"""Measurements of one rollout: every metric of its protocol, each a value or a reason."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from duplex_bench.audio.gate import DEFAULT_GATE, GateSettings
from duplex_bench.conversation.cards import PAUSE_METRICS, PAUSE_SHARES, TURN_END_METRICS, card
from duplex_bench.conversation.measures import (
    MeasureError,
    PauseOutcome,
    Spans,
    as_spans,
    classify_pause,
    overlap_matrix,
)
from duplex_bench.conversation.similarity import Vectors, cosine_similarity, token_f1
from duplex_bench.conversation.turn_end import TurnEndOutcome, measure_turn_end
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import HumanReply, Item, Window
from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.records.score import Measurement, Score

Details = dict[str, float | int | str | bool | None]


@dataclass(frozen=True, slots=True)
class ScoringSettings:
    """Numbers of the conversation scores.

    Attributes:
        bridge_s: gaps up to this do not interrupt speech (ours, design 5).
        cap_s: a turn-end rollout is stopped this long after the turn end (P2).
        reply_gap_s: a longer gap ends a reply (ours).
        gate: the gate that found the intervals; stored with every score (P2).
    """

    bridge_s: float = 0.25
    cap_s: float = 30.0
    reply_gap_s: float = 1.0
    gate: GateSettings = DEFAULT_GATE


def score_item(
    item: Item,
    gate_s: Spans,
    words: Sequence[TimedWord],
    *,
    outcome: Outcome,
    timeline_s: float,
    vectors: Vectors | None,
    settings: ScoringSettings | None = None,
) -> list[Measurement]:
    """All measurements of one rollout on a conversation item.

    Args:
        item: a pause or turn-end item with one window.
        gate_s: gate intervals of the listener audio, (k, 2) seconds on the listener timeline.
        words: its transcript. A word without times counts where that cannot change the verdict, else the score is a
            reason; a "word" without a letter or digit is not one.
        outcome: how the rollout ended; what is not scored gives reasons.
        timeline_s: how long the listener timeline is.
        vectors: sentence vectors for ``cosine``, None for a reason.
        settings: the numbers of the scores.

    Raises:
        MeasureError: the item is no conversation item, or intervals or times are malformed.
    """
    if item.track != "conversation" or len(item.reference.windows) != 1:
        raise MeasureError(f"item {item.item_id}: a conversation item with one window is wanted")
    return score_window(
        item.item_id,
        item.reference.windows[0],
        item.reference.human_reply,
        gate_s,
        words,
        outcome=outcome,
        timeline_s=timeline_s,
        vectors=vectors,
        settings=settings,
    )


def score_window(
    item_id: str,
    window: Window,
    human_reply: HumanReply | None,
    gate_s: Spans,
    words: Sequence[TimedWord],
    *,
    outcome: Outcome,
    timeline_s: float,
    vectors: Vectors | None,
    settings: ScoringSettings | None = None,
) -> list[Measurement]:
    """All measurements of one pause or turn-end window; arguments and errors as ``score_item``."""
    chosen = settings or ScoringSettings()
    if window.kind not in {"pause", "turn_end"}:
        raise MeasureError(f"item {item_id}: window kind {window.kind!r} has no conversation metrics")
    words = [word for word in words if any(sign.isalnum() for sign in word.text)]
    details: Details = {
        "outcome": outcome.value,
        "gate_threshold": chosen.gate.threshold,
        "gate_release_ratio": chosen.gate.release_ratio,
        "gate_min_duration_s": chosen.gate.min_duration_s,
        "n_words": len(words),
        "timeline_s": timeline_s,
    }
    metrics = PAUSE_METRICS if window.kind == "pause" else TURN_END_METRICS
    at_s = window.start_s
    if outcome not in SCORED_OUTCOMES:
        scores = dict.fromkeys(metrics, Score(None, f"rollout not scored: {outcome.value}"))
    elif window.kind == "pause":
        scores, at_s, found = _pause_scores(window, gate_s, words, outcome, chosen)
        details.update(found)
    else:
        scores, at_s, found = _turn_end_scores(human_reply, window, gate_s, words, outcome, timeline_s, vectors, chosen)
        details.update(found)
    return [
        Measurement(item_id, window.window_id, metric, card(metric).version, scores[metric], at_s, dict(details))
        for metric in metrics
    ]


def _timed(words: Sequence[TimedWord]) -> tuple[list[tuple[float, float]], list[int]]:
    """Times of the words that have them, and where these words stand among all."""
    times: list[tuple[float, float]] = []
    places: list[int] = []
    for place, word in enumerate(words):
        if word.start_s is not None and word.end_s is not None:
            times.append((word.start_s, word.end_s))
            places.append(place)
    return times, places


def _pause_scores(
    window: Window, gate_s: Spans, words: Sequence[TimedWord], outcome: Outcome, settings: ScoringSettings
) -> tuple[dict[str, Score], float, Details]:
    if outcome is Outcome.NO_AUDIO:
        no_speech = Score(None, "no audio came")
        scores = {metric: Score(float(metric == "pause_no_audio")) for metric in PAUSE_SHARES}
        scores |= {metric: no_speech for metric in PAUSE_METRICS if metric not in PAUSE_SHARES}
        return scores, window.start_s, {}
    times, _ = _timed(words)
    pause_s = (window.start_s, window.end_s)
    result = classify_pause(gate_s, times, pause_s, bridge_s=settings.bridge_s)
    n_untimed = len(words) - len(times)
    details: Details = {
        "pause_outcome": result.outcome,
        "takeover_latency_s": result.takeover_latency_s,
        "already_speaking": result.already_speaking,
        "spoke_before": result.spoke_before,
        "first_word_s": result.first_word_s,
        "wordless_in_pause": result.wordless_in_pause,
        "words_outside": result.words_outside,
        "n_untimed_words": n_untimed,
    }
    if n_untimed and result.outcome != "takeover" and _undecided(gate_s, times, result, window):
        reason = f"{n_untimed} of {len(words)} words have no time, and audio without a timed word could hold them"
        return {metric: Score(None, reason) for metric in PAUSE_METRICS}, window.start_s, details
    scores = {metric: Score(float(metric == f"pause_{result.outcome}")) for metric in PAUSE_SHARES}
    no_takeover = Score(None, f"no takeover: {result.outcome}")
    scores["takeover_latency"] = _value(result.takeover_latency_s, no_takeover)
    took = result.outcome == "takeover"
    scores["takeover_already_under_way"] = Score(float(result.already_speaking)) if took else no_takeover
    no_word = Score(None, f"no word at or after the pause: {result.outcome}")
    first = result.first_word_s
    scores["first_word_from_pause_start"] = no_word if first is None else Score(first - window.start_s)
    scores["first_word_from_pause_end"] = no_word if first is None else Score(first - window.end_s)
    return scores, window.start_s if first is None else first, details


def _undecided(gate_s: Spans, times: Spans, result: PauseOutcome, window: Window) -> bool:
    """Whether an interval without a timed word could change the outcome if it held a word."""
    intervals, timed = as_spans(gate_s, "gate_s"), as_spans(times, "word times")
    wordless = intervals[~overlap_matrix(intervals, timed).any(axis=1)]
    until_s = np.inf if result.outcome == "wordless" else window.end_s
    return bool(((wordless[:, 1] > window.start_s) & (wordless[:, 0] < until_s)).any())


def _value(value: float | None, otherwise: Score) -> Score:
    return otherwise if value is None else Score(value)


def _turn_end_scores(
    reply: HumanReply | None,
    window: Window,
    gate_s: Spans,
    words: Sequence[TimedWord],
    outcome: Outcome,
    timeline_s: float,
    vectors: Vectors | None,
    settings: ScoringSettings,
) -> tuple[dict[str, Score], float, Details]:
    if outcome is Outcome.NO_AUDIO:
        scores = {metric: Score(None, "no audio came") for metric in TURN_END_METRICS}
        scores |= {"response_rate": Score(0.0), "no_words": Score(1.0), "at_cap": Score(0.0)}
        return scores, window.start_s, {"n_response_words": 0}
    times, places = _timed(words)
    result = measure_turn_end(
        gate_s,
        times,
        window.start_s,
        cap_at_s=window.start_s + settings.cap_s,
        bridge_s=settings.bridge_s,
        reply_gap_s=settings.reply_gap_s,
    )
    response = response_words(words, places, result)
    details: Details = {
        "n_response_words": len(response),
        "latency_s": result.latency_s,
        "begun_before": result.begun_before,
        "spoke_before": result.spoke_before,
        "duration_s": result.duration_s,
        "at_cap": result.at_cap,
        "n_untimed_words": len(words) - len(times),
        "response_text": " ".join(response),
        "human_duration_s": None if reply is None else reply.duration_s,
        "human_n_words": None if reply is None else reply.n_words,
    }
    responded = bool(response)
    scores = {
        "response_rate": Score(float(responded)),
        "no_words": Score(float(not responded)),
        "at_cap": Score(float(result.at_cap)),
    }
    if not responded:
        reason = "above-gate audio without words" if result.duration_s is not None else "no speech after the turn end"
        rest = {metric: Score(None, reason) for metric in TURN_END_METRICS if metric not in scores}
        return scores | rest, window.start_s, details
    silent = Score(None, "words, but no above-gate audio")
    scores["turn_end_latency"] = _value(result.latency_s, Score(None, "no word of the response has a time"))
    scores["first_reply_duration"] = _value(result.first_reply_s, silent)
    scores["resumptions"] = _value(result.resumptions, silent)
    if reply is None:
        no_reply = Score(None, "the item has no human reply")
        scores |= dict.fromkeys(("duration_ratio", "word_ratio", "token_f1", "cosine"), no_reply)
    else:
        scores["duration_ratio"] = (
            silent
            if result.duration_s is None
            else _ratio(result.duration_s, reply.duration_s, "the human reply does not gate as speech")
        )
        scores["word_ratio"] = _ratio(len(response), reply.n_words, "the human reply has no words")
        scores |= similarity_scores(" ".join(response), reply.text, vectors)
    at_s = window.start_s if result.latency_s is None else max(0.0, window.start_s + result.latency_s)
    return scores, min(at_s, timeline_s), details


def similarity_scores(said: str, human: str, vectors: Vectors | None) -> dict[str, Score]:
    """``token_f1`` and ``cosine`` of two texts that both hold words."""
    cosine = Score(None, "no text-vector engine is configured")
    if vectors is not None:
        try:
            cosine = Score(cosine_similarity(said, human, vectors))
        except ValueError as error:
            cosine = Score(None, str(error))
    return {"token_f1": Score(token_f1(said, human)), "cosine": cosine}


def _ratio(value: float, human: float, reason: str) -> Score:
    return Score(value / human) if human > 0 else Score(None, reason)


def response_words(
    words: Sequence[TimedWord],
    places: Sequence[int],
    result: TurnEndOutcome,
) -> list[str]:
    """Texts of the response in transcript order.

    A word without a time goes with the last timed word before it; before any timed word, with the first after it;
    without any, it counts if there is speech after the turn end.
    """
    chosen = {places[index] for index in result.word_indices}
    if not places:
        return [word.text for word in words] if result.duration_s is not None else []
    texts: list[str] = []
    current = places[0] in chosen
    timed = set(places)
    for place, word in enumerate(words):
        if place in timed:
            current = place in chosen
        if current:
            texts.append(word.text)
    return texts
