"""Evaluation points: boundaries that passed curation, with ids that survive everything but the boundary's move."""

from dataclasses import dataclass

from duplex_bench.audio.time import to_samples
from duplex_bench.conversation.candidates import Candidate, PointKind, Reply
from duplex_bench.conversation.label_types import Speaker
from duplex_bench.storage.digests import digest_value

_ID_DIGITS = 16
_MS_PER_S = 1000


@dataclass(frozen=True, slots=True)
class Point:
    """One moment a person faced; seconds of the recording.

    ``speaker`` is the active human, heard live; a system plays the other side. The live stream runs from
    ``turn_start_s`` to ``resume_end_s`` (pause) or ``boundary_s`` (turn end). ``ranking`` in [0, 1] is the curation
    score, ``judge_score`` the judge's temptation score where a judge ran.
    """

    point_id: str
    session_id: str
    kind: PointKind
    speaker: Speaker
    turn_start_s: float
    boundary_s: float
    pause_end_s: float | None
    resume_end_s: float | None
    reply: Reply | None
    context_text: str
    n_context_words: int
    label_rule: str
    label_confidence: float
    ranking: float
    judge_score: float | None = None


def point_id(session_id: str, kind: PointKind, speaker: Speaker, boundary_s: float) -> str:
    """16 hexadecimal digits from session, kind, speaker and boundary in whole milliseconds (design 4).

    The speaker is part of it because both people may pause at the same millisecond.
    """
    return digest_value("point/1", session_id, kind, speaker, to_samples(boundary_s, _MS_PER_S))[:_ID_DIGITS]


def point_of(candidate: Candidate, ranking: float, judge_score: float | None = None) -> Point:
    """The point at a candidate boundary."""
    return Point(
        point_id=point_id(candidate.session_id, candidate.kind, candidate.speaker, candidate.boundary_s),
        session_id=candidate.session_id,
        kind=candidate.kind,
        speaker=candidate.speaker,
        turn_start_s=candidate.turn_start_s,
        boundary_s=candidate.boundary_s,
        pause_end_s=candidate.pause_end_s,
        resume_end_s=candidate.resume_end_s,
        reply=candidate.reply,
        context_text=" ".join(candidate.context_words),
        n_context_words=len(candidate.context_words),
        label_rule=candidate.label_rule,
        label_confidence=candidate.label_confidence,
        ranking=ranking,
        judge_score=judge_score,
    )
