"""The transcript reference scored where the paper scores it (P1 A5.2), and told why not where it cannot be."""

from collections.abc import Mapping
from typing import Final

from duplex_bench.multiparty.cards import CARD_BY_ID
from duplex_bench.multiparty.scoring import ANSWER_RUBRIC, METRICS_OF_KIND, question_id
from duplex_bench.multiparty.transcript_reference import Decided
from duplex_bench.multiparty.windows import REQUEST, SILENCE, YIELD
from duplex_bench.records.items import Item, Window
from duplex_bench.records.score import Judgement, Measurement, Question, Score

NOT_APPLICABLE: Final[Mapping[str, str]] = {
    "fresh_onset_response": "not applicable: a decision on a transcript has no onset",
    "silence_without_carry_over": "not applicable: a decision on a transcript carries nothing over",
    "silence_carry_over": "not applicable: a decision on a transcript carries nothing over",
    "silence_untranscribed_passes": "not applicable: there is no speech to transcribe",
    "silence_without_untranscribed": "not applicable: there is no speech to transcribe",
    "answering_window_yield": "not applicable: a decision on a transcript cannot stop speaking",
    "stop_latency": "not applicable: a decision on a transcript cannot stop speaking",
}
_SCORED: Final = {REQUEST: "response_presence", SILENCE: "silence_preservation", YIELD: "n4q_window_response"}


def reference_questions(item: Item, decisions: Mapping[str, Decided]) -> list[Question]:
    """What a judge must be asked: whether the answer to T is right, where there is one.

    Args:
        item: an item of this track.
        decisions: by utterance id.
    """
    asked: list[Question] = []
    for window in item.reference.windows:
        found = decisions.get(window.labels["utterance_id"])
        if window.kind == REQUEST and found is not None and found.respond and found.answer:
            fields = {
                "gold": item.reference.gold_answer or "",
                "answer": found.answer,
                "request": window.labels["text"],
            }
            identity = question_id(item, window, ANSWER_RUBRIC)
            asked.append(Question(identity, window.window_id, ANSWER_RUBRIC, fields))
    return asked


def score_reference(
    item: Item, decisions: Mapping[str, Decided], verdicts: Mapping[str, Judgement]
) -> list[Measurement]:
    """Every metric of every window of ``item``: a value where the paper scores the reference, else a reason.

    Response presence is responding to T, silence preservation staying silent after N1 to N3 (any response fails: the
    reference has no brief acknowledgement), window response responding to N4Q; answer accuracy as for systems.

    Args:
        item: an item of this track.
        decisions: by utterance id.
        verdicts: by question id, for ``reference_questions``.
    """
    measured: list[Measurement] = []
    for window in item.reference.windows:
        found = decisions.get(window.labels["utterance_id"], Decided(None, "", None, "not decided"))
        for metric in METRICS_OF_KIND.get(window.kind, ()):
            score = _score(item, window, metric, found, verdicts)
            measured.append(
                Measurement(
                    item.item_id, window.window_id, metric, CARD_BY_ID[metric].version, score, window.start_s,
                    {
                        **{name: window.labels[name] for name in ("turn_type", "addressee", "speaker", "utterance_id")},
                        "respond": found.respond,
                        "answer": found.answer,
                        "named_addressee": found.addressee,
                    },
                )
            )  # fmt: skip
    return measured


def _score(item: Item, window: Window, metric: str, found: Decided, verdicts: Mapping[str, Judgement]) -> Score:
    if metric in NOT_APPLICABLE:
        return Score(None, NOT_APPLICABLE[metric])
    if found.respond is None:
        return Score(None, f"no decision: {found.reason}")
    if metric == _SCORED[window.kind]:
        return Score(float(found.respond != (window.kind == SILENCE)))
    if not found.respond:
        return Score(None, "no response in the window")
    if not found.answer:
        return Score(0.0)
    judgement = verdicts.get(question_id(item, window, ANSWER_RUBRIC))
    if judgement is None:
        return Score(None, "not judged")
    if judgement.verdict is None:
        return Score(None, f"no verdict: {judgement.reason}")
    return Score(float(judgement.verdict == "correct"))
