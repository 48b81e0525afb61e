"""Recall probes: what is asked, after how much history, and which questions are dropped (P2 3.3, design 8)."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from duplex_bench.conversation.label_types import Label, Speaker, Word, other
from duplex_bench.storage.digests import digest_value, seed_from
from duplex_bench.text.words import content_words
from duplex_bench.textmodels.settings import ModelSettings

RecallKind = Literal["conversation_recall", "fact_recall"]
RECALL_KINDS: Final[tuple[RecallKind, ...]] = ("conversation_recall", "fact_recall")
# A label of a transcript in a spoken question gives away that it was written from one.
_LABELS: Final = re.compile(
    r"\b(speaker|participant|person)\s+([ab12]|one|two)\b|\b(user|assistant)\b|\b[A-Z]\d{2,}", re.IGNORECASE
)
_FRAME: Final = (
    "What the assistant said in the conversation so far is your own speech. Stay in the conversation: answer as this "
    "person, in one or two short sentences."
)


@dataclass(frozen=True, slots=True)
class RecallSettings:
    """The numbers and engines of the probes.

    Attributes:
        enabled: whether there are identity prompts and recall items at all.
        lengths_s: history lengths in seconds at which the same question is asked (P2).
        n_conversation_recall: how many conversation-recall points are drawn by hash, None for all (P2: 184, all).
        n_fact_recall: how many fact-recall points are drawn, None for all (P2: 300 of 669).
        seed: of the draw and of which general question a conversation gets.
        model: writes identity prompts and facts and tries to answer without the conversation (P2: GPT-4o); None:
            templates and the facts planted in synthetic sessions.
        heard_ceiling: whether ``model`` also answers every question from the words that the recogniser hears in the
            history (ours): the text ceiling without the label words, for as much again.
        cloning: engine that speaks the question in the asker's voice, as in ``speech.engines``; empty: the embedded
            voice of a synthetic speaker, or the embedded voice nearest in pitch.
        clone_reference_s: least and most of the asker's own speech that a clone is made from (P2: 20 to 40).
        min_share: share of the gold answer's content words for the strict matcher, by kind (P2: half, all).
    """

    enabled: bool = False
    lengths_s: tuple[float, ...] = (30.0, 60.0, 90.0, 120.0)
    n_conversation_recall: int | None = None
    n_fact_recall: int | None = None
    seed: int = 0
    model: ModelSettings | None = None
    heard_ceiling: bool = True
    cloning: str = ""
    clone_reference_s: tuple[float, float] = (20.0, 40.0)
    min_share: Mapping[str, float] = field(default_factory=lambda: {"conversation_recall": 0.5, "fact_recall": 1.0})

    def __post_init__(self) -> None:
        if not self.lengths_s or list(self.lengths_s) != sorted(set(self.lengths_s)) or self.lengths_s[0] <= 0:
            raise ValueError(f"recall lengths_s {self.lengths_s}: give seconds above 0 in rising order, each once")
        if set(self.min_share) != set(RECALL_KINDS) or any(not 0 < share <= 1 for share in self.min_share.values()):
            raise ValueError(f"recall min_share: give a share above 0 and up to 1 for {' and '.join(RECALL_KINDS)}")


@dataclass(frozen=True, slots=True)
class IdentityPrompt:
    """Who a system is told to be when it plays ``speaker``; ``source`` says who wrote it."""

    session_id: str
    speaker: Speaker
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class RecallFact:
    """A particular of a conversation: what ``asker`` says to ask the other about it, and the answer.

    "I" in the question is the asker; the answer speaks from the other's position. Seconds of the recording.
    """

    session_id: str
    asker: Speaker
    question: str
    answer: str
    evidence: str
    start_s: float
    end_s: float
    source: str


@dataclass(frozen=True, slots=True)
class RecallQuestion:
    """A question that passed or was dropped: ``dropped`` names the rule, empty if it is asked."""

    question_id: str
    session_id: str
    kind: RecallKind
    asker: Speaker
    question: str
    answer: str
    source: str
    dropped: str = ""


def prefix_end(labels: Sequence[Label], target_s: float, duration_s: float) -> float | None:
    """Where a history of at most ``target_s`` ends: at the last turn that is over by then; None where none is.

    A recording shorter than the target has no such prefix (ours: it would be a shorter history under that name).
    """
    if duration_s < target_s:
        return None
    return max((label.end_s for label in labels if label.kind == "turn" and label.end_s <= target_s), default=None)


def leaks_label(question: str) -> bool:
    """Whether a spoken question holds a label of a transcript ("speaker 1", "the assistant", a participant's id)."""
    return _LABELS.search(question) is not None


def dropped_by(
    fact: RecallFact,
    labels: Sequence[Label],
    duration_s: float,
    settings: RecallSettings,
    identity: str,
    answers: Callable[[str, str], bool],
) -> str:
    """The rule that drops a fact's question, or "".

    Args:
        fact: question and answer.
        labels: of the session.
        duration_s: of the recording.
        settings: history lengths.
        identity: prompt of the side that is asked.
        answers: whether (gold answer, text) gives the answer: the strict matcher.
    """
    if leaks_label(fact.question):
        return "leaks_speaker_label"
    if not content_words(fact.answer):
        return "answer_without_content_words"
    first = prefix_end(labels, settings.lengths_s[0], duration_s)
    if first is None or fact.end_s > first:
        return "fact_outside_first_prefix"
    if answers(fact.answer, f"{fact.question} {identity}"):
        return "answerable_from_question_and_identity"
    return ""


def question_id(session_id: str, kind: RecallKind, asker: Speaker, question: str) -> str:
    """16 hexadecimal digits from what is asked, of whom, about which conversation."""
    return digest_value("recall/1", session_id, kind, asker, question)[:16]


def question_of(fact: RecallFact, dropped: str) -> RecallQuestion:
    """The question about a fact."""
    kind: RecallKind = "conversation_recall"
    named = question_id(fact.session_id, kind, fact.asker, fact.question)
    return RecallQuestion(named, fact.session_id, kind, fact.asker, fact.question, fact.answer, fact.source, dropped)


@cache
def general_questions() -> tuple[tuple[str, str], ...]:
    """The twelve general questions with their answers."""
    raw = files("duplex_bench.conversation").joinpath("data/fact_questions.toml").read_text("utf-8")
    return tuple((row["question"], row["answer"]) for row in tomllib.loads(raw)["questions"])


def general_question(session_id: str, settings: RecallSettings) -> RecallQuestion:
    """The one general question of a conversation, and who asks it: by a hash of seed and session."""
    drawn = seed_from("fact recall/1", settings.seed, session_id)
    known = general_questions()
    text, answer = known[drawn % len(known)]
    asker: Speaker = "left" if drawn // len(known) % 2 else "right"
    kind: RecallKind = "fact_recall"
    return RecallQuestion(question_id(session_id, kind, asker, text), session_id, kind, asker, text, answer, "list/1")


def with_frame(text: str) -> str:
    """An identity prompt with the sentence that every system gets (P2 3.4)."""
    return f"{text.strip()} {_FRAME}"


def template_identity(session_id: str, speaker: Speaker, words: Mapping[Speaker, Sequence[Word]]) -> IdentityPrompt:
    """The stand-in for a written identity prompt: manner of speaking from counts, no particular of the talk."""
    mine, theirs = len(words[speaker]), len(words[other(speaker)])
    share = mine / max(mine + theirs, 1)
    manner = "You do most of the talking." if share > 0.6 else "You listen more than you talk." if share < 0.4 else (
        "You talk about as much as the other person."
    )  # fmt: skip
    text = (
        "You are one of two people in a relaxed spoken conversation. You know the other person from this conversation "
        f"and talk about everyday things. {manner}"
    )
    return IdentityPrompt(session_id, speaker, with_frame(text), "template/1")


def transcript_of(
    labels: Iterable[Label], words: Mapping[Speaker, Sequence[Word]], names: Mapping[Speaker, str], until_s: float
) -> str:
    """Turns that are over by ``until_s``, one a line, each after its speaker's name."""
    lines = []
    for label in sorted(labels, key=lambda one: (one.start_s, one.end_s)):
        if label.kind == "turn" and label.end_s <= until_s:
            said = [word.text for word in words[label.speaker] if label.start_s <= word.start_s < label.end_s]
            if said:
                lines.append(f"{names[label.speaker]}: {' '.join(said)}")
    return "\n".join(lines)
