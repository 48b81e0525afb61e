from collections.abc import Callable
from dataclasses import replace

import pytest

from duplex_bench.multiparty.derivation import DerivationError, conclude
from duplex_bench.multiparty.scripts import Derivation, Fact, Pair, Script, Utterance
from duplex_bench.multiparty.validate import (
    PAIR_RULES,
    SCRIPT_RULES,
    InvalidScriptError,
    check_pair,
    pair_faults,
    script_faults,
)

pytestmark = pytest.mark.unit


def turned(which: str, **changes: object) -> Callable[[Script], Script]:
    """An edit of one turn."""

    def edit(script: Script) -> Script:
        turns = [replace(t, **changes) if t.utterance_id == which else t for t in script.utterances]
        return replace(script, utterances=tuple(turns))

    return edit


def without(*utterance_ids: str) -> Callable[[Script], Script]:
    return lambda script: replace(
        script, utterances=tuple(t for t in script.utterances if t.utterance_id not in utterance_ids)
    )


def only(start: int, stop: int) -> Callable[[Script], Script]:
    return lambda script: replace(script, utterances=script.utterances[start:stop])


BREAKS = [
    ("turns_are_whole", turned("u04", text="..."), "says nothing"),
    ("turns_are_whole", turned("u04", utterance_id="u05"), "used twice"),
    ("turns_are_whole", turned("u04", speaker="D"), "speaker 'D' has no name"),
    ("turns_are_whole", turned("u09", addressee="E"), "addressee 'E' does not exist"),
    ("turns_are_whole", turned("u09", turn_type="N7"), "type 'N7' is unknown"),
    ("three_or_four_humans", without("u03", "u05", "u08", "u04"), "2 humans"),
    ("one_request", without("u03"), "there is no T"),
    ("one_request", turned("u09", turn_type="T", addressee="assistant", text="Aria, and now?"), "2 turns of type T"),
    ("request_not_first", only(2, 9), "T is the first turn"),
    ("request_followed_by_talk", only(0, 3), "nothing follows T"),
    ("request_addresses_assistant", turned("u03", addressee="B"), "addressed to 'B'"),
    ("request_addresses_assistant", turned("u03", text="How many eggs do we have?"), "does not name Aria"),
    ("gold_answer_entailed", turned("u02", text="And some more in the fridge."), "'three' is not said"),
    ("gold_answer_entailed", lambda script: replace(script, gold_answer="eight"), "the facts give 'seven'"),
    ("gold_answer_entailed", lambda script: replace(script, gold_answer=""), "no gold answer"),
    ("gold_answer_entailed", lambda script: replace(script, derivation=None), "'seven' is not said before T"),
    (
        "gold_answer_entailed",
        lambda script: replace(script, derivation=Derivation("sum", (Fact("u01", "four", 4), Fact("u06", "shelf", 3)))),
        "not given before T",
    ),
    (
        "gold_answer_entailed",
        lambda script: replace(script, derivation=None, common_knowledge="A week has a number of days."),
        "does not state",
    ),
    ("n1_asks_an_existing_human", turned("u04", addressee="group"), "not to another human"),
    ("n1_asks_an_existing_human", turned("u04", addressee="A"), "not to another human"),
    ("n1_asks_an_existing_human", turned("u04", addressee="B", text="Stir the soup."), "neither names nor implies B"),
    ("silence_turns_do_not_ask", turned("u05", text="Aria, tell us a joke."), "addressed to Aria"),
    ("silence_turns_do_not_ask", turned("u05", text="Tell us a joke, Aria."), "addressed to Aria"),
    ("silence_turns_do_not_ask", turned("u09", addressee="assistant"), "addressed to Aria"),
    ("silence_turns_do_not_ask", turned("u04", text="Carla, could you ask Aria?"), "yet says Aria"),
    ("n3_mentions_without_asking", turned("u05", text="It rained yesterday."), "mentions neither"),
    ("n4r_resolves_n4q", without("u08"), "no N4R follows"),
    ("n4r_resolves_n4q", without("u07"), "follows no N4Q"),
    ("n4r_resolves_n4q", turned("u08", speaker="A"), "who asked N4Q resolves it"),
    ("n4r_resolves_n4q", turned("u08", text="No idea."), "does not say the answer"),
    ("n4r_resolves_n4q", turned("u08", resolves="u01"), "says it resolves 'u01'"),
    ("n4r_resolves_n4q", turned("u07", text="Where is the corkscrew?"), "does not ask Aria"),
    ("no_leaked_labels", turned("u09", text="This is an N2 turn."), "contains 'N2'"),
    ("no_leaked_labels", turned("u09", text="Then {name} can start."), "contains '{'"),
    ("no_leaked_labels", turned("u09", text="Speaker B can start."), "contains 'Speaker B'"),
]


def test_valid_scripts_have_no_faults(pair: Pair) -> None:
    assert pair_faults(pair) == []
    assert check_pair(pair) is pair


@pytest.mark.parametrize(("rule", "edit", "message"), BREAKS)
def test_each_rule_finds_its_fault(explicit_script: Script, rule: str, edit, message: str) -> None:
    faults = [fault for fault in script_faults(edit(explicit_script)) if fault.rule == rule]
    assert message in " / ".join(fault.message for fault in faults)
    assert faults[0].remedy == SCRIPT_RULES[rule][1]


@pytest.mark.parametrize("word", ["Aria", "the assistant", "AI", "the bot", "computer"])
def test_the_implicit_form_names_nobody(implicit_script: Script, word: str) -> None:
    broken = turned("u03", text=f"Can {word} say how many eggs we have?")(implicit_script)
    assert "implicit_without_name_or_role" in {fault.rule for fault in script_faults(broken)}


def test_words_that_only_contain_a_role_word_are_fine(implicit_script: Script) -> None:
    fine = turned("u03", text="Can someone in the air above the bottom say how many?")(implicit_script)
    assert script_faults(fine) == []


def test_every_rule_has_a_breaking_script() -> None:
    assert {rule for rule, *_ in BREAKS} | {"implicit_without_name_or_role"} == set(SCRIPT_RULES)


@pytest.mark.parametrize(
    ("rule", "edit"),
    [
        ("pair_has_both_conditions", lambda pair: replace(pair, implicit=pair.explicit)),
        ("pair_has_both_conditions", lambda pair: replace(pair, scenario_id="other")),
        ("pair_keeps_task_and_gold", lambda pair: replace(pair, implicit=replace(pair.implicit, gold_answer="eight"))),
        ("pair_keeps_task_and_gold", lambda pair: replace(pair, implicit=turned("u03", speaker="A")(pair.implicit))),
        (
            "pair_forms_differ",
            lambda pair: replace(pair, implicit=turned("u03", text=pair.explicit.request.text)(pair.implicit)),
        ),
    ],
)
def test_pair_rules(pair: Pair, rule: str, edit) -> None:
    broken = edit(pair)
    assert rule in {fault.rule for fault in pair_faults(broken)}
    with pytest.raises(InvalidScriptError, match=rule):
        check_pair(broken)
    assert rule in PAIR_RULES


def test_common_knowledge_may_hold_the_answer(explicit_script: Script) -> None:
    script = replace(explicit_script, derivation=None, common_knowledge="A week has seven days.")
    assert script_faults(script) == []
    digits = replace(explicit_script, derivation=None, common_knowledge="A week has 7 days.")
    assert script_faults(digits) == []


def test_an_implied_addressee_is_enough(explicit_script: Script) -> None:
    implied = turned("u04", text="Could you stir the soup?")(explicit_script)
    assert script_faults(implied) == []  # C has just spoken and speaks next


@pytest.mark.parametrize(
    ("operation", "numbers", "answer"),
    [
        ("sum", (4, 3, 16), "twenty-three"),
        ("difference", (19, 9), "ten"),
        ("product_dollars", (1, 1), "one dollar"),
        ("sum_dollars", (33, 38), "seventy-one dollars"),
        ("difference_dollars", (39, 24), "fifteen dollars"),
        ("clock_after", (8 * 60 + 40, 35), "nine fifteen"),
        ("minutes_between", (8 * 60 + 40, 9 * 60 + 25), "forty-five minutes"),
        ("largest", (5, 9, 7), "k1"),
        ("smallest", (5, 9, 7), "k0"),
    ],
)
def test_operations(operation: str, numbers: tuple[int, ...], answer: str) -> None:
    facts = tuple(Fact(f"u{n}", str(number), number, f"k{n}") for n, number in enumerate(numbers))
    assert conclude(Derivation(operation, facts)) == answer


def test_operations_refuse_what_has_no_answer() -> None:
    tie = (Fact("u1", "five", 5, "x"), Fact("u2", "five", 5, "y"))
    for operation, facts, message in (
        ("largest", tie, "no single answer"),
        ("sum", (), "no facts"),
        ("sum", (Fact("u1", "five"),), "no number"),
        ("guess", tie, "unknown"),
        ("difference", (Fact("u1", "one", 1), Fact("u2", "two", 2)), "outside 0 to 999"),
    ):
        with pytest.raises(DerivationError, match=message):
            conclude(Derivation(operation, facts))


def test_script_says_who_is_missing(explicit_script: Script) -> None:
    with pytest.raises(ValueError, match="0 turns of type T"):
        _ = without("u03")(explicit_script).request
    with pytest.raises(ValueError, match="no name for speaker 'D'"):
        explicit_script.name_of("D")
    assert Utterance("u1", "A", "Hi.", "N2", "group").answer is None
