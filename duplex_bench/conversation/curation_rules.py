"""The gates of curation, each a named rule (P2 3.3 and App. A). A rule answers None, or why it rejects."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from duplex_bench.audio.activity import overlap_s
from duplex_bench.conversation.candidates import Candidate, LabelledSession, PointKind, Reply
from duplex_bench.conversation.label_types import Speaker, other

# Decimal seconds do not subtract exactly; far below one sample.
_ROUNDING_S = 1e-9


@dataclass(frozen=True, slots=True)
class CurationSettings:
    """The numbers of the gates, the cap and the draw.

    Attributes:
        min_pause_s: shortest pause (P2).
        min_context_s: least time the active turn has lasted at the boundary (P2).
        min_context_words: fewest words of it before the boundary (P2).
        max_reply_delay_s: latest start of the reply after a turn end (P2).
        max_reply_overlap_s: earliest start of the reply before it (ours).
        min_reply_words: fewest words of the reply (P2).
        max_pause_speech: largest share of a pause in which the speaker's channel gates as speech (P2).
        max_listener_speech: the same for the listener's channel, None to switch it off (ours; P2 found backchannels
            in 7 of 20 pauses without listener words).
        lead_in_s: the stretch before the boundary that must hold speech (P2).
        min_lead_in_speech: least share of it that gates as speech (P2).
        min_reply_speech: least share of the reply that gates as speech (P2).
        cap_per_kind: most points of one kind from one conversation (P2).
        n_pause: how many pause points are drawn, None for all (P2 draws 300).
        n_turn_end: how many turn-end points are drawn, None for all (P2 draws 300).
        seed: of the draw (P2 used 0).
        replace_rejected: whether a window that two people rejected in the window check leaves the draw, so that the
            next by hash takes its place (P2 evaluated accepted windows only).
    """

    min_pause_s: float = 0.6
    min_context_s: float = 1.0
    min_context_words: int = 3
    max_reply_delay_s: float = 3.0
    max_reply_overlap_s: float = 0.5
    min_reply_words: int = 5
    max_pause_speech: float = 0.25
    max_listener_speech: float | None = 0.25
    lead_in_s: float = 3.0
    min_lead_in_speech: float = 0.2
    min_reply_speech: float = 0.2
    cap_per_kind: int = 3
    n_pause: int | None = None
    n_turn_end: int | None = None
    seed: int = 0
    replace_rejected: bool = True

    def __post_init__(self) -> None:
        if self.cap_per_kind < 1:
            raise ValueError(f"cap_per_kind {self.cap_per_kind}: give at least 1")
        for name in ("n_pause", "n_turn_end"):
            value = getattr(self, name)
            if value is not None and value < 0:
                raise ValueError(f"{name} {value}: give 0 or more, or none to draw all")
        if self.lead_in_s <= 0:
            raise ValueError(f"lead_in_s {self.lead_in_s}: give a number above 0")


Check = Callable[[Candidate, LabelledSession, CurationSettings], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """One gate: where in the funnel it stands, its name, and the kinds of candidate it asks."""

    stage: Literal["labels", "audio"]
    name: str
    kinds: tuple[PointKind, ...]
    check: Check


def speech_share(session: LabelledSession, speaker: Speaker, start_s: float, end_s: float) -> float:
    """Share of [``start_s``, ``end_s``) in which a channel gates as speech; 0 for a stretch without length."""
    if end_s <= start_s:
        return 0.0
    return overlap_s(session.gate_s[speaker], start_s, end_s) / (end_s - start_s)


def _at_least(value: float, limit: float, what: str, unit: str) -> str | None:
    return None if value >= limit - _ROUNDING_S else f"{what} {value:.3g} {unit}, at least {limit:g} wanted"


def _at_most(value: float, limit: float, what: str, unit: str) -> str | None:
    return None if value <= limit + _ROUNDING_S else f"{what} {value:.3g} {unit}, at most {limit:g} wanted"


def _pause_length(candidate: Candidate, _: LabelledSession, settings: CurationSettings) -> str | None:
    return _at_least(candidate.pause_s, settings.min_pause_s, "pause of", "s")


def _context_length(candidate: Candidate, _: LabelledSession, settings: CurationSettings) -> str | None:
    return _at_least(candidate.context_s, settings.min_context_s, "active turn of", "s")


def _context_words(candidate: Candidate, _: LabelledSession, settings: CurationSettings) -> str | None:
    return _at_least(len(candidate.context_words), settings.min_context_words, "active turn of", "words")


def _no_listener_words(candidate: Candidate, _: LabelledSession, __: CurationSettings) -> str | None:
    said = candidate.intruding_words
    return f"listener says {' '.join(said)!r} in the pause" if said else None


def _no_listener_labels(candidate: Candidate, _: LabelledSession, __: CurationSettings) -> str | None:
    labels = candidate.intruding_labels
    return f"listener label in the pause: {', '.join(labels)}" if labels else None


def _reply_follows(candidate: Candidate, _: LabelledSession, __: CurationSettings) -> str | None:
    if candidate.reply is None:
        return "no turn of the other speaker follows"
    return None if candidate.reply.adjacent else "the speaker takes another turn before the other replies"


def _reply_start(candidate: Candidate, _: LabelledSession, settings: CurationSettings) -> str | None:
    delay_s = _reply(candidate).start_s - candidate.boundary_s
    return _at_most(delay_s, settings.max_reply_delay_s, "reply after", "s") or _at_least(
        delay_s, -settings.max_reply_overlap_s, "reply after", "s"
    )


def _reply_words(candidate: Candidate, _: LabelledSession, settings: CurationSettings) -> str | None:
    return _at_least(_reply(candidate).n_words, settings.min_reply_words, "reply of", "words")


def _pause_is_silent(candidate: Candidate, session: LabelledSession, settings: CurationSettings) -> str | None:
    share = speech_share(session, candidate.speaker, candidate.boundary_s, candidate.boundary_s + candidate.pause_s)
    return _at_most(share, settings.max_pause_speech, "speech in the pause", "of it")


def _listener_is_silent(candidate: Candidate, session: LabelledSession, settings: CurationSettings) -> str | None:
    if settings.max_listener_speech is None:
        return None
    listener = other(candidate.speaker)
    share = speech_share(session, listener, candidate.boundary_s, candidate.boundary_s + candidate.pause_s)
    return _at_most(share, settings.max_listener_speech, "listener audio in the pause", "of it")


def _lead_in_is_speech(candidate: Candidate, session: LabelledSession, settings: CurationSettings) -> str | None:
    start_s = max(0.0, candidate.boundary_s - settings.lead_in_s)
    share = speech_share(session, candidate.speaker, start_s, candidate.boundary_s)
    return _at_least(share, settings.min_lead_in_speech, "speech before the boundary", "of the lead-in")


def _reply_is_speech(candidate: Candidate, session: LabelledSession, settings: CurationSettings) -> str | None:
    reply = _reply(candidate)
    share = speech_share(session, other(candidate.speaker), reply.start_s, reply.end_s)
    return _at_least(share, settings.min_reply_speech, "speech in the reply", "of it")


def _reply(candidate: Candidate) -> Reply:
    if candidate.reply is None:
        raise ValueError("a rule on the reply was asked before the rule that there is one")
    return candidate.reply


_BOTH: tuple[PointKind, ...] = ("pause", "turn_end")

RULES: tuple[Rule, ...] = (
    Rule("labels", "pause_length", ("pause",), _pause_length),
    Rule("labels", "context_length", _BOTH, _context_length),
    Rule("labels", "context_words", _BOTH, _context_words),
    Rule("labels", "no_listener_words", ("pause",), _no_listener_words),
    Rule("labels", "no_listener_labels", ("pause",), _no_listener_labels),
    Rule("labels", "reply_follows", ("turn_end",), _reply_follows),
    Rule("labels", "reply_start", ("turn_end",), _reply_start),
    Rule("labels", "reply_words", ("turn_end",), _reply_words),
    Rule("audio", "pause_is_silent", ("pause",), _pause_is_silent),
    Rule("audio", "listener_is_silent", ("pause",), _listener_is_silent),
    Rule("audio", "lead_in_is_speech", _BOTH, _lead_in_is_speech),
    Rule("audio", "reply_is_speech", ("turn_end",), _reply_is_speech),
)
"""In the order they are asked; a candidate is counted at the first that rejects it."""
