"""Draws from a named generator, in the words of the grammar."""

from collections.abc import Sequence
from typing import TypeVar

from duplex_bench.storage.digests import generator_from

Value = TypeVar("Value")


class Draw:
    """Choices seeded by names: equal names give equal choices in every process."""

    def __init__(self, *names: str | int) -> None:
        self._rng = generator_from(*names)

    def chance(self, probability: float) -> bool:
        """True with ``probability``."""
        return bool(self._rng.random() < probability)

    def one(self, values: Sequence[Value]) -> Value:
        """One of ``values``."""
        return values[int(self._rng.integers(len(values)))]

    def some(self, values: Sequence[Value], count: int) -> list[Value]:
        """``count`` different positions of ``values``, in drawn order; all of them where there are fewer."""
        order = self._rng.permutation(len(values))[:count]
        return [values[int(index)] for index in order]

    def between(self, low: int, high: int, step: int = 1) -> int:
        """A whole number from ``low`` to ``high`` in steps of ``step``, both ends possible."""
        return low + step * int(self._rng.integers((high - low) // step + 1))

    def rounded(self, mean: float) -> int:
        """A whole number next to ``mean`` whose expectation is ``mean``."""
        whole = int(mean)
        return whole + self.chance(mean - whole)
