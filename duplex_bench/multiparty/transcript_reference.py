"""The transcript reference (P1 A5.2): respond or stay silent, decided from words alone, one utterance at a time.

Each decision sees the utterance and the speaker-attributed dialogue before it: no turn after it, no answer of the
reference's own, no label, no gold answer. To whom the utterance was said is asked separately.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from duplex_bench.multiparty.scripts import ASSISTANT, GROUP, SILENCE_TYPES, SPEAKERS, Script, TurnType
from duplex_bench.multiparty.validate import said
from duplex_bench.storage.digests import digest_value
from duplex_bench.text.words import content_words
from duplex_bench.textmodels.model import TextModel
from duplex_bench.textmodels.prompt_files import PromptFile, prompt_file
from duplex_bench.textmodels.schema import Reply
from duplex_bench.textmodels.settings import ModelSettings
from duplex_bench.textmodels.wire import TextRequest, Turn

SYSTEM: Final = "transcript-reference"
RULE_SYSTEM: Final = "transcript-rule"
"""The stand-in has a name of its own, so that its rows are never read as a model's."""
PROMPTS: Final = ("decide", "addressee")
DECIDED_TYPES: Final[tuple[TurnType, ...]] = ("T", *SILENCE_TYPES, "N4Q")
"""Utterances that are decided: about 12.1 a conversation in the paper. N4R is not among them."""
RULE_VERSION: Final = 1


class ReferenceSettingsError(ValueError):
    """Settings of the reference that cannot be followed; the message names the setting."""


@dataclass(frozen=True, slots=True)
class ReferenceSettings:
    """Who decides.

    Attributes:
        engine: "embedded" is a rule on names and openers that stands in for a model; "off" makes no reference.
        model: the text model, for engine "model" (the paper's is Gemini 3.1 Pro).
        runs: independent runs over all utterances; the first is scored, agreement is reported over the first two.
    """

    engine: Literal["embedded", "model", "off"] = "embedded"
    model: ModelSettings | None = None
    runs: int = 2

    def __post_init__(self) -> None:
        if self.engine == "model" and self.model is None:
            raise ReferenceSettingsError("reference.engine is model: name one in reference.model (vendor, model)")
        if self.runs < 1:
            raise ReferenceSettingsError("reference.runs must be at least 1")

    @property
    def system(self) -> str:
        """Under which name it stands in tables."""
        return SYSTEM if self.engine == "model" else RULE_SYSTEM


@dataclass(frozen=True, slots=True)
class Case:
    """All that a decision may see. ``before`` are (speaker, text) in order; ``names`` the spoken names from A on."""

    speaker: str
    text: str
    before: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    assistant_name: str


@dataclass(frozen=True, slots=True)
class Decided:
    """What was decided: None where there was no readable answer, with the reason."""

    respond: bool | None
    answer: str
    addressee: str | None
    reason: str = ""


class Decider(Protocol):
    """Decides one case. ``key`` holds all that the decision depends on, ``run`` included."""

    name: str

    def key(self, case: Case, run: int) -> str:
        """Digest of the case, the decider and the run."""
        ...

    def decide(self, case: Case, run: int) -> Decided:
        """The decision."""
        ...


def case_of(script: Script, utterance_id: str) -> Case:
    """The case of one utterance of ``script``: it and what came before it.

    Raises:
        ValueError: the script has no such utterance.
    """
    for number, turn in enumerate(script.utterances):
        if turn.utterance_id == utterance_id:
            before = tuple((earlier.speaker, earlier.text) for earlier in script.utterances[:number])
            return Case(turn.speaker, turn.text, before, script.names, script.assistant_name)
    raise ValueError(f"script {script.script_id} has no utterance {utterance_id!r}")


def prompt(name: str) -> PromptFile:
    """A prompt of the reference, one of ``PROMPTS``."""
    return prompt_file("duplex_bench.multiparty", f"reference_prompts/{name}")


class Decision(Reply):
    """What the model hands back on speaking."""

    decision: Literal["RESPOND", "SILENT"]
    answer: str | None


class Addressee(Reply):
    """What the model hands back on the addressee."""

    addressee: Literal["A", "B", "C", "D", "group", "assistant"]


def decision_request(case: Case, run: int) -> TextRequest:
    """The question whether to speak."""
    return TextRequest((Turn("user", prompt("decide").render(_gaps(case))),), name="decision", sample=run)


def addressee_request(case: Case, run: int) -> TextRequest:
    """The question to whom it was said."""
    return TextRequest((Turn("user", prompt("addressee").render(_gaps(case))),), name="addressee", sample=run)


def _gaps(case: Case) -> dict[str, str]:
    people = [f"{letter} ({name})" for letter, name in zip(SPEAKERS, case.names, strict=False)]
    dialogue = "\n".join(_line(case, speaker, text) for speaker, text in case.before)
    return {
        "assistant": case.assistant_name,
        "people": ", ".join(people),
        "dialogue": dialogue or "(nothing)",
        "utterance": _line(case, case.speaker, case.text),
    }


def _line(case: Case, speaker: str, text: str) -> str:
    return f"{speaker} ({case.names[SPEAKERS.index(speaker)]}): {text}"


class ModelDecider:
    """A text model decides. The same words before the same utterance are one request, in whichever script."""

    def __init__(self, model: TextModel) -> None:
        self.model = model
        self.name = model.settings.name

    def key(self, case: Case, run: int) -> str:
        """Digest of all that the decision depends on."""
        decision = self.model.key(decision_request(case, run), Decision)
        return digest_value("transcript reference", decision, self.model.key(addressee_request(case, run), Addressee))

    def needs_call(self, case: Case, run: int) -> bool:
        """Whether deciding calls the provider."""
        return self.model.needs_call(decision_request(case, run), Decision)

    def decide(self, case: Case, run: int) -> Decided:
        """Decision and addressee, each None with the reason where the model gave no readable answer."""
        spoken = self.model.ask(decision_request(case, run), Decision, SYSTEM)
        named = self.model.ask(addressee_request(case, run), Addressee, SYSTEM)
        reasons = [one.reason for one in (spoken, named) if one.reason]
        respond = None if spoken.value is None else spoken.value.decision == "RESPOND"
        answer = (spoken.value.answer or "").strip() if spoken.value is not None and respond else ""
        return Decided(respond, answer, None if named.value is None else named.value.addressee, "; ".join(reasons))


_ANYONE: Final = re.compile(r"\b(any|some)(one|body)\b.*\?", re.IGNORECASE)
_YOU: Final = re.compile(r"\b(you|your|yours)\b.*\?", re.IGNORECASE)


class RuleDecider:
    """The stand-in without a key: it answers who calls its name or asks whoever is there.

    It responds to its name between pauses ("Aria, ...", "..., Aria?") and to a question to anyone or somebody. Its
    answer is the earlier utterance that shares most content words with the question: no arithmetic, no memory of its
    own. The addressee is the one whose name is called; else the speaker before, for a question with "you"; else the
    group. Every run is the same, so that its agreement with itself says nothing.
    """

    name = f"rule/{RULE_VERSION}"

    def key(self, case: Case, run: int) -> str:
        """Digest of all that the decision depends on."""
        return digest_value("transcript reference", self.name, run, case)

    def decide(self, case: Case, run: int) -> Decided:
        """The decision by rule; never None."""
        del run
        called = [name for name in (case.assistant_name, *case.names) if _calls(name, case.text)]
        respond = case.assistant_name in called or (not called and bool(_ANYONE.search(case.text)))
        return Decided(respond, _nearest(case) if respond else "", self._addressee(case, called, respond))

    def _addressee(self, case: Case, called: Sequence[str], respond: bool) -> str:
        if respond:
            return ASSISTANT
        if called:
            return SPEAKERS[case.names.index(called[0])]
        if case.before and case.before[-1][0] != case.speaker and _YOU.search(case.text):
            return case.before[-1][0]
        return GROUP


def _calls(name: str, text: str) -> bool:
    word = re.escape(name)
    between = rf"(^|[.!?,]\s*|\b(hey|okay|ok|hi|so|right|well)\s+){word}\s*,|,\s*{word}\s*[?.!]"
    return said(name, text) and re.search(between, text, re.IGNORECASE) is not None


def _nearest(case: Case) -> str:
    asked = set(content_words(case.text)) - {case.assistant_name.lower()}
    best, shared = "", 0
    for _, text in case.before:
        count = len(asked & set(content_words(text)))
        # Of equals the later one: corrections come after what they correct.
        if count and count >= shared:
            best, shared = text, count
    return best or "I don't know."
