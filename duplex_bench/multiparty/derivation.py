"""Gold answers computed from facts: the same operations make them (grammar) and check them (validators)."""

from collections.abc import Callable, Mapping
from typing import Final

from duplex_bench.multiparty.scripts import Derivation, Fact
from duplex_bench.multiparty.spoken import cardinal, clock, dollars, duration

Facts = tuple[Fact, ...]


class DerivationError(ValueError):
    """A derivation names an unknown operation, or its facts lack what the operation needs."""


def _numbers(facts: Facts) -> list[int]:
    missing = [fact.utterance_id for fact in facts if fact.number is None]
    if missing or not facts:
        raise DerivationError(f"facts of {missing or 'no utterance'} carry no number: give each its number")
    return [fact.number for fact in facts if fact.number is not None]


def _less(facts: Facts) -> int:
    first, *rest = _numbers(facts)
    return first - sum(rest)


def _product(facts: Facts) -> int:
    price, count = _numbers(facts)
    return price * count


def _extreme(facts: Facts, largest: bool) -> str:
    numbers = _numbers(facts)
    best = max(numbers) if largest else min(numbers)
    if numbers.count(best) != 1:
        raise DerivationError(f"{best} belongs to more than one fact: the comparison has no single answer")
    return facts[numbers.index(best)].key


OPERATIONS: Final[Mapping[str, Callable[[Facts], str]]] = {
    "sum": lambda facts: cardinal(sum(_numbers(facts))),
    "difference": lambda facts: cardinal(_less(facts)),
    "product_dollars": lambda facts: dollars(_product(facts)),
    "sum_dollars": lambda facts: dollars(sum(_numbers(facts))),
    "difference_dollars": lambda facts: dollars(_less(facts)),
    "clock_after": lambda facts: clock(sum(_numbers(facts))),
    "minutes_between": lambda facts: duration(_numbers(facts)[-1] - _numbers(facts)[0]),
    "largest": lambda facts: _extreme(facts, largest=True),
    "smallest": lambda facts: _extreme(facts, largest=False),
    # The last word counts: a correction replaces what was said before.
    "latest": lambda facts: facts[-1].key or facts[-1].quote,
}


def conclude(derivation: Derivation) -> str:
    """The answer that follows from ``derivation``.

    Raises:
        DerivationError: unknown operation, facts that do not fit it, or a result that cannot be said.
    """
    if derivation.operation not in OPERATIONS:
        raise DerivationError(f"operation {derivation.operation!r} is unknown: choose from {sorted(OPERATIONS)}")
    if not derivation.facts:
        raise DerivationError(f"operation {derivation.operation!r} has no facts")
    try:
        return OPERATIONS[derivation.operation](derivation.facts)
    except DerivationError:
        raise
    except ValueError as error:
        raise DerivationError(f"operation {derivation.operation!r}: {error}") from error
