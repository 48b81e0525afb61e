"""The judge without a key: strict matcher and acknowledgement lexicon, stand-ins that the report names (design 9)."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from duplex_bench.judging.acknowledgement import classify, lexicon, words_outside
from duplex_bench.judging.rubrics import RubricError, rubric
from duplex_bench.judging.strict import STRICT_VERSION, found_words, matches
from duplex_bench.records.score import Judgement, Question
from duplex_bench.storage.digests import canonical_json
from duplex_bench.text.normalise import NORMALISER_VERSION, normalised_words
from duplex_bench.text.words import STOP_WORDS_VERSION


@dataclass(frozen=True, slots=True)
class EmbeddedJudgeSettings:
    """The stand-in's numbers.

    Attributes:
        min_share: share of the gold answer's content words that a correct answer holds (ours).
    """

    min_share: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.min_share <= 1:
            raise ValueError(f"judge min_share {self.min_share}: give a share above 0 and up to 1")


DEFAULT_SETTINGS: Final = EmbeddedJudgeSettings()


def version(rubric_id: str, settings: EmbeddedJudgeSettings = DEFAULT_SETTINGS) -> str:
    """Name and version of the stand-in that answers ``rubric_id``: part of every verdict and of its key.

    Raises:
        RubricError: the stand-ins cannot answer it.
    """
    _, name = _stand_in(rubric_id)
    return name(settings)


def judge(question: Question, settings: EmbeddedJudgeSettings = DEFAULT_SETTINGS) -> Judgement:
    """The verdict on one question: correct or incorrect, acknowledgement or intrusion, or None with the reason.

    Args:
        question: rubric ``answer_correctness`` with fields gold and answer, or ``acknowledgement`` with field text.
        settings: the stand-in's numbers.

    Returns:
        A judgement whose ``raw`` is JSON with what the verdict rests on.

    Raises:
        RubricError: another rubric, or a field is missing.
        GoldAnswerError: a gold answer without content words, which is a fault of the item.
    """
    decide, name = _stand_in(question.rubric)
    verdict, reason, evidence = decide(question, settings)
    return Judgement(
        question_id=question.question_id,
        rubric=question.rubric,
        rubric_version=rubric(question.rubric).version,
        judge=name(settings),
        verdict=verdict,
        reason=reason,
        raw=canonical_json(evidence),
    )


Decision = tuple[str | None, str, dict[str, object]]


def _answer_correctness(question: Question, settings: EmbeddedJudgeSettings) -> Decision:
    gold, answer = _field(question, "gold"), _field(question, "answer")
    found, missing = found_words(gold, answer)
    evidence: dict[str, object] = {"found": sorted(found), "missing": sorted(missing), "min_share": settings.min_share}
    verdict = "correct" if matches(gold, answer, settings.min_share) else "incorrect"
    return verdict, f"{len(found)} of {len(found) + len(missing)} content words of the gold answer", evidence


def _recall(question: Question, settings: EmbeddedJudgeSettings) -> Decision:
    # The share is the question's own: half of the words for a conversation's facts, all for general ones (P2 App. E).
    share = float(question.fields.get("min_share", settings.min_share))
    return _answer_correctness(question, EmbeddedJudgeSettings(share))


def _acknowledgement(question: Question, _settings: EmbeddedJudgeSettings) -> Decision:
    words = normalised_words(_field(question, "text"))
    outside = words_outside(words)
    evidence: dict[str, object] = {"words": words, "outside_lexicon": outside}
    kind = classify(question.fields["text"])
    if not words:
        return None, "undecided: no words to judge", evidence
    reason = f"{len(outside)} of {len(words)} words outside the lexicon"
    return (None, f"undecided: {reason}", evidence) if kind == "undecided" else (kind, reason, evidence)


def _strict_name(settings: EmbeddedJudgeSettings) -> str:
    return f"{STRICT_VERSION} min_share/{settings.min_share:g}"


def _recall_name(_settings: EmbeddedJudgeSettings) -> str:
    return f"{STRICT_VERSION} min_share/question"


def _lexicon_name(_settings: EmbeddedJudgeSettings) -> str:
    return f"lexicon/{lexicon().id}/{lexicon().version} normaliser/{NORMALISER_VERSION} stop-words/{STOP_WORDS_VERSION}"


def _stand_in(
    rubric_id: str,
) -> tuple[Callable[[Question, EmbeddedJudgeSettings], Decision], Callable[[EmbeddedJudgeSettings], str]]:
    if rubric_id == "answer_correctness":
        return _answer_correctness, _strict_name
    if rubric_id == "recall_correctness":
        return _recall, _recall_name
    if rubric_id == "acknowledgement":
        return _acknowledgement, _lexicon_name
    raise RubricError(f"the embedded judge has no rule for rubric {rubric_id!r}: configure a model as judge")


def _field(question: Question, name: str) -> str:
    if name not in question.fields:
        raise RubricError(f"question {question.question_id!r} of rubric {question.rubric!r} lacks field {name!r}")
    return question.fields[name]
