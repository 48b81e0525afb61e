"""Number words in a list of lower-case words, folded to digits."""

from typing import Final

_BELOW_TWENTY: Final = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_ORDINALS_BELOW_TWENTY: Final = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh",
    "twelfth", "thirteenth", "fourteenth", "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth",
)  # fmt: skip
_TENS_WORDS: Final = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")

_UNITS: Final = {word: value for value, word in enumerate(_BELOW_TWENTY)}
_UNIT_ORDINALS: Final = {word: value for value, word in enumerate(_ORDINALS_BELOW_TWENTY, 1)}
_TENS: Final = {word: 10 * value for value, word in enumerate(_TENS_WORDS, 2)}
_TENS_ORDINALS: Final = {f"{word[:-1]}ieth": value for word, value in _TENS.items()}
_SCALES: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_SCALE_ORDINALS: Final = {"hundredth": 100, "thousandth": 1000, "millionth": 10**6}
_PENCE_OR_CENTS: Final = {"cent", "cents", "penny", "pence"}
_CURRENCY: Final = {"dollar", "dollars", "pound", "pounds", "euro", "euros"}


def fold_numbers(words: list[str]) -> list[str]:
    """``words`` with every number, ordinal, year said in pairs and spoken decimal as digits; the rest unchanged.

    "and" is dropped inside a number ("a hundred and two") and between whole and part of an amount of money.
    """
    folded: list[str] = []
    place = 0
    while place < len(words):
        number, used = _number_at(words, place)
        if used:
            folded.append(number)
            place += used
        elif words[place] == "and" and _joins_money(words, place, folded):
            place += 1
        else:
            folded.append(words[place])
            place += 1
    return folded


def ordinal(value: int) -> str:
    """``value`` as digits with its English ending: 1st, 12th, 23rd."""
    ending = "th" if value % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(value % 10, "th")
    return f"{value}{ending}"


def _number_at(words: list[str], place: int) -> tuple[str, int]:
    """The number that begins at ``place`` and how many words it takes; ("", 0) if none begins there."""
    for attempt in (_year, _cardinal_or_ordinal):
        number, used = attempt(words, place)
        if used:
            return number, used
    return "", 0


def _below_hundred(words: list[str], place: int) -> tuple[int, int, bool]:
    """Value, words used and whether it is an ordinal, of a number word below 100 at ``place``."""
    word = words[place] if place < len(words) else ""
    following = words[place + 1] if place + 1 < len(words) else ""
    if word in _TENS:
        if 1 <= _UNITS.get(following, 0) <= 9:
            return _TENS[word] + _UNITS[following], 2, False
        if 1 <= _UNIT_ORDINALS.get(following, 0) <= 9:
            return _TENS[word] + _UNIT_ORDINALS[following], 2, True
        return _TENS[word], 1, False
    if word in _UNITS:
        return _UNITS[word], 1, False
    if word in _UNIT_ORDINALS:
        return _UNIT_ORDINALS[word], 1, True
    if word in _TENS_ORDINALS:
        return _TENS_ORDINALS[word], 1, True
    return 0, 0, False


def _year(words: list[str], place: int) -> tuple[str, int]:
    """A year said in pairs: 13 to 20, then 10 to 99 or "oh" and a digit."""
    century, used, is_ordinal = _below_hundred(words, place)
    if used != 1 or is_ordinal or not 13 <= century <= 20:
        return "", 0
    after = place + 1
    if after + 1 < len(words) and words[after] in ("oh", "o") and 1 <= _UNITS.get(words[after + 1], 0) <= 9:
        return f"{century}0{_UNITS[words[after + 1]]}", 3
    rest, more, is_ordinal = _below_hundred(words, after)
    beyond = words[after + more] if after + more < len(words) else ""
    if more and not is_ordinal and rest >= 10 and beyond != "hundred" and beyond not in _SCALES:
        return f"{century}{rest}", 1 + more
    return "", 0


def _cardinal_or_ordinal(words: list[str], place: int) -> tuple[str, int]:
    total, current, cursor = 0, 0, place
    if words[place] == "a" and _is_scale(words, place + 1):
        current, cursor = 1, place + 1
    elif words[place].replace(".", "", 1).isdecimal():
        if not _is_scale(words, place + 1):
            return words[place], 1
        return _scaled_digits(words, place)
    else:
        value, used, is_ordinal = _below_hundred(words, place)
        if not used:
            return "", 0
        current, cursor = value, place + used
        if is_ordinal:
            return ordinal(value), used
    smallest_scale = 10**15
    while cursor < len(words):
        word = words[cursor]
        if word == "hundred" and 0 < current < 100:
            current *= 100
            cursor += 1
        elif word in _SCALES and current > 0 and _SCALES[word] < smallest_scale:
            smallest_scale = _SCALES[word]
            total, current = total + current * smallest_scale, 0
            cursor += 1
        elif word in _SCALE_ORDINALS and current > 0:
            return ordinal(total + current * _SCALE_ORDINALS[word]), cursor + 1 - place
        elif current == 0 or current % 100 == 0:
            start = cursor + 1 if word == "and" else cursor
            value, used, is_ordinal = _below_hundred(words, start)
            if not used or value == 0 or (current == 0 and total == 0):
                break
            if is_ordinal:
                return ordinal(total + current + value), start + used - place
            current += value
            cursor = start + used
        else:
            break
    digits, cursor = _decimals(words, cursor)
    number = f"{total + current}{digits}"
    if digits and _is_scale(words, cursor):
        scaled, used = _scaled_digits([number, words[cursor]], 0)
        return scaled, cursor - place + used - 1
    return number, cursor - place


def _is_scale(words: list[str], place: int) -> bool:
    return place < len(words) and (words[place] == "hundred" or words[place] in _SCALES)


def _scaled_digits(words: list[str], place: int) -> tuple[str, int]:
    """``2.5 million`` or ``5 hundred`` as digits, without binary rounding."""
    whole, _, part = words[place].partition(".")
    zeros = len(str({"hundred": 100, **_SCALES}[words[place + 1]])) - 1
    if len(part) > zeros:
        return words[place], 1
    return str(int(whole + part.ljust(zeros, "0"))), 2


def _decimals(words: list[str], place: int) -> tuple[str, int]:
    """Spoken decimals ("point two five") at ``place`` as digits, and the place after them."""
    if place + 1 >= len(words) or words[place] != "point":
        return "", place
    digits, cursor = "", place + 1
    while cursor < len(words) and (words[cursor] in ("oh", "o") or _UNITS.get(words[cursor], 10) < 10):
        digits += str(_UNITS.get(words[cursor], 0))
        cursor += 1
    return (f".{digits}", cursor) if digits else ("", place)


def _joins_money(words: list[str], place: int, folded: list[str]) -> bool:
    if not folded or folded[-1] not in _CURRENCY or place + 1 >= len(words):
        return False
    _, used = _number_at(words, place + 1)
    after = place + 1 + used
    return used > 0 and after < len(words) and words[after] in _PENCE_OR_CENTS
