"""Rules that every script and pair must keep, whoever wrote it (P1 3.2, 3.3; design 7). Each rule has a name."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from duplex_bench.multiparty.derivation import DerivationError, conclude
from duplex_bench.multiparty.scripts import ASSISTANT, GROUP, SILENCE_TYPES, SPEAKERS, TURN_TYPES, Pair, Script
from duplex_bench.text.normalise import normalised_words

ROLE_WORDS: Final = (
    "assistant", "ai", "bot", "chatbot", "robot", "computer", "machine", "device", "smart speaker", "virtual", "model",
)  # fmt: skip
_LEAKS: Final = re.compile(
    r"\bN[1-3]\b|\bN4[QR]\b|\bturn type\b|\bspeaker [A-D]\b|\bgold answer\b|\bexplicit condition\b"
    r"|\bimplicit condition\b|\baddressee\b|[{}\[\]<>]",
    re.IGNORECASE,
)
_ASKING: Final = re.compile(r"\b(ask|asks|asked|asking|request|question|questions)\b", re.IGNORECASE)
_SECOND_PERSON: Final = re.compile(r"\b(you|your|yours)\b", re.IGNORECASE)
_WORD: Final = re.compile(r"[a-z0-9']+")


@dataclass(frozen=True, slots=True)
class Fault:
    """A broken rule: which, where, what is wrong, and what would mend it."""

    rule: str
    scenario_id: str
    condition: str
    utterance_id: str | None
    message: str
    remedy: str

    def __str__(self) -> str:
        where = f", turn {self.utterance_id}" if self.utterance_id else ""
        return f"scenario {self.scenario_id} ({self.condition}){where}: {self.message} [{self.rule}]. {self.remedy}"


class InvalidScriptError(ValueError):
    """A script or pair breaks rules; ``faults`` says which."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__("; ".join(str(fault) for fault in faults))
        self.faults = tuple(faults)


Found = Iterator[tuple[str | None, str]]


def said(phrase: str, text: str) -> bool:
    """Whether ``text`` contains the words of ``phrase`` in a row, whatever the case and punctuation."""
    wanted, words = _WORD.findall(phrase.lower()), _WORD.findall(text.lower())
    return bool(wanted) and any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def stated(phrase: str, text: str) -> bool:
    """Whether ``text`` says ``phrase``, numbers and times counting as equal however they are written."""
    if said(phrase, text):
        return True
    wanted, words = normalised_words(phrase), normalised_words(text)
    return bool(wanted) and any(words[at : at + len(wanted)] == wanted for at in range(len(words)))


def _turns_are_whole(script: Script) -> Found:
    seen: set[str] = set()
    for turn in script.utterances:
        if turn.utterance_id in seen:
            yield turn.utterance_id, "its id is used twice"
        seen.add(turn.utterance_id)
        if not _WORD.search(turn.text.lower()):
            yield turn.utterance_id, "it says nothing"
        if turn.turn_type not in TURN_TYPES:
            yield turn.utterance_id, f"its type {turn.turn_type!r} is unknown"
        if turn.speaker not in SPEAKERS[: len(script.names)]:
            yield turn.utterance_id, f"its speaker {turn.speaker!r} has no name"
        if turn.addressee not in (ASSISTANT, GROUP, *SPEAKERS[: len(script.names)]):
            yield turn.utterance_id, f"its addressee {turn.addressee!r} does not exist"


def _three_or_four_humans(script: Script) -> Found:
    if script.n_humans not in (3, 4):
        yield None, f"{script.n_humans} humans speak"


def _one_request(script: Script) -> Found:
    count = sum(turn.turn_type == "T" for turn in script.utterances)
    if count != 1:
        yield None, "there is no T" if count == 0 else f"there are {count} turns of type T"


def _request_at(script: Script) -> int | None:
    positions = [number for number, turn in enumerate(script.utterances) if turn.turn_type == "T"]
    return positions[0] if len(positions) == 1 else None


def _request_not_first(script: Script) -> Found:
    if script.utterances and script.utterances[0].turn_type == "T":
        yield script.utterances[0].utterance_id, "T is the first turn"


def _request_followed(script: Script) -> Found:
    if script.utterances and script.utterances[-1].turn_type == "T":
        yield script.utterances[-1].utterance_id, "nothing follows T"


def _request_form(script: Script) -> Found:
    at = _request_at(script)
    if at is None:
        return
    turn = script.utterances[at]
    if turn.addressee != ASSISTANT:
        yield turn.utterance_id, f"T is addressed to {turn.addressee!r}"
    if script.condition == "explicit" and not said(script.assistant_name, turn.text):
        yield turn.utterance_id, f"the explicit form does not name {script.assistant_name}"


def _implicit_without_name(script: Script) -> Found:
    at = _request_at(script)
    if at is None or script.condition != "implicit":
        return
    turn = script.utterances[at]
    for word in (script.assistant_name, *ROLE_WORDS):
        if said(word, turn.text):
            yield turn.utterance_id, f"the implicit form says {word!r}"


def _gold_entailed(script: Script) -> Found:
    at = _request_at(script)
    if at is None:
        return
    if not _WORD.search(script.gold_answer.lower()):
        yield None, "there is no gold answer"
        return
    before = {turn.utterance_id: turn for turn in script.utterances[:at]}
    if script.derivation is not None:
        for fact in script.derivation.facts:
            if fact.utterance_id not in before:
                yield fact.utterance_id, f"evidence {fact.quote!r} is not given before T"
            elif not stated(fact.quote, before[fact.utterance_id].text):
                yield fact.utterance_id, f"evidence {fact.quote!r} is not said there"
        try:
            answer = conclude(script.derivation)
        except DerivationError as error:
            yield None, str(error)
            return
        if answer != script.gold_answer:
            yield None, f"the facts give {answer!r}, the gold answer is {script.gold_answer!r}"
    elif script.common_knowledge:
        if not stated(script.gold_answer, script.common_knowledge):
            yield None, f"the listed common knowledge does not state the gold answer {script.gold_answer!r}"
    elif not any(stated(script.gold_answer, turn.text) for turn in before.values()):
        yield None, f"the gold answer {script.gold_answer!r} is not said before T"


def _n1_has_addressee(script: Script) -> Found:
    humans = {turn.speaker for turn in script.utterances}
    for number, turn in enumerate(script.utterances):
        if turn.turn_type != "N1":
            continue
        if turn.addressee not in humans or turn.addressee == turn.speaker:
            yield turn.utterance_id, f"N1 is addressed to {turn.addressee!r}, not to another human who speaks"
            continue
        around = script.utterances[max(0, number - 1) : number] + script.utterances[number + 1 : number + 2]
        implied = _SECOND_PERSON.search(turn.text) and any(other.speaker == turn.addressee for other in around)
        if (
            turn.addressee in SPEAKERS[: len(script.names)]
            and not said(script.name_of(turn.addressee), turn.text)
            and not implied
        ):
            yield turn.utterance_id, f"N1 neither names nor implies {turn.addressee}"


def _silence_turns_do_not_ask(script: Script) -> Found:
    name = re.escape(script.assistant_name)
    # A name between pauses calls somebody; a name inside a clause speaks about somebody.
    calls = re.compile(rf"(^|[.!?,]\s*|\b(hey|okay|ok|hi|so)\s+){name}\s*,|,\s*{name}\s*[?.!]", re.IGNORECASE)
    for turn in script.utterances:
        if turn.turn_type in SILENCE_TYPES and (turn.addressee == ASSISTANT or calls.search(turn.text)):
            yield turn.utterance_id, f"a turn that needs silence is addressed to {script.assistant_name}"
        if turn.turn_type == "N1" and said(script.assistant_name, turn.text):
            yield turn.utterance_id, f"N1 asks a human, yet says {script.assistant_name}"


def _n3_mentions(script: Script) -> Found:
    for turn in script.utterances:
        if turn.turn_type == "N3" and not (said(script.assistant_name, turn.text) or _ASKING.search(turn.text)):
            yield turn.utterance_id, "N3 mentions neither the assistant nor a request"


def _n4_resolved(script: Script) -> Found:
    turns = script.utterances
    for number, turn in enumerate(turns):
        if turn.turn_type == "N4Q":
            if turn.addressee != ASSISTANT or not said(script.assistant_name, turn.text):
                yield turn.utterance_id, f"N4Q does not ask {script.assistant_name}"
            following = turns[number + 1] if number + 1 < len(turns) else None
            if following is None or following.turn_type != "N4R":
                yield turn.utterance_id, "no N4R follows this N4Q"
            elif following.speaker == turn.speaker:
                yield following.utterance_id, "the one who asked N4Q resolves it"
            elif not turn.answer or not stated(turn.answer, following.text):
                yield following.utterance_id, f"N4R does not say the answer {turn.answer!r} of N4Q"
        if turn.turn_type == "N4R":
            previous = turns[number - 1] if number else None
            if previous is None or previous.turn_type != "N4Q":
                yield turn.utterance_id, "this N4R follows no N4Q"
            elif turn.resolves != previous.utterance_id:
                yield turn.utterance_id, f"this N4R says it resolves {turn.resolves!r}, not {previous.utterance_id!r}"


def _no_leaked_labels(script: Script) -> Found:
    for turn in script.utterances:
        leak = _LEAKS.search(turn.text)
        if leak:
            yield turn.utterance_id, f"the speech contains {leak.group()!r}"


SCRIPT_RULES: Final[Mapping[str, tuple[Callable[[Script], Found], str]]] = {
    "turns_are_whole": (_turns_are_whole, "Give each turn its own id, a text, a known type, speaker and addressee"),
    "three_or_four_humans": (_three_or_four_humans, "Let three or four humans speak"),
    "one_request": (_one_request, "Mark exactly one turn as T"),
    "request_not_first": (_request_not_first, "Put talk with the evidence before T"),
    "request_followed_by_talk": (_request_followed, "Add at least one turn after T"),
    "request_addresses_assistant": (_request_form, "Address T to the assistant, by name in the explicit form"),
    "implicit_without_name_or_role": (_implicit_without_name, "Cue the request by context only"),
    "gold_answer_entailed": (_gold_entailed, "State the evidence before T, or list common_knowledge that says it"),
    "n1_asks_an_existing_human": (_n1_has_addressee, "Name another human who speaks in the scene"),
    "silence_turns_do_not_ask": (_silence_turns_do_not_ask, "Label it T or N4Q, or word it so that nobody is asked"),
    "n3_mentions_without_asking": (_n3_mentions, "Mention the assistant or a request, or label it N2"),
    "n4r_resolves_n4q": (_n4_resolved, "Let another human say the answer of N4Q in the very next turn, N4R"),
    "no_leaked_labels": (_no_leaked_labels, "Remove labels and brackets from what is spoken"),
}
PAIR_RULES: Final = {
    "pair_has_both_conditions": "Give one explicit and one implicit script of the same scenario",
    "pair_keeps_task_and_gold": "Keep task, speakers, evidence and gold answer; reword only T and what leads to it",
    "pair_forms_differ": "Word T differently in the two conditions",
}


def script_faults(script: Script) -> list[Fault]:
    """Every rule that ``script`` breaks, in the order of ``SCRIPT_RULES``; empty for a valid one."""
    return [
        Fault(rule, script.scenario_id, script.condition, utterance_id, message, remedy)
        for rule, (find, remedy) in SCRIPT_RULES.items()
        for utterance_id, message in find(script)
    ]


def pair_faults(pair: Pair) -> list[Fault]:
    """Every rule that ``pair`` or one of its scripts breaks; empty for a valid one."""
    explicit, implicit = pair.explicit, pair.implicit
    faults = script_faults(explicit) + script_faults(implicit)

    def fault(rule: str, message: str) -> None:
        faults.append(Fault(rule, pair.scenario_id, "pair", None, message, PAIR_RULES[rule]))

    if (explicit.condition, implicit.condition) != ("explicit", "implicit"):
        fault("pair_has_both_conditions", f"its conditions are {explicit.condition} and {implicit.condition}")
    if not explicit.scenario_id == implicit.scenario_id == pair.scenario_id:
        fault("pair_has_both_conditions", f"it joins {explicit.scenario_id} and {implicit.scenario_id}")
    for name in ("gold_answer", "names", "derivation", "common_knowledge", "domain", "family", "assistant_name"):
        if getattr(explicit, name) != getattr(implicit, name):
            fault("pair_keeps_task_and_gold", f"{name} differs between the conditions")
    if _request_at(explicit) is not None and _request_at(implicit) is not None:
        if explicit.request.speaker != implicit.request.speaker:
            fault("pair_keeps_task_and_gold", "another speaker asks")
        if explicit.request.text == implicit.request.text:
            fault("pair_forms_differ", "T is the same in both conditions")
    return faults


def check_pair(pair: Pair) -> Pair:
    """``pair`` itself where it keeps all rules.

    Raises:
        InvalidScriptError: it does not; the message names rule, scenario, turn and remedy.
    """
    faults = pair_faults(pair)
    if faults:
        raise InvalidScriptError(faults)
    return pair
