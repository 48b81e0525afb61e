"""English text as comparable words (version 2): case, punctuation, and numbers, however they were written.

What is folded, on both sides of a comparison alike:

- case, accents, typographic quotes, punctuation; contractions stay one word (``don't``, ``o'clock`` is dropped)
- cardinals and decimals become digits: ``twenty-five``, ``a hundred and two``, ``2.5 million``, ``1,000``
- ordinals become digits with their ending: ``twenty-first``, ``21st``
- years said in pairs: ``nineteen eighty-four``, ``twenty twenty-six``, ``nineteen oh five`` are one number
- clock times become hour and minutes: ``5:30``, ``at 5.30`` (as recognisers write it), ``five thirty`` and
  ``half past five`` are ``5 30``; ``5:00`` and ``five o'clock`` are ``5``; ``quarter to six`` and ``fifteen minutes to
  six`` are ``5 45``; ``p.m.`` is ``pm``
- money and percent: ``$5.50`` is ``5 dollars 50 cents``, ``50%`` is ``50 percent``

What is not: digits read one by one (``one two three`` is not ``123``), fractions other than in clock times,
``ten to six`` without "minutes" (it may be a range), 24-hour against 12-hour times, units (``kg``), spelling
variants. ``second`` is always taken as ``2nd``, ``one`` as ``1``: on both sides alike, so that equal stays equal.
"""

import re
import unicodedata
from typing import Final

from duplex_bench.text.clock import fold_spoken_times
from duplex_bench.text.numbers import fold_numbers

NORMALISER_VERSION: Final = 2

_QUOTES: Final = str.maketrans({"\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u2032": "'", "`": "'"})
_CURRENCIES: Final = {"$": ("dollar", "cent"), "£": ("pound", "penny"), "€": ("euro", "cent")}
_PLURALS: Final = {"penny": "pence"}

_DIGIT_GROUPS: Final = re.compile(r"(?<![\d.])(\d{1,3})((?:,\d{3})+)(?![\d,]*\d)")
_MONEY_SCALED: Final = re.compile(r"([$£€])\s?(\d+(?:\.\d+)?\s+(?:hundred|thousand|million|billion|trillion))\b")
_MONEY: Final = re.compile(r"([$£€])\s?(\d+)(?:\.(\d\d))?(?!\.?\d)")
_HALF_DAY: Final = re.compile(r"\b([ap])\.\s?m\b\.?|(?<=\d )([ap]) m\b")
_CLOCK: Final = re.compile(r"(?<![\d:])([01]?\d|2[0-3]):([0-5]\d)(?![\d:])")
_DOTTED_CLOCK: Final = re.compile(
    r"\b(at|by|until|till|before|around)(\s+)([01]?\d|2[0-3])\.([0-5]\d)(?!\.?\d|\s*(?:%|per))"
)
_MINUS: Final = re.compile(r"(?:(?<=\s)|^)[-\u2212](?=\d)")
_UNIT_GLUED: Final = re.compile(r"(?<=\d)(?=(?:am|pm)\b)")
_TOKEN: Final = re.compile(r"\d+\.\d+|\d+(?:st|nd|rd|th)\b|\d+|[^\W\d_]+(?:'[^\W\d_]+)*")


def normalise(text: str) -> str:
    """The words of ``text`` in comparable form, one space between them; see the module for what is folded."""
    return " ".join(normalised_words(text))


def normalised_words(text: str) -> list[str]:
    """The words of ``text`` in comparable form; empty for text without words or numbers."""
    plain = unicodedata.normalize("NFKD", text.translate(_QUOTES)).casefold()
    plain = "".join(character for character in plain if not unicodedata.combining(character))
    plain = _DIGIT_GROUPS.sub(lambda match: match.group(0).replace(",", ""), plain)
    plain = _MONEY_SCALED.sub(lambda match: f" {match.group(2)} {_CURRENCIES[match.group(1)][0]}s ", plain)
    plain = _MONEY.sub(_spoken_money, plain)
    plain = _HALF_DAY.sub(lambda match: f" {match.group(1) or match.group(2)}m ", plain)
    plain = _UNIT_GLUED.sub(" ", plain)
    plain = _DOTTED_CLOCK.sub(r"\1\2\3:\4", plain)
    plain = _CLOCK.sub(_spoken_clock, plain)
    plain = _MINUS.sub(" minus ", plain).replace("%", " percent ")
    plain = re.sub(r"\bper cent\b", "percent", plain)
    tokens = [token for token in _TOKEN.findall(plain) if token != "o'clock"]
    return fold_spoken_times(fold_numbers(tokens))


def _spoken_money(match: re.Match[str]) -> str:
    whole, part = _CURRENCIES[match.group(1)]
    amount, cents = match.group(2), match.group(3)
    words = f" {amount} {_counted(amount, whole)} "
    return words if cents in (None, "00") else f"{words}{int(cents)} {_counted(cents, part)} "


def _counted(amount: str, noun: str) -> str:
    return noun if int(amount) == 1 else _PLURALS.get(noun, f"{noun}s")


def _spoken_clock(match: re.Match[str]) -> str:
    hour, minutes = int(match.group(1)), match.group(2)
    return f" {hour} " if minutes == "00" else f" {hour} {minutes} "
