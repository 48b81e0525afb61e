"""From a rollout's speech and words to measurements: a value or a reason for every metric of every window."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from duplex_bench.audio.activity import Intervals, checked, clip_intervals
from duplex_bench.multiparty.cards import CARD_BY_ID
from duplex_bench.multiparty.measures import (
    answer_span_s,
    carried_over,
    fresh_onset_s,
    response_present,
    silence_kept,
    speech_in_window_s,
    yielded,
)
from duplex_bench.multiparty.rules import ScoringRules
from duplex_bench.multiparty.windows import REQUEST, SILENCE, YIELD
from duplex_bench.multiparty.words import text_in
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item, Window
from duplex_bench.records.score import Judgement, Measurement, Question, Score

ANSWER_RUBRIC: Final = "answer_correctness"
ACKNOWLEDGEMENT_RUBRIC: Final = "acknowledgement"
METRICS_OF_KIND: Final[Mapping[str, tuple[str, ...]]] = {
    REQUEST: ("response_presence", "fresh_onset_response", "answer_accuracy"),
    SILENCE: (
        "silence_preservation",
        "silence_without_carry_over",
        "silence_carry_over",
        "silence_untranscribed_passes",
        "silence_without_untranscribed",
    ),
    YIELD: ("answering_window_yield", "n4q_window_response", "stop_latency"),
}

Details = dict[str, float | int | str | bool | None]
Verdicts = Mapping[str, Judgement]


def question_id(item: Item, window: Window, rubric: str) -> str:
    """Id of what a judge is asked about one window of ``item``; equal for every system."""
    return f"{item.item_id}:{window.window_id}:{rubric}"


def _answer(window: Window, speech: Intervals, words: Sequence[TimedWord], rules: ScoringRules) -> str:
    span = answer_span_s(speech, (window.start_s, window.end_s), rules.bridge_s)
    return text_in(words, *span) if span else ""


def _words_in_speech(window: Window, words: Sequence[TimedWord]) -> str:
    return text_in(words, window.start_s, window.end_s)


def questions(
    item: Item, activity_s: npt.ArrayLike, words: Sequence[TimedWord], rules: ScoringRules | None = None
) -> list[Question]:
    """What a judge must be asked to score a rollout of ``item``.

    Answer correctness (fields gold, answer, request) for every response with a transcript; acknowledgement (fields
    text, turn) for every silence window with speech and words. Nothing else needs a judge (P1 A3.3).

    Args:
        item: an item of this track.
        activity_s: detected speech of the rollout, float64 (k, 2) seconds on the listener timeline.
        words: its words, in order, on the same timeline.
        rules: the scoring rules; the default rules where None.

    Raises:
        ValueError: bad intervals, or an item without a gold answer.
    """
    rules = rules or ScoringRules()
    speech = checked(activity_s)
    asked: list[Question] = []
    for window in item.reference.windows:
        bounds = (window.start_s, window.end_s)
        if window.kind == REQUEST and response_present(speech, bounds):
            if item.reference.gold_answer is None:
                raise ValueError(f"item {item.item_id} has no gold answer: build it again from its script")
            answer = _answer(window, speech, words, rules)
            if answer:
                fields = {"gold": item.reference.gold_answer, "answer": answer, "request": window.labels["text"]}
                asked.append(
                    Question(question_id(item, window, ANSWER_RUBRIC), window.window_id, ANSWER_RUBRIC, fields)
                )
        if window.kind == SILENCE and not silence_kept(speech, bounds):
            text = _words_in_speech(window, words)
            if text:
                fields = {"text": text, "turn": window.labels["text"]}
                identity = question_id(item, window, ACKNOWLEDGEMENT_RUBRIC)
                asked.append(Question(identity, window.window_id, ACKNOWLEDGEMENT_RUBRIC, fields))
    return asked


def score_item(
    item: Item,
    activity_s: npt.ArrayLike,
    words: Sequence[TimedWord],
    verdicts: Verdicts,
    rules: ScoringRules | None = None,
) -> list[Measurement]:
    """Every metric of ``METRICS_OF_KIND`` for every window of ``item``: a value, or the reason why there is none.

    Args:
        item: an item of this track.
        activity_s: detected speech of the rollout, float64 (k, 2) seconds on the listener timeline.
        words: its words, in order, on the same timeline.
        verdicts: judgements by question id, for the questions that ``questions`` lists; verdicts are "correct" or
            "incorrect", "acknowledgement" or "intrusion", or None with a reason.
        rules: the scoring rules; the default rules where None.

    Raises:
        ValueError: bad intervals, or a verdict that the rubric does not know.
    """
    rules = rules or ScoringRules()
    speech = checked(activity_s)
    measured: list[Measurement] = []
    for window in item.reference.windows:
        if window.kind == REQUEST:
            measured += _request(item, window, speech, words, verdicts, rules)
        elif window.kind == SILENCE:
            measured += _silence(item, window, speech, words, verdicts, rules)
        elif window.kind == YIELD:
            measured += _yield(item, window, speech, rules)
    return measured


def unscored(item: Item, reason: str) -> list[Measurement]:
    """Every expected measurement of ``item`` with ``reason`` instead of a value: for rollouts that are not scored."""
    return [
        _measurement(item, window, metric, Score(None, reason), window.start_s, _labels(window))
        for window in item.reference.windows
        for metric in METRICS_OF_KIND.get(window.kind, ())
    ]


def _labels(window: Window) -> Details:
    return {name: window.labels[name] for name in ("turn_type", "addressee", "speaker", "utterance_id")}


def _measurement(item: Item, window: Window, metric: str, score: Score, at_s: float, details: Details) -> Measurement:
    version = CARD_BY_ID[metric].version
    return Measurement(item.item_id, window.window_id, metric, version, score, at_s, dict(details))


def _rate(passed: bool) -> Score:
    return Score(1.0 if passed else 0.0)


def _verdict(verdicts: Verdicts, identity: str, good: str, bad: str) -> Score:
    judgement = verdicts.get(identity)
    if judgement is None:
        return Score(None, "not judged")
    if judgement.verdict is None:
        return Score(None, f"no verdict: {judgement.reason}")
    if judgement.verdict not in (good, bad):
        raise ValueError(
            f"question {identity}: verdict {judgement.verdict!r} of {judgement.judge} is neither {good!r} nor {bad!r}: "
            "check the rubric"
        )
    return _rate(judgement.verdict == good)


def _request(
    item: Item, window: Window, speech: Intervals, words: Sequence[TimedWord], verdicts: Verdicts, rules: ScoringRules
) -> list[Measurement]:
    bounds = (window.start_s, window.end_s)
    present = response_present(speech, bounds)
    onset = fresh_onset_s(speech, window.start_s, rules.request_window_s, rules.bridge_s)
    answer = _answer(window, speech, words, rules)
    if not present:
        accuracy = Score(None, "no response in the window")
    elif not answer:
        accuracy = Score(0.0)
    else:
        accuracy = _verdict(verdicts, question_id(item, window, ANSWER_RUBRIC), "correct", "incorrect")
    details = _labels(window) | {
        "speech_in_window_s": speech_in_window_s(speech, bounds),
        "response_latency_s": None if onset is None else onset - window.start_s,
        "answer": answer,
        "gold": item.reference.gold_answer,
        "transcribed": bool(answer),
    }
    scores = {
        "response_presence": _rate(present),
        "fresh_onset_response": _rate(onset is not None),
        "answer_accuracy": accuracy,
    }
    return [_measurement(item, window, metric, score, window.start_s, details) for metric, score in scores.items()]


def _silence(
    item: Item, window: Window, speech: Intervals, words: Sequence[TimedWord], verdicts: Verdicts, rules: ScoringRules
) -> list[Measurement]:
    bounds = (window.start_s, window.end_s)
    inside = clip_intervals(speech, *bounds)
    request = (window.marks["t_start_s"], window.marks["t_end_s"])
    carried, other = carried_over(speech, bounds, request, rules.request_window_s, rules.bridge_s)
    text = _words_in_speech(window, words) if len(inside) else ""
    wordless = len(inside) > 0 and not text
    if not len(inside):
        kept = Score(1.0)
    elif wordless:
        kept = Score(0.0)
    else:
        identity = question_id(item, window, ACKNOWLEDGEMENT_RUBRIC)
        kept = _verdict(verdicts, identity, "acknowledgement", "intrusion")
    details = _labels(window) | {
        "speech_in_window_s": float(np.sum(inside[:, 1] - inside[:, 0])),
        "longest_speech_s": float(np.max(inside[:, 1] - inside[:, 0])) if len(inside) else 0.0,
        "carried_over": carried,
        "wordless": wordless,
        "text": text,
    }
    scores = {
        "silence_preservation": kept,
        "silence_without_carry_over": (
            Score(None, "only the rest of an answer to the request") if carried and not other else kept
        ),
        "silence_carry_over": _rate(carried),
        "silence_untranscribed_passes": Score(1.0) if wordless else kept,
        "silence_without_untranscribed": Score(None, "speech without a transcript") if wordless else kept,
    }
    at_s = float(inside[0, 0]) if len(inside) else window.start_s
    return [_measurement(item, window, metric, score, at_s, details) for metric, score in scores.items()]


def _yield(item: Item, window: Window, speech: Intervals, rules: ScoringRules) -> list[Measurement]:
    marks = window.marks
    asked, resolved = marks["question_end_s"], marks["resolution_start_s"]
    event = yielded(
        speech, asked, resolved, marks["next_onset_s"], rules.question_window_s, rules.deadline_s, rules.bridge_s
    )
    not_eligible = f"not eligible: {event.outcome.removeprefix('not_eligible_').replace('_', ' ')}"
    if not event.eligible:
        latency = Score(None, not_eligible)
    elif event.stop_latency_s is None:
        latency = Score(None, "still speaking when the observation ends")
    else:
        latency = Score(event.stop_latency_s)
    details = _labels(window) | {
        "outcome": event.outcome,
        "eligible": event.eligible,
        "onset_latency_s": None if event.onset_s is None else event.onset_s - asked,
        "stop_latency_s": event.stop_latency_s,
        "speech_in_window_s": speech_in_window_s(speech, (asked, asked + rules.question_window_s)),
    }
    scores = {
        "answering_window_yield": Score(None, not_eligible) if event.passed is None else _rate(event.passed),
        "n4q_window_response": _rate(response_present(speech, (asked, asked + rules.question_window_s))),
        "stop_latency": latency,
    }
    return [_measurement(item, window, metric, score, asked, details) for metric, score in scores.items()]
