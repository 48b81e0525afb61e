"""Whether a system recalled: a judge's verdict and the strict matcher, each a value or a reason (P2 3.5 item 5)."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from duplex_bench.conversation.cards import RECALL_METRICS, card
from duplex_bench.conversation.measures import MeasureError, Spans
from duplex_bench.conversation.scoring import Details, ScoringSettings, response_words
from duplex_bench.conversation.turn_end import measure_turn_end
from duplex_bench.records.audio import TimedWord
from duplex_bench.records.items import Item
from duplex_bench.records.outcome import SCORED_OUTCOMES, Outcome
from duplex_bench.records.score import Judgement, Measurement, Question, Score

RUBRIC: Final = "recall_correctness"
Matcher = Callable[[str, str, float], bool]


def spoken_answer(
    item: Item, gate_s: Spans, words: Sequence[TimedWord], settings: ScoringSettings
) -> tuple[str, float]:
    """What was said from the end of the question on, or under way at it, and the second it began (else the end)."""
    window = item.reference.windows[0]
    kept = [word for word in words if any(sign.isalnum() for sign in word.text)]
    places = [place for place, word in enumerate(kept) if word.start_s is not None and word.end_s is not None]
    times = [(kept[place].start_s or 0.0, kept[place].end_s or 0.0) for place in places]
    found = measure_turn_end(
        gate_s, times, window.start_s, cap_at_s=window.start_s + settings.cap_s, bridge_s=settings.bridge_s,
        reply_gap_s=settings.reply_gap_s,
    )  # fmt: skip
    at_s = window.start_s if found.latency_s is None else max(0.0, window.start_s + found.latency_s)
    return " ".join(response_words(kept, places, found)), at_s


def recall_question(
    item: Item, gate_s: Spans, words: Sequence[TimedWord], min_share: float, settings: ScoringSettings
) -> Question | None:
    """What a judge is asked about a rollout; None where nothing was said, which needs no judge."""
    answer, _ = spoken_answer(item, gate_s, words, settings)
    if not answer:
        return None
    window_id = item.reference.windows[0].window_id
    return Question(
        question_id=f"{item.item_id}:{window_id}:{RUBRIC}",
        window_id=window_id,
        rubric=RUBRIC,
        fields={"request": str(item.reference.attributes["question"]), "gold": _gold(item), "answer": answer,
                "min_share": f"{min_share:g}"},
    )  # fmt: skip


def _gold(item: Item) -> str:
    if item.reference.gold_answer is None:
        raise MeasureError(f"item {item.item_id}: a recall item needs a gold answer")
    return item.reference.gold_answer


def score_recall(
    item: Item,
    gate_s: Spans,
    words: Sequence[TimedWord],
    verdicts: Mapping[str, Judgement],
    *,
    outcome: Outcome,
    matches: Matcher,
    min_share: float,
    settings: ScoringSettings,
) -> list[Measurement]:
    """All recall measurements of one rollout.

    Nothing said is no answer: both scorers give 0, as the paper counts it. A judge without a verdict is a reason.

    Args:
        item: a recall item.
        gate_s: gate intervals of the listener audio, seconds.
        words: its transcript.
        verdicts: by question id.
        outcome: how the rollout ended.
        matches: the strict matcher: (gold, answer, least share of content words).
        min_share: for the matcher.
        settings: cap and gaps, as at turn ends.
    """
    window = item.reference.windows[0]
    gold = _gold(item)
    details: Details = {
        "outcome": outcome.value, "gold": gold, "request": str(item.reference.attributes["question"]),
        "history_target_s": float(item.reference.attributes["history_target_s"]), "min_share": min_share,
    }  # fmt: skip
    at_s = window.start_s
    if outcome not in SCORED_OUTCOMES:
        scores = dict.fromkeys(RECALL_METRICS, Score(None, f"rollout not scored: {outcome.value}"))
    else:
        answer, at_s = ("", at_s) if outcome is Outcome.NO_AUDIO else spoken_answer(item, gate_s, words, settings)
        details["answer"] = answer
        verdict = verdicts.get(f"{item.item_id}:{window.window_id}:{RUBRIC}")
        scores = {
            "recall_answered": Score(float(bool(answer))),
            "recall_strict": Score(float(bool(answer) and matches(gold, answer, min_share))),
            "recall_correct": _judged(answer, verdict),
        }
    return [
        Measurement(item.item_id, window.window_id, metric, card(metric).version, scores[metric], at_s, dict(details))
        for metric in RECALL_METRICS
    ]


def _judged(answer: str, verdict: Judgement | None) -> Score:
    if not answer:
        return Score(0.0)
    if verdict is None:
        return Score(None, "not judged")
    if verdict.verdict is None:
        return Score(None, f"no verdict: {verdict.reason}")
    if verdict.verdict not in ("correct", "incorrect"):
        raise ValueError(
            f"question {verdict.question_id}: verdict {verdict.verdict!r} of {verdict.judge} is neither 'correct' nor "
            "'incorrect': check the rubric"
        )
    return Score(float(verdict.verdict == "correct"))
