"""What the cascade says to what it heard: a rule, its words in ``replies.toml``; right as often as it hears well."""

import re
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from duplex_bench.storage.digests import seed_from
from duplex_bench.systems.adapters.cascade.quantities import clock_words, quantities
from duplex_bench.text.normalise import normalise, normalised_words
from duplex_bench.text.words import content_words

_PLACE = re.compile(
    r"\b((?:in|on|under|behind|next to|above|inside|beside|below|near|at|by|between|over|outside|upstairs|downstairs)\b"
    r"[^.,?!;]*)",
    re.IGNORECASE,
)
_STEM_LETTERS = 5
# What was asked longer ago has been passed over.
_RECENT_SENTENCES = 2


@dataclass(frozen=True, slots=True)
class ReplyData:
    """``replies.toml``, read once."""

    names: frozenset[str]
    duty: tuple[str, ...]
    other_times: tuple[str, ...]
    open_request: tuple[str, ...]
    fillers: frozenset[str]
    asking: frozenset[str]
    intents: dict[str, tuple[str, ...]]
    answers: dict[str, str]
    question_talk: tuple[str, ...]
    statement_talk: tuple[str, ...]


@cache
def reply_data() -> ReplyData:
    """The shipped data of the rule."""
    text = files("duplex_bench.systems.adapters.cascade").joinpath("replies.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return ReplyData(
        frozenset(data["names"]),
        tuple(data["duty"]),
        tuple(data["other_times"]),
        tuple(data["open_request"]),
        frozenset(data["fillers"]),
        frozenset(data["asking"]),
        {name: tuple(cues) for name, cues in data["intents"].items()},
        dict(data["answers"]),
        tuple(data["talk"]["question"]),
        tuple(data["talk"]["statement"]),
    )


def sentences(text: str) -> list[str]:
    """``text`` cut after ``.``, ``?`` and ``!`` that end a word."""
    return [part.strip() for part in re.split(r"(?<=[.?!])\s+", text) if part.strip()]


class ReplyRule:
    """Decides whether to reply and what to say; keeps nothing between calls.

    Args:
        data: The words it goes by.
    """

    def __init__(self, data: ReplyData | None = None) -> None:
        self.data = data or reply_data()

    def has_duty(self, text: str) -> bool:
        """Whether ``text`` tells the assistant to stay silent unless asked."""
        plain = normalise(text)
        return any(cue in plain for cue in self.data.duty)

    def reply(self, earlier: Sequence[str], turn: str) -> str | None:
        """What to say at the end of ``turn``.

        Args:
            earlier: What was heard before it, in order, with a prompt's text first if there is one.
            turn: What was heard since the assistant last had something to decide.

        Returns:
            The reply, or None to stay silent: while the duty is being given, or under it when nothing was asked of the
            assistant.
        """
        if self.has_duty(turn) or not turn.strip():
            return None
        lines = sentences(turn)
        context = [line for text in earlier for line in sentences(text)]
        if any(self.has_duty(text) for text in earlier):
            at = self._request_at(lines)
            return None if at is None else self.answer([*context, *lines[:at]], lines[at])
        if self._is_question(lines[-1]) and self._intent(lines[-1]) is not None:
            return self.answer([*context, *lines[:-1]], lines[-1])
        return self._talk(lines[-1])

    def answer(self, context: Sequence[str], request: str) -> str:
        """An answer to ``request`` from the sentences before it."""
        intent = self._intent(request)
        if intent is None:
            return self.data.answers["unknown"]
        solve = _SOLVERS.get(intent)
        value = solve([line for line in context if self._is_of_now(line)], request) if solve else ""
        if value is None:
            return self.data.answers["unknown"]
        if intent == "left" and value.startswith("$"):
            return self.data.answers["left_money"].format(value=value[1:])
        return self.data.answers[intent].format(value=value)

    def _request_at(self, lines: list[str]) -> int | None:
        """Which of the last sentences asks the assistant: by name (in it or alone before it), or openly."""
        for at in range(len(lines) - 1, max(-1, len(lines) - 1 - _RECENT_SENTENCES), -1):
            plain = normalise(lines[at])
            if any(cue in plain for cue in self.data.open_request):
                return at
            called = self._names_assistant(lines[at]) or (
                at > 0 and len(normalised_words(lines[at - 1])) <= 3 and self._names_assistant(lines[at - 1])
            )
            if called and self._is_question(lines[at]):
                return at
        return None

    def _is_of_now(self, sentence: str) -> bool:
        plain = f" {normalise(sentence)} "
        return not any(f" {cue} " in plain for cue in self.data.other_times)

    def _names_assistant(self, sentence: str) -> bool:
        return any(word in self.data.names for word in normalised_words(sentence))

    def _is_question(self, sentence: str) -> bool:
        if sentence.endswith("?"):
            return True
        passed_over = self.data.names | self.data.fillers
        first = next((word for word in normalised_words(sentence) if word not in passed_over), "")
        return first in self.data.asking

    def _intent(self, request: str) -> str | None:
        plain = f" {normalise(request)} "
        for intent, cues in self.data.intents.items():
            if any(f" {cue} " in plain for cue in cues):
                return intent
        return None

    def _talk(self, sentence: str) -> str:
        choices = self.data.question_talk if self._is_question(sentence) else self.data.statement_talk
        topics = [word for word in content_words(sentence) if word.isalpha() and len(word) > 3]
        line = choices[seed_from("cascade talk", normalise(sentence)) % len(choices)]
        if "{topic}" in line and not topics:
            line = choices[-1] if "{topic}" not in choices[-1] else choices[0]
        return line.format(topic=max(topics, key=len) if topics else "")


def _stems(sentence: str) -> set[str]:
    return {word[:_STEM_LETTERS] for word in content_words(sentence) if not word.isdecimal()}


def _about(context: list[str], request: str) -> list[str]:
    """Sentences that share a content word with the request; all of them if none does."""
    asked = _stems(request)
    return [line for line in context if _stems(line) & asked] or context


def _total(context: list[str], request: str) -> str | None:
    counts = [count for line in _about(context, request) for count in quantities(line).counts]
    return str(sum(counts)) if len(counts) > 1 else None


def _bill(context: list[str], request: str) -> str | None:
    amounts = [amount for line in _about(context, request) for amount in quantities(line).dollars]
    return str(sum(amounts[-2:])) if len(amounts) > 1 else None


def _cost(context: list[str], request: str) -> str | None:
    lines = _about(context, request)
    prices = [amount for line in lines for amount in quantities(line).dollars]
    counts = [count for line in lines for count in quantities(line).counts if not quantities(line).dollars]
    return str(prices[-1] * counts[-1]) if prices and counts else None


def _left(context: list[str], request: str) -> str | None:
    if set(normalised_words(request)) & {"money", "budget", "dollars", "much"}:
        amounts = [amount for line in context for amount in quantities(line).dollars]
        return f"${amounts[0] - amounts[1]}" if len(amounts) > 1 else None
    counts = [count for line in _about(context, request) for count in quantities(line).counts]
    return str(abs(counts[0] - counts[1])) if len(counts) > 1 else None


def _clock_after(context: list[str], request: str) -> str | None:
    lines = _about(context, request)
    clocks = [clock for line in lines for clock in quantities(line).clocks]
    spans = [span for line in lines for span in quantities(line).minutes]
    spans = spans or [span for line in context for span in quantities(line).minutes]
    clocks = clocks or [clock for line in context for clock in quantities(line).clocks]
    if not clocks:
        return None
    return clock_words(clocks[-1] + (spans[-1] if spans else 0))


def _minutes_between(context: list[str], request: str) -> str | None:
    clocks = [clock for line in _about(context, request) for clock in quantities(line).clocks]
    return str(abs(clocks[-1] - clocks[-2])) if len(clocks) > 1 else None


def _where(context: list[str], request: str) -> str | None:
    asked = _stems(request)
    for line in reversed(context):
        place = _PLACE.findall(line)
        if place and _stems(line) & asked:
            return str(place[-1]).strip()
    return None


def _extreme(largest: bool) -> Callable[[list[str], str], str | None]:
    def solve(context: list[str], request: str) -> str | None:
        del request
        found: list[tuple[int, str]] = []
        for line in context:
            said = quantities(line)
            numbers = [*said.dollars, *said.minutes, *said.counts]
            # The thing compared stands before its number: "The lasagna takes forty minutes."
            head = re.split(
                r"\b(?:takes?|costs?|is|are|has|have|feeds?|needs?|holds?|weighs?|was|were|seats?|runs?)\b", line
            )
            if numbers and len(head) > 1 and head[0].strip():
                found.append((numbers[0], head[0].strip()))
        if len(found) < 2:
            return None
        value = (max if largest else min)(found, key=lambda pair: pair[0])
        return re.sub(
            r"^(?:and|well|so|okay|right|um|uh|oh|hm|yeah|actually)\b[, ]*", "", value[1], flags=re.IGNORECASE
        )

    return solve


_SOLVERS: dict[str, Callable[[list[str], str], str | None]] = {
    "minutes_between": _minutes_between,
    "clock_after": _clock_after,
    "left": _left,
    "cost": _cost,
    "bill": _bill,
    "total": _total,
    "where": _where,
    "largest": _extreme(largest=True),
    "smallest": _extreme(largest=False),
}
