"""Numbers and clock times as people say them, so that every voice reads the same words."""

from typing import Final

_SMALL: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS: Final = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")


def cardinal(number: int) -> str:
    """``number`` from 0 to 999 in English words: 42 is "forty-two", 107 is "one hundred and seven".

    Raises:
        ValueError: outside 0 to 999.
    """
    if not 0 <= number <= 999:
        raise ValueError(f"{number} is outside 0 to 999")
    if number < 20:
        return _SMALL[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")
    rest = number % 100
    return f"{_SMALL[number // 100]} hundred" + (f" and {cardinal(rest)}" if rest else "")


def clock(minutes: int) -> str:
    """A clock time on the twelve-hour dial: 615 is "ten fifteen", 605 "ten oh five", 600 "ten o'clock".

    Args:
        minutes: after midnight, 0 to 1439.

    Raises:
        ValueError: outside one day.
    """
    if not 0 <= minutes < 24 * 60:
        raise ValueError(f"{minutes} minutes after midnight is outside one day")
    hour = _SMALL[(minutes // 60 - 1) % 12 + 1]
    minute = minutes % 60
    if minute == 0:
        return f"{hour} o'clock"
    return f"{hour} oh {_SMALL[minute]}" if minute < 10 else f"{hour} {cardinal(minute)}"


def dollars(amount: int) -> str:
    """Whole dollars: "one dollar", "twelve dollars"."""
    return f"{cardinal(amount)} dollar{'' if amount == 1 else 's'}"


def duration(minutes: int) -> str:
    """Whole minutes: "twenty-five minutes"."""
    return f"{cardinal(minutes)} minute{'' if minutes == 1 else 's'}"
