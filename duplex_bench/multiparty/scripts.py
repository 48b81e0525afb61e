"""Scripts of conversations: who says what to whom, and what the assistant should do about it (P1 3.1-3.3)."""

from dataclasses import dataclass, field
from typing import Final, Literal

TurnType = Literal["T", "N1", "N2", "N3", "N4Q", "N4R"]
Speaker = Literal["A", "B", "C", "D"]
Condition = Literal["explicit", "implicit"]

TURN_TYPES: Final[tuple[TurnType, ...]] = ("T", "N1", "N2", "N3", "N4Q", "N4R")
SILENCE_TYPES: Final[tuple[TurnType, ...]] = ("N1", "N2", "N3")
"""Turns that need silence. N1: request to another human. N2: statement among humans that carries evidence.
N3: talk that mentions or quotes the assistant, or a request, without asking it (ours: our copy does not define them).
"""
SPEAKERS: Final[tuple[Speaker, ...]] = ("A", "B", "C", "D")
ASSISTANT: Final = "assistant"
GROUP: Final = "group"
DEFAULT_ASSISTANT_NAME: Final = "Aria"


@dataclass(frozen=True, slots=True)
class Utterance:
    """One human turn. ``addressee`` is "assistant", "group", or the id of a human.

    ``answer`` is what resolves an N4Q; ``resolves`` the id of the N4Q that an N4R resolves.
    """

    utterance_id: str
    speaker: Speaker
    text: str
    turn_type: TurnType
    addressee: str
    answer: str | None = None
    resolves: str | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """One piece of evidence: ``quote`` stands word for word in utterance ``utterance_id``.

    ``number`` is what the quote says, as a number (clock times in minutes after midnight); ``key`` what the number
    belongs to, where answers are names of things.
    """

    utterance_id: str
    quote: str
    number: int | None = None
    key: str = ""


@dataclass(frozen=True, slots=True)
class Derivation:
    """How the gold answer follows: an operation of ``derivation.OPERATIONS`` on facts, in order."""

    operation: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Script:
    """One conversation in one addressing condition; ``names`` are the spoken names of speakers A, B, ... in order.

    The gold answer follows from ``derivation`` or from ``common_knowledge`` (a sentence that states it); without
    either, it must be said in the dialogue before T.
    """

    script_id: str
    scenario_id: str
    condition: Condition
    domain: str
    family: str
    utterances: tuple[Utterance, ...]
    gold_answer: str
    names: tuple[str, ...]
    derivation: Derivation | None = None
    common_knowledge: str | None = None
    assistant_name: str = DEFAULT_ASSISTANT_NAME

    @property
    def n_humans(self) -> int:
        """Number of human speakers who talk."""
        return len({utterance.speaker for utterance in self.utterances})

    @property
    def request(self) -> Utterance:
        """The one T.

        Raises:
            ValueError: there is none, or more than one.
        """
        requests = [utterance for utterance in self.utterances if utterance.turn_type == "T"]
        if len(requests) != 1:
            raise ValueError(f"script {self.script_id} has {len(requests)} turns of type T: it must have exactly one")
        return requests[0]

    def name_of(self, speaker: str) -> str:
        """Spoken name of ``speaker``; raises ValueError for one that the script has no name for."""
        if speaker not in SPEAKERS or SPEAKERS.index(speaker) >= len(self.names):
            raise ValueError(f"script {self.script_id} has no name for speaker {speaker!r}")
        return self.names[SPEAKERS.index(speaker)]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two scripts of one scenario. ``rewritten`` are the utterance ids that the addressing rewrite changed."""

    scenario_id: str
    explicit: Script
    implicit: Script
    rewritten: tuple[str, ...] = field(default=())

    @property
    def differing(self) -> tuple[str, ...]:
        """Ids of utterances that differ between the final scripts, or stand in only one of them."""
        left = {utterance.utterance_id: utterance for utterance in self.explicit.utterances}
        right = {utterance.utterance_id: utterance for utterance in self.implicit.utterances}
        return tuple(sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name)))
