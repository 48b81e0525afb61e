"""A score is a value or a reason, never both and never neither."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Score:
    """One metric on one window: ``value`` in the metric's unit (rates: 0.0 or 1.0), or why there is none."""

    value: float | None
    reason: str | None = None

    def __post_init__(self) -> None:
        if (self.value is None) == (self.reason is None):
            raise ValueError("a score is a value or a reason, exactly one of them")
        if self.value is not None and self.value != self.value:
            raise ValueError("a score is never NaN: give a reason instead")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One score with what is needed to aggregate it and to find its way back to the audio.

    ``metric`` names a metric card; ``at_s`` is the second of the listener timeline a player should open at;
    ``details`` are the numbers behind the value (latencies, flags), for the item page and for rescoring.
    """

    item_id: str
    window_id: str
    metric: str
    metric_version: int
    score: Score
    at_s: float
    details: dict[str, float | int | str | bool | None]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One verdict of one judge on one question; ``verdict`` None means "no verdict", with the reason."""

    question_id: str
    rubric: str
    rubric_version: int
    judge: str
    verdict: str | None
    reason: str
    raw: str


@dataclass(frozen=True, slots=True)
class Question:
    """What a judge is asked about one window: the rubric's id and the texts its prompt needs.

    Rubrics: ``answer_correctness`` (gold, answer, request), ``acknowledgement`` (text, turn).
    """

    question_id: str
    window_id: str
    rubric: str
    fields: dict[str, str]
