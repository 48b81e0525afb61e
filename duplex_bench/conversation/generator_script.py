"""What synthetic speakers say: sentences and facts from ``data/scripts.toml``, filled in and dealt out by seed."""

import re
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

_SLOT = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class ScriptedFact:
    """A checkable statement with its question ("I" is who stated it) and gold answer."""

    statement: str
    question: str
    answer: str


class ScriptDeck:
    """Deals sentences without repeating one until all of its topics are used up, then shuffles and refills them.

    Args:
        rng: source of all choices.
        n_topics: how many topics a session talks about.
    """

    def __init__(self, rng: np.random.Generator, n_topics: int = 3) -> None:
        self._rng = rng
        self._data = _scripts()
        topics = self._data["topics"]
        chosen = [topics[int(i)] for i in rng.permutation(len(topics))[:n_topics]]
        self.topics = tuple(str(topic["id"]) for topic in chosen)
        self._statements: list[str] = [text for topic in chosen for text in topic["statements"]]
        self._questions: list[str] = [text for topic in chosen for text in topic["questions"]]
        self._pools: dict[str, list[str]] = {}

    def statement(self) -> str:
        """A sentence of some ten words."""
        return self._filled(self._next("statements", self._statements), {})

    def question(self) -> str:
        """A question to the other speaker."""
        return self._filled(self._next("questions", self._questions), {})

    def backchannel(self) -> str:
        """One or two words that take no floor."""
        return self._next("backchannels", self._data["backchannels"])

    def failed_take(self) -> str:
        """The beginning of something, at least three words."""
        return self._next("failed_takes", self._data["failed_takes"])

    def filler_line(self) -> str:
        """The beginning of a sentence that ends in a filler word."""
        filler = self._next("fillers", self._data["fillers"])
        return f"{self._next('filler_lines', self._data['filler_lines'])} {filler}"

    def fact(self) -> ScriptedFact:
        """A fact whose slots are filled alike in statement, question and answer."""
        facts = self._data["facts"]
        fact = facts[int(self._rng.integers(len(facts)))]
        values: dict[str, str] = {}
        return ScriptedFact(*(self._filled(fact[part], values) for part in ("statement", "question", "answer")))

    def _next(self, pool: str, source: list[str]) -> str:
        left = self._pools.setdefault(pool, [])
        if not left:
            left.extend(source[int(i)] for i in self._rng.permutation(len(source)))
        return left.pop()

    def _filled(self, text: str, values: dict[str, str]) -> str:
        def value(match: re.Match[str]) -> str:
            slot = match.group(1)
            if slot not in values:
                options = self._data["slots"][slot]
                values[slot] = str(options[int(self._rng.integers(len(options)))])
            return values[slot]

        return _SLOT.sub(value, text)


@cache
def _scripts() -> dict[str, Any]:
    source = files("duplex_bench.conversation").joinpath("data/scripts.toml")
    return tomllib.loads(source.read_text(encoding="utf-8"))
