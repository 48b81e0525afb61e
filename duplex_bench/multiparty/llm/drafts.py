"""What the writing model hands back, and the pair that it makes."""

from typing import Final, Literal

from duplex_bench.multiparty.derivation import OPERATIONS
from duplex_bench.multiparty.llm.plan import ScenarioPlan
from duplex_bench.multiparty.scripts import (
    ASSISTANT,
    DEFAULT_ASSISTANT_NAME,
    SILENCE_TYPES,
    Condition,
    Derivation,
    Fact,
    Pair,
    Script,
    Utterance,
)
from duplex_bench.multiparty.validate import pair_faults
from duplex_bench.textmodels.schema import Reply

STATED: Final = "stated"
# A writer that counts a turn wrong is not sent back for it; one that writes half the conversation is (ours).
_TURNS_OFF: Final = 2


class DraftTurn(Reply):
    """One turn as the model writes it."""

    speaker: Literal["A", "B", "C", "D"]
    type: Literal["T", "N1", "N2", "N3", "N4Q", "N4R"]
    text: str
    to: Literal["A", "B", "C", "D", "group", "assistant"]
    answer: str | None


class DraftEvidence(Reply):
    """What the gold answer rests on: the number of a turn from 1, and words of it."""

    turn: int
    quote: str
    number: int | None
    key: str


class Draft(Reply):
    """One scenario as the model writes it."""

    turns: list[DraftTurn]
    implicit_request: str
    implicit_before: str | None
    gold_answer: str
    operation: Literal[
        "stated", "sum", "difference", "product_dollars", "sum_dollars", "difference_dollars", "clock_after",
        "minutes_between", "largest", "smallest", "latest",
    ]  # fmt: skip
    evidence: list[DraftEvidence]


def pair_of(draft: Draft, plan: ScenarioPlan) -> tuple[Pair | None, list[str]]:
    """The pair of a draft, or why it is none: broken rules as ``validate`` names them, and a size far from the plan."""
    problems = _size(draft, plan)
    lost = [entry.turn for entry in draft.evidence if not 1 <= entry.turn <= len(draft.turns)]
    if lost:
        return None, [*problems, f"evidence names turn {lost[0]}, and there are {len(draft.turns)} turns"]
    if draft.operation != STATED and not draft.evidence:
        return None, [*problems, f"operation {draft.operation!r} has no evidence"]
    explicit, implicit = _script(draft, plan, "explicit"), _script(draft, plan, "implicit")
    pair = Pair(plan.scenario_id, explicit, implicit)
    pair = Pair(plan.scenario_id, explicit, implicit, pair.differing)
    # Both forms break most rules together; the model needs to hear each only once.
    faults = {f"{_turn(fault.utterance_id)}{fault.message}. {fault.remedy}": None for fault in pair_faults(pair)}
    problems += list(faults)
    return (None, problems) if problems else (pair, [])


def _turn(utterance_id: str | None) -> str:
    return f"turn {int(utterance_id[1:])}: " if utterance_id else ""


def _size(draft: Draft, plan: ScenarioPlan) -> list[str]:
    found: list[str] = []
    silent = sum(turn.type in SILENCE_TYPES for turn in draft.turns)
    if abs(silent - plan.n_silence) > _TURNS_OFF:
        found.append(f"it has {silent} turns of types N1, N2 and N3, not {plan.n_silence}")
    questions = sum(turn.type == "N4Q" for turn in draft.turns)
    if questions != plan.n_n4:
        found.append(f"it has {questions} turns of type N4Q, not {plan.n_n4}")
    speakers = {turn.speaker for turn in draft.turns}
    if len(speakers) != plan.n_humans:
        found.append(f"{len(speakers)} people speak, not {plan.n_humans}")
    return found


def _script(draft: Draft, plan: ScenarioPlan, condition: Condition) -> Script:
    at = next((number for number, turn in enumerate(draft.turns) if turn.type == "T"), None)
    turns = []
    for number, turn in enumerate(draft.turns):
        text = turn.text.strip()
        if condition == "implicit" and at is not None:
            if number == at:
                text = draft.implicit_request.strip()
            elif number == at - 1 and draft.implicit_before:
                text = draft.implicit_before.strip()
        resolves = f"u{number:02d}" if turn.type == "N4R" and number else None
        to = ASSISTANT if turn.to == "assistant" else turn.to
        answer = turn.answer if turn.type == "N4Q" else None
        turns.append(Utterance(f"u{number + 1:02d}", turn.speaker, text, turn.type, to, answer, resolves))
    facts = tuple(Fact(f"u{entry.turn:02d}", entry.quote, entry.number, entry.key) for entry in draft.evidence)
    computed = draft.operation in OPERATIONS
    return Script(
        script_id=f"{plan.scenario_id}-{condition}",
        scenario_id=plan.scenario_id,
        condition=condition,
        domain=plan.domain,
        family=plan.family,
        utterances=tuple(turns),
        gold_answer=draft.gold_answer.strip(),
        names=plan.names,
        derivation=Derivation(draft.operation, facts) if computed else None,
        assistant_name=DEFAULT_ASSISTANT_NAME,
    )
