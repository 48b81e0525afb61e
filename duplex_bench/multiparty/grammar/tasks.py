"""Scenario families: a task is drawn, its evidence worded, and its answer computed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from duplex_bench.multiparty.grammar.draw import Draw
from duplex_bench.multiparty.grammar.lexicon import Domain, phrases
from duplex_bench.multiparty.spoken import cardinal, clock, dollars, duration

SPEAKER_KEY: Final = "{speaker}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line of evidence before it has a speaker; ``key`` "{speaker}" stands for the name of who says it."""

    text: str
    quote: str
    number: int | None = None
    key: str = ""
    counts: bool = True
    """False for a line that is about something else of the same kind: said, but no part of the derivation."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked of the assistant: evidence in the order in which it must be said, and the question twice."""

    family: str
    operation: str
    evidence: tuple[Evidence, ...]
    ask: str
    embedded: str
    distractors: tuple[str, ...]
    used: frozenset[str] = field(default=frozenset())
    """Words of the domain that the task needs for itself; chatter keeps away from them."""


def _lines(
    draw: Draw, family: str, slots: list[dict[str, str]], quotes: list[str], numbers: list[int | None], keys: list[str]
) -> tuple[Evidence, ...]:
    forms = phrases().families[family].evidence
    return tuple(
        Evidence(_capital(fill(draw.one(form), slot)), quote, number, key)
        for form, slot, quote, number, key in zip(forms, slots, quotes, numbers, keys, strict=False)
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def fill(template: str, slots: Mapping[str, str]) -> str:
    """``template`` with its known slots filled and the others left for later."""
    text = template
    for name, value in slots.items():
        text = text.replace("{" + name + "}", value)
    return text


def _task(
    draw: Draw, family: str, operation: str, evidence: tuple[Evidence, ...], slots: dict[str, str], used: set[str]
) -> Task:
    words = phrases().families[family]
    pick = draw.between(0, len(words.ask) - 1)
    decoys = {
        "other": cardinal(draw.between(21, 60)), "otherprice": dollars(draw.between(41, 60)),
        "othertime": clock(60 * draw.between(7, 11) + 5 * draw.between(2, 11)),
    }  # fmt: skip
    return Task(
        family, operation, evidence, fill(words.ask[pick], slots), fill(words.embedded[pick], slots),
        tuple(fill(line, decoys | slots) for line in draw.some(words.distract, len(words.distract))), frozenset(used),
    )  # fmt: skip


def _total(draw: Draw, domain: Domain) -> Task:
    stock = draw.one(domain.stock)
    parts = draw.between(2, 3)
    numbers = [draw.between(2, 14) for _ in range(parts)]
    slots = [
        {"n": cardinal(number), "things": stock.things, "place": place}
        for number, place in zip(numbers, draw.some(stock.places, parts), strict=True)
    ]
    lines = _lines(draw, "total", slots, [cardinal(n) for n in numbers], list(numbers), [""] * parts)
    return _task(draw, "total", "sum", lines, {"things": stock.things}, {stock.things})


def _left(draw: Draw, domain: Domain) -> Task:
    stock = draw.one(domain.stock)
    gone = draw.between(3, 9)
    numbers = [gone + draw.between(3, 14), gone]
    slots = [{"n": cardinal(number), "things": stock.things} for number in numbers]
    lines = _lines(draw, "left", slots, [cardinal(n) for n in numbers], list(numbers), ["", ""])
    return _task(draw, "left", "difference", lines, {"things": stock.things}, {stock.things})


def _cost(draw: Draw, domain: Domain) -> Task:
    goods = draw.one(domain.goods)
    price, count = draw.between(*goods.price), draw.between(2, 6)
    common = {"one": goods.one, "many": goods.many}
    slots = [common | {"price": dollars(price)}, common | {"n": cardinal(count)}]
    lines = _lines(draw, "cost", slots, [dollars(price), cardinal(count)], [price, count], ["", ""])
    return _task(draw, "cost", "product_dollars", lines, common, {goods.one, goods.many})


def _bill(draw: Draw, domain: Domain) -> Task:
    first, second = draw.some(domain.goods, 2)
    amounts = [draw.between(6, 40), draw.between(6, 40)]
    slots = [{"many": goods.many, "price": dollars(n)} for goods, n in zip((first, second), amounts, strict=True)]
    lines = _lines(draw, "bill", slots, [dollars(n) for n in amounts], list(amounts), ["", ""])
    asked = {"first": first.many, "second": second.many}
    return _task(draw, "bill", "sum_dollars", lines, asked, {first.one, first.many, second.one, second.many})


def _budget(draw: Draw, domain: Domain) -> Task:
    goods = draw.one(domain.goods)
    spent = draw.between(8, 38)
    amounts = [spent + draw.between(5, 40), spent]
    slots = [{"many": goods.many, "price": dollars(number)} for number in amounts]
    lines = _lines(draw, "budget", slots, [dollars(n) for n in amounts], list(amounts), ["", ""])
    return _task(draw, "budget", "difference_dollars", lines, {}, {goods.one, goods.many})


def _off_the_hour(draw: Draw) -> int:
    """A time of day between 8 and 11 whose minutes are said plainly ("ten fifteen")."""
    return 60 * draw.between(8, 11) + 5 * draw.between(2, 11)


def _ready(draw: Draw, domain: Domain) -> Task:
    event = draw.one(domain.events)
    start = _off_the_hour(draw)
    # The answer is a plain time as well, never "o'clock" or "oh five": recognisers write those in many ways.
    spans = [span for span in range(10, 55, 5) if (start + span) % 60 >= 10]
    span = draw.one(spans)
    said = {"start": fill(event.start, {"time": clock(start)}), "lasts": fill(event.lasts, {"minutes": duration(span)})}
    lines = _lines(draw, "ready", [said, said], [clock(start), duration(span)], [start, span], ["", ""])
    asked = {"ask": event.ask, "embedded": event.embedded}
    return _task(draw, "ready", "clock_after", lines, asked, {event.moment})


def _wait(draw: Draw, domain: Domain) -> Task:
    first, second = draw.some(domain.events, 2)
    start = _off_the_hour(draw)
    later = start + draw.one([span for span in range(10, 55, 5) if (start + span) % 60 >= 10])
    slots = [
        {"start": fill(first.start, {"time": clock(start)})},
        {"start": fill(second.start, {"time": clock(later)})},
    ]
    lines = _lines(draw, "wait", slots, [clock(start), clock(later)], [start, later], ["", ""])
    asked = {"first": first.moment, "second": second.moment}
    return _task(draw, "wait", "minutes_between", lines, asked, {first.moment, second.moment})


def _where(draw: Draw, domain: Domain) -> Task:
    thing = draw.one(domain.objects)
    places = draw.some(thing.places, 2)
    slots = [{"object": thing.name, "place": place} for place in places]
    lines = _lines(draw, "where", slots, places, [None, None], ["", ""])
    return _task(draw, "where", "latest", lines, {"object": thing.name}, {thing.name})


def _contest(draw: Draw, domain: Domain) -> Task:
    contest = draw.one(domain.contests)
    low, high = contest.range
    numbers = draw.some(range(low, high + 1, contest.step), 3)
    items = draw.some(contest.items, 3)
    slots = [
        {"says": fill(contest.says, {"item": item, "number": cardinal(number)})}
        for item, number in zip(items, numbers, strict=True)
    ]
    lines = _lines(draw, "contest", slots, [cardinal(n) for n in numbers], list(numbers), items)
    operation = "largest" if contest.largest else "smallest"
    return _task(draw, "contest", operation, lines, {"ask": contest.ask}, set(items))


def _who(draw: Draw, domain: Domain) -> Task:
    chores = draw.some(domain.chores, 2)
    lines = _lines(
        draw, "who", [{"chore": chore} for chore in chores], chores, [None, None], [SPEAKER_KEY, SPEAKER_KEY]
    )
    asked = draw.between(0, 1)
    lines = tuple(replace(line, counts=number == asked) for number, line in enumerate(lines))
    return _task(draw, "who", "latest", lines, {"chore": chores[asked]}, set(chores))


def _most(draw: Draw, domain: Domain) -> Task:
    stock = draw.one(domain.stock)
    numbers = draw.some(range(3, 16), 3)
    slots = [{"n": cardinal(number), "things": stock.things} for number in numbers]
    lines = _lines(draw, "most", slots, [cardinal(n) for n in numbers], list(numbers), [SPEAKER_KEY] * 3)
    return _task(draw, "most", "largest", lines, {"things": stock.things}, {stock.things})


FAMILIES: Final[Mapping[str, Callable[[Draw, Domain], Task]]] = {
    "total": _total, "where": _where, "cost": _cost, "who": _who, "ready": _ready, "contest": _contest,
    "left": _left, "most": _most, "bill": _bill, "wait": _wait, "budget": _budget,
}  # fmt: skip
"""In an order in which a draw of a few pairs already asks for different things."""
