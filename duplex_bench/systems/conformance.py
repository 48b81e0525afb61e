"""What every system must, should and may keep to: run it on a new adapter before anything is scored.

The rules are in ``systems/probes``. The level of a system is the highest up to which it breaks no rule.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import SYSTEM_ERRORS, InvalidOutputError, System
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.probes import behaviour_rules, contract_rules, realtime_rules, timing_rules
from duplex_bench.systems.probes.bench import LEVELS, Bench, Level, NotApplicableError, Note, PushBench, Rule, noise_for

Status = Literal["kept", "broken", "not_applicable"]

SUITE_VERSION: Final = "3"
RULES: Final[dict[str, Rule]] = {
    rule.name: rule for rule in (*contract_rules.RULES, *timing_rules.RULES, *behaviour_rules.RULES)
}
REALTIME_RULES: Final[dict[str, Rule]] = {rule.name: rule for rule in realtime_rules.RULES}


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that the system breaks: ``rule`` is its name, ``message`` what was seen and what to do."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one rule; ``messages`` are breaches, measurements, or why it does not apply."""

    rule: str
    level: Level
    status: Status
    messages: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Examination:
    """Every rule's result, in the order of the suite."""

    results: tuple[Result, ...]
    suite: str = SUITE_VERSION

    @property
    def level(self) -> Level | None:
        """The highest level up to which no rule is broken; None if a rule that must be kept is."""
        reached: Level | None = None
        for level in LEVELS:
            if any(result.status == "broken" for result in self.results if result.level == level):
                break
            reached = level
        return reached


def examine(system: System | PushSystem, audio: Samples | None = None, *, policy: bool = False) -> Examination:
    """Try every rule on ``system``.

    Args:
        system: The system; each rule opens sessions of its own, one after another. A ``PushSystem`` has a suite of its
            own, and real sessions of it may cost money.
        audio: What it hears, float32 (n,) at its ``in_rate_hz``: something that makes it speak, or its speech stays
            unchecked. For a frame-stepped system it ends with enough silence for an answer. A second of noise and two
            of silence by default.
        policy: A reference policy: nobody expects that it listens.
    """
    heard = noise_for(system) if audio is None else audio
    if isinstance(system, PushSystem):
        return _examined(PushBench(system, heard), REALTIME_RULES.values())
    return _examined(Bench(system, heard, policy), RULES.values())


def check(system: System | PushSystem, audio: Samples | None = None) -> list[Finding]:
    """The breaches of rules that must be kept; an empty list means that ``system`` keeps the contract.

    See ``examine`` for the arguments.
    """
    return [
        Finding(result.rule, message)
        for result in examine(system, audio).results
        if result.level == "must" and result.status == "broken"
        for message in result.messages
    ]


def _examined(bench: Bench | PushBench, rules: Iterable[Rule]) -> Examination:
    results: list[Result] = []
    for rule in rules:
        if results and results[0].rule == contract_rules.FIRST.name and results[0].status == "broken":
            results.append(Result(rule.name, rule.level, "not_applicable", ("not tried: the spec cannot be run",)))
        else:
            results.append(_tried(bench, rule))
    return Examination(tuple(results))


def _tried(bench: Bench | PushBench, rule: Rule) -> Result:
    broken: list[str] = []
    notes: list[str] = []
    try:
        for said in rule.probe(bench):
            if isinstance(said, Note):
                notes.append(said.message)
            else:
                broken.append(said)
    except NotApplicableError as reason:
        if not broken:
            return Result(rule.name, rule.level, "not_applicable", (str(reason),))
    except InvalidOutputError as error:
        broken.append(str(error))
    except SYSTEM_ERRORS as error:
        broken.append(f"raised {type(error).__name__}: {error}")
    return Result(rule.name, rule.level, "broken" if broken else "kept", tuple(broken or notes))
