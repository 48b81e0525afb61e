import pytest
from hypothesis import given
from hypothesis import strategies as st

from duplex_bench.text.normalise import normalise, normalised_words
from duplex_bench.text.numbers import ordinal
from duplex_bench.text.words import content_words, stop_words

pytestmark = pytest.mark.unit

UNITS = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
TENS = ("_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
VOCABULARY = [*UNITS[:4], "twenty", "hundred", "and", "thousand", "first", "past", "to", "half", "oh", "a", "point",
              "5", "2.5", "quarter", "minutes", "dollars", "cents", "dogs"]  # fmt: skip


def spoken(value: int) -> str:
    """English cardinal, written independently of the folding: recursion from the largest part down."""
    for size, name in ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred")):
        if value >= size:
            rest = value % size
            joint = "and " if rest < 100 else ""
            return f"{spoken(value // size)} {name}" + (f" {joint}{spoken(rest)}" if rest else "")
    if value < 20:
        return UNITS[value]
    return TENS[value // 10] + (f"-{UNITS[value % 10]}" if value % 10 else "")


@given(st.one_of(st.integers(0, 3000), st.integers(0, 10**12 - 1)))
def test_any_cardinal_in_words_equals_its_digits(value: int) -> None:
    assert (
        normalise(f"about {spoken(value)} people") == f"about {value} people" == normalise(f"About {value:,} people!")
    )


@given(st.integers(1300, 2099))
def test_years_in_pairs(year: int) -> None:
    century, rest = divmod(year, 100)
    if rest == 0:
        words = f"{spoken(century)} hundred"
    else:
        words = f"{spoken(century)} {'oh ' if rest < 10 else ''}{spoken(rest)}"
    assert normalise(f"in {words}") == f"in {year}"


@given(st.integers(1, 12), st.integers(0, 59))
def test_clock_times_in_words_equal_digits(hour: int, minute: int) -> None:
    words = {0: f"{spoken(hour)} o'clock", 15: f"quarter past {spoken(hour)}", 30: f"half past {spoken(hour)}"}.get(
        minute, f"{spoken(hour)} {'oh ' if minute < 10 else ''}{spoken(minute)}"
    )
    assert normalise(f"{words} p.m.") == normalise(f"{hour}:{minute:02d}pm")


@given(st.integers(1, 29), st.integers(1, 12))
def test_minutes_to_the_hour(minute: int, hour: int) -> None:
    noun = "minute" if minute == 1 else "minutes"
    expected = normalise(f"{(hour - 1) or 12}:{60 - minute}")
    assert normalise(f"{spoken(minute)} {noun} to {spoken(hour)}") == expected


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("twenty-first", "21st"), ("the three hundred and sixty-fifth day", "the 365th day"), ("twelfth", "12th"),
        ("a hundred and two", "102"), ("A million", "1,000,000"),
        ("two point five million", "2.5 million"), ("three point one four", "3.14"),
        ("$2.5 million", "2500000 dollars"),
        ("$5.50", "five dollars and fifty cents"), ("$1", "one dollar"), ("£1.01", "one pound and one penny"),
        ("50%", "fifty per cent"), ("-5 degrees", "minus five degrees"), ("Don\u2019t", "don't"), ("Café", "cafe"),
        ("5 p m", "5:00 p.m."), ("a quarter to six", "5:45"), ("fifteen hundred", "1,500"), ("(yes)", "Yes."),
        ("at ten forty-five", "at 10.45."), ("by 9.05", "by 9:05"), ("around 2.5", "around two point five"),
    ],
)  # fmt: skip
def test_two_ways_of_writing_are_equal(left: str, right: str) -> None:
    assert normalise(left) == normalise(right)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("from ten to six", "from 10 to 6"), ("one two three", "1 2 3"), ("nine to five", "9 to 5"),
        ("half an hour", "half an hour"), ("1990-1995", "1990 1995"), ("fifty and five dogs", "50 and 5 dogs"),
        ("5 dollars and a dog", "5 dollars and a dog"), ("It's John's", "it's john's"), ("am", "am"), ("...", ""),
        ("hundred", "hundred"), ("5.5.5", "5.5 5"), ("", ""),
    ],
)  # fmt: skip
def test_what_is_not_folded(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text(max_size=60))
def test_any_text_gives_bare_words(text: str) -> None:
    for word in normalised_words(text):
        assert word
        assert not word.isspace()
        assert word == word.strip("'\".,;:!? ")


@given(st.lists(st.sampled_from(VOCABULARY), max_size=20))
def test_every_other_word_survives_in_order(words: list[str]) -> None:
    assert normalised_words(" ".join(words)).count("dogs") == words.count("dogs")


def test_ordinal_endings() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 111, 122)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "111th", "122nd"]  # fmt: skip


def test_content_words() -> None:
    assert content_words("It's on the second of May, at 5:30!") == ["2nd", "may", "5", "30"]
    assert content_words("It is the one that you were with.") == ["1"]
    assert content_words("No, never.") == ["no", "never"]
    assert content_words("It is that.") == []


def test_the_stop_list_is_in_normalised_form() -> None:
    assert len(stop_words()) > 100
    assert all(normalised_words(word) == [word] for word in stop_words())
