"""A text model as judge: rubric and question in, one of the rubric's verdicts out, or no verdict with the reason."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from pydantic import create_model

from duplex_bench.judging.rubrics import RUBRIC_IDS, RubricError, rubric
from duplex_bench.records.score import Judgement, Question
from duplex_bench.storage.digests import canonical_json, digest_value
from duplex_bench.textmodels.batches import BatchSettings
from duplex_bench.textmodels.model import CostPlan, TextModel
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.settings import ModelSettings
from duplex_bench.textmodels.wire import TextRequest, Turn


class JudgeSettingsError(ValueError):
    """A judge that cannot be made from its settings; the message says what to set."""


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """Who judges.

    Attributes:
        engine: "embedded" are the stand-ins that need no key; "model" is a text model.
        model: the judge, for engine "model".
        second: another judge put to the same questions; it scores nothing, its agreement with the first is reported.
        sentinels: whether a run that judges anything first judges the fixed sentinel questions anew, so that a judge
            that changed behind its name is noticed.
        later_repeats: whether rollouts after the first repeat are judged too, for the split of variance into windows
            and runs; they are no part of any estimate. Off, metrics that need a verdict have no such split.
        batch: whether questions go through the vendor's batch endpoint first, at a lower price (sentinels never do).
    """

    engine: Literal["embedded", "model"] = "embedded"
    model: ModelSettings | None = None
    second: ModelSettings | None = None
    sentinels: bool = True
    later_repeats: bool = True
    batch: BatchSettings = field(default_factory=BatchSettings)

    def __post_init__(self) -> None:
        if self.batch.enabled and self.model is not None and self.model.vendor == "openai_compatible":
            raise JudgeSettingsError(
                "judge.batch: no batch endpoint is known of an openai_compatible server: leave it out"
            )
        if self.engine == "model" and self.model is None:
            raise JudgeSettingsError("judge.engine is model: name one in judge.model (vendor, model)")
        if self.second is not None and self.model is None:
            raise JudgeSettingsError("judge.second needs a first judge: name it in judge.model")
        if self.second is not None and self.second == self.model:
            raise JudgeSettingsError("judge.second is the first judge again: name another model")


class ModelJudge:
    """A judge over one text model."""

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self.name = model.settings.name

    def key(self, question: Question, sample: int = 0) -> str:
        """Digest of all that a verdict depends on: rubric file and whole request, the model included."""
        known = rubric(question.rubric)
        request = self.model.key(_request(question, sample), _verdict_of(question.rubric))
        return digest_value("model judgement", known.id, known.version, known.sha256, request)

    def asked(self, question: Question) -> tuple[TextRequest, type[Reply]]:
        """What is put to the model for a question, and the shape of its answer."""
        return _request(question, 0), _verdict_of(question.rubric)

    def needs_call(self, question: Question) -> bool:
        """Whether judging calls the provider: there is no stored response."""
        return self.model.needs_call(_request(question, 0), _verdict_of(question.rubric))

    def judge(self, question: Question, subject: str = "", sample: int = 0) -> Judgement:
        """The verdict on one question, or None with the reason: refused, truncated, unreadable.

        Args:
            question: of any rubric, with its fields.
            subject: the system that is judged, for the spend ledger.
            sample: another number asks anew, past the cache.

        Returns:
            A judgement whose ``raw`` is JSON: the response body as it came, the model that the server names, tokens,
            dollars, the key of the request, and what of the settings could not be sent.

        Raises:
            RubricError: unknown rubric, or a field is missing.
            MissingKeyError, BudgetError, RequestRefusedError, ModelUnavailableError: as ``TextModel.ask``.
        """
        answer = self.model.ask(_request(question, sample), _verdict_of(question.rubric), subject)
        told: dict[str, Any] = {
            "response": answer.raw,
            "model": answer.model,
            "request": answer.key,
            "input_tokens": answer.usage.input_tokens,
            "output_tokens": answer.usage.output_tokens,
            "usd": answer.usd,
            "readings": answer.readings,
            "notes": answer.notes,
        }
        given: dict[str, Any] = answer.value.model_dump() if answer.value is not None else {}
        return Judgement(
            question_id=question.question_id,
            rubric=question.rubric,
            rubric_version=rubric(question.rubric).version,
            judge=self.name,
            verdict=given.get("verdict"),
            reason=given.get("reason", answer.reason),
            raw=canonical_json(told),
        )


@cache
def _verdict_of(rubric_id: str) -> type[Reply]:
    choices: Any = Literal[rubric(rubric_id).verdicts]
    made: type[Reply] = create_model(
        f"{rubric_id}_verdict",
        __base__=Reply,
        # The reason comes first: a model that writes it after its verdict only defends it.
        reason=(str, ...),
        verdict=(choices, ...),
    )
    return made


def _request(question: Question, sample: int) -> TextRequest:
    known = rubric(question.rubric)
    missing = [name for name in known.fields if name not in question.fields]
    if missing:
        raise RubricError(
            f"question {question.question_id!r} of rubric {known.id!r} lacks field {missing[0]!r}: build it again"
        )
    return TextRequest(
        (Turn("user", known.render(question.fields)),), name=f"{known.id}_{known.version}", sample=sample
    )


def question_plan(model: TextModel) -> CostPlan:
    """What one question costs, as a range, whatever the rubric: the longest prompt with fields of typical length."""
    # About thirty seconds of speech in every field (ours).
    words = " ".join(["word"] * 80)
    plans = [
        model.plan([_request(Question("", "", name, dict.fromkeys(rubric(name).fields, words)), 0)], _verdict_of(name))
        for name in RUBRIC_IDS
    ]
    return max(plans, key=lambda plan: plan.input_tokens_high)
