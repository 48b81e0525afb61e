"""Identity prompts and recall facts written by a text model, with the checks that a question must pass (P2 3.3)."""

from collections.abc import Mapping, Sequence
from typing import Final

from duplex_bench.conversation.label_types import SPEAKERS, Label, Speaker, Word, other
from duplex_bench.conversation.recall import (
    IdentityPrompt,
    RecallFact,
    RecallSettings,
    prefix_end,
    transcript_of,
    with_frame,
)
from duplex_bench.records.items import Item
from duplex_bench.text.normalise import normalised_words
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.prompt_files import PromptFile, prompt_file
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.wire import TextRequest, Turn

PROMPTS: Final = ("identity", "recall_fact", "specificity", "answer_alone", "answer_from_text")
_PACKAGE: Final = "duplex_bench.conversation.prompts"
Words = Mapping[Speaker, Sequence[Word]]


class WrittenIdentity(Reply):
    """The note to a player."""

    note: str


class WrittenFact(Reply):
    """A question about a particular; all empty where there is none."""

    question: str
    answer: str
    evidence: str


class Specific(Reply):
    """Whether a question has one answer that only a listener can know."""

    specific: bool
    reason: str


class Guess(Reply):
    """An answer without the conversation."""

    answer: str


def recall_prompt(name: str) -> PromptFile:
    """One of ``PROMPTS``."""
    return prompt_file(_PACKAGE, name)


def _request(name: str, values: Mapping[str, str]) -> TextRequest:
    return TextRequest((Turn("user", recall_prompt(name).render(values)),), name=name)


def typical_requests(n_words: int, n_words_early: int) -> dict[str, tuple[TextRequest, type[Reply]]]:
    """One request of each kind that writing probes takes, with filler of the length of a session, for plans.

    Args:
        n_words: words of the session.
        n_words_early: words before the end of the shortest history.
    """
    text, early, line = (" ".join(["word"] * n) for n in (n_words, n_words_early, 30))
    kinds: tuple[tuple[str, type[Reply], str], ...] = (
        ("identity", WrittenIdentity, text),
        ("recall_fact", WrittenFact, early),
        ("specificity", Specific, line),
        ("answer_alone", Guess, line),
    )
    return {name: (_request(name, dict.fromkeys(recall_prompt(name).fields, filler)), kind)
            for name, kind, filler in kinds}  # fmt: skip


def written_identity(
    model: TextModel, session_id: str, speaker: Speaker, labels: Sequence[Label], words: Words
) -> IdentityPrompt | None:
    """Who plays ``speaker``, written from the transcript; None where the model gave no usable answer."""
    names: dict[Speaker, str] = {"left": "A", "right": "B"}
    values = {"speaker": names[speaker], "transcript": transcript_of(labels, words, names, float("inf"))}
    answer = model.ask(_request("identity", values), WrittenIdentity, session_id)
    if answer.value is None or not answer.value.note.strip():
        return None
    return IdentityPrompt(session_id, speaker, with_frame(answer.value.note), model.settings.name)


def written_facts(
    model: TextModel, session_id: str, labels: Sequence[Label], words: Words, duration_s: float,
    settings: RecallSettings,
) -> list[RecallFact]:  # fmt: skip
    """At most one specific fact for each asker, stated inside the first prefix; none where the model found none."""
    until_s = prefix_end(labels, settings.lengths_s[0], duration_s)
    if until_s is None:
        return []
    found = []
    for asker in SPEAKERS:
        names: dict[Speaker, str] = {asker: "asker", other(asker): "other"}
        values = {"transcript": transcript_of(labels, words, names, until_s)}
        written = model.ask(_request("recall_fact", values), WrittenFact, session_id).value
        if written is None or not (written.question and written.answer):
            continue
        place = _stated_at(written.evidence, words, until_s)
        if place is None or not _is_specific(model, session_id, written):
            continue
        found.append(
            RecallFact(session_id, asker, written.question, written.answer, written.evidence, *place,
                       model.settings.name)
        )  # fmt: skip
    return found


def _is_specific(model: TextModel, session_id: str, written: WrittenFact) -> bool:
    values = {"evidence": written.evidence, "question": written.question, "answer": written.answer}
    judged = model.ask(_request("specificity", values), Specific, session_id).value
    return judged is not None and judged.specific


def _stated_at(evidence: str, words: Words, until_s: float) -> tuple[float, float] | None:
    """When the quoted words were said, by either speaker; None if they were not (a quote must be exact)."""
    quoted = normalised_words(evidence)
    if not quoted:
        return None
    for speaker in SPEAKERS:
        said = [(token, word) for word in words[speaker] if word.end_s <= until_s for token in
                normalised_words(word.text)]  # fmt: skip
        tokens = [token for token, _ in said]
        for start in range(len(tokens) - len(quoted) + 1):
            if tokens[start : start + len(quoted)] == quoted:
                return said[start][1].start_s, said[start + len(quoted) - 1][1].end_s
    return None


def guess_without_conversation(model: TextModel, session_id: str, identity: str, question: str) -> str:
    """What the model answers from identity prompt and question alone; "" where it gave no answer."""
    values = {"identity": identity, "question": question}
    answer = model.ask(_request("answer_alone", values), Guess, session_id).value
    return answer.answer if answer is not None else ""


def ceiling_request(item: Item) -> TextRequest:
    """A recall item's history and question, as put to a text model; its answer is a ``Guess``."""
    values = {
        "identity": item.stimulus.identity_prompt or "",
        "transcript": "\n".join(f"{turn.role}: {turn.text}" for turn in item.stimulus.history),
        "question": str(item.reference.attributes["question"]),
    }
    return _request("answer_from_text", values)


def answer_from_text(model: TextModel, item: Item) -> str:
    """What the model answers to a recall item's question after reading its history; "" where it gave no answer."""
    answer = model.ask(ceiling_request(item), Guess, item.cluster).value
    return answer.answer.strip() if answer is not None else ""
