"""How a rollout ended."""

from enum import StrEnum


class Outcome(StrEnum):
    """Outcome of one rollout (design 2). The first two are scored, the last is neither run nor scored."""

    COMPLETED = "completed"
    NO_AUDIO = "no_audio"
    TRANSPORT_ERROR = "transport_error"
    REFUSED = "refused"
    PACING_VIOLATION = "pacing_violation"
    NOT_APPLICABLE = "not_applicable"


SCORED_OUTCOMES = frozenset({Outcome.COMPLETED, Outcome.NO_AUDIO})
RETRIED_OUTCOMES = frozenset({Outcome.TRANSPORT_ERROR, Outcome.REFUSED, Outcome.PACING_VIOLATION})
