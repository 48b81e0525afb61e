"""A two-person session as every later step sees it, and what becomes of rows that cannot be one."""

from collections.abc import Iterable
from dataclasses import dataclass

from duplex_bench.conversation.label_types import Speaker, SpeakerTrack, Word


@dataclass(frozen=True, slots=True)
class Side:
    """One speaker of a session: channel ``channel`` of the file at ``audio_path``, speech and words in seconds.

    ``words`` hold only timed words; ``untimed_words`` are the texts of those whose times the corpus lacks. They are
    never placed at second 0.
    """

    audio_path: str
    channel: int
    speech: tuple[tuple[float, float], ...]
    words: tuple[Word, ...]
    speaker_id: str
    untimed_words: tuple[str, ...] = ()

    @property
    def track(self) -> SpeakerTrack:
        """Speech and words as the label engine takes them."""
        return SpeakerTrack(self.speech, self.words)


@dataclass(frozen=True, slots=True)
class Correction:
    """A named repair of one row (``rule``), with what was done. Nothing is repaired without one."""

    rule: str
    where: str
    message: str


@dataclass(frozen=True, slots=True)
class Rejection:
    """Why a row gave no session: the file and row, the named rule, what is wrong, and what to do about it."""

    where: str
    rule: str
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Session:
    """One conversation of two people on one clock. ``duration_s`` ends with the shorter side.

    ``quality`` holds numbers about the recording (cross-talk shares, length difference) by name.
    """

    session_id: str
    left: Side
    right: Side
    sample_rate_hz: int
    duration_s: float
    licence: str
    language: str = "en"
    corrections: tuple[Correction, ...] = ()
    quality: tuple[tuple[str, float], ...] = ()

    def side(self, speaker: Speaker) -> Side:
        """The side of one speaker."""
        return self.left if speaker == "left" else self.right


@dataclass(frozen=True, slots=True)
class LoadedSessions:
    """What a loader found: every row is a session or a rejection, so the two add up to what was there."""

    sessions: tuple[Session, ...]
    rejections: tuple[Rejection, ...]

    @property
    def rejected_by_rule(self) -> dict[str, int]:
        """How many rows each rule rejected, by name in alphabetical order."""
        counts: dict[str, int] = {}
        for rejection in self.rejections:
            counts[rejection.rule] = counts.get(rejection.rule, 0) + 1
        return dict(sorted(counts.items()))


def joined(parts: Iterable[LoadedSessions]) -> LoadedSessions:
    """Several loaders' results as one, in the order given."""
    collected = list(parts)
    return LoadedSessions(
        tuple(session for part in collected for session in part.sessions),
        tuple(rejection for part in collected for rejection in part.rejections),
    )
