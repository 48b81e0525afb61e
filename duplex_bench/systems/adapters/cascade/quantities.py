"""Numbers, amounts and clock times in what a recogniser wrote."""

import re
from dataclasses import dataclass

from duplex_bench.text.normalise import normalised_words

_HOURS = 12
_DAY_MINUTES = 12 * 60


@dataclass(frozen=True, slots=True)
class Quantities:
    """What one sentence says: whole numbers by kind, in order."""

    dollars: tuple[int, ...]
    minutes: tuple[int, ...]
    clocks: tuple[int, ...]
    counts: tuple[int, ...]


def quantities(sentence: str) -> Quantities:
    """Amounts of money, durations in minutes, clock times (minutes after twelve) and other numbers of ``sentence``."""
    # Recognisers write ten fifteen as "10.15" or "1015" as well.
    words = normalised_words(re.sub(r"\b(\d{1,2})\.([0-5]\d)\b(?! dollars)", r"\1:\2", sentence))
    dollars: list[int] = []
    minutes: list[int] = []
    clocks: list[int] = []
    counts: list[int] = []
    place = 0
    while place < len(words):
        word, following = words[place], words[place + 1] if place + 1 < len(words) else ""
        place += 1
        if not word.isdecimal():
            continue
        value = int(word)
        if following in ("dollar", "dollars", "bucks"):
            dollars.append(value)
        elif following in ("minute", "minutes"):
            minutes.append(value)
        elif 1 <= value <= _HOURS and re.fullmatch(r"[0-5]\d", following):
            clocks.append(_clock(value, int(following)))
            place += 1
        elif len(word) in (3, 4) and 1 <= value // 100 <= _HOURS and value % 100 < 60:
            clocks.append(_clock(value // 100, value % 100))
        else:
            counts.append(value)
    return Quantities(tuple(dollars), tuple(minutes), tuple(clocks), tuple(counts))


def clock_words(minutes: int) -> str:
    """A clock time as digits that the voice reads well: 615 is "10:15"."""
    hour, minute = divmod(minutes % _DAY_MINUTES, 60)
    return f"{hour or _HOURS}:{minute:02d}"


def _clock(hour: int, minute: int) -> int:
    return hour % _HOURS * 60 + minute
