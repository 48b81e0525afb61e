"""Numbers as text, one way everywhere in the report."""

from duplex_bench.records.metric_card import MetricCard

MISSING = "\N{EM DASH}"
MINUS = "\N{MINUS SIGN}"


def number(value: float | None, unit: str = "", *, signed: bool = False) -> str:
    """``value`` with the digits that fit its unit; a missing value is a dash, never 0."""
    if value is None or value != value:
        return MISSING
    digits = 1 if abs(value) >= 10 else 2
    if unit.startswith(("share", "rate")) and 0 < abs(value) < 0.1:
        digits = 3
    text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if float(text) == 0 and value != 0:
        digits = 4
        text = f"{value:+.{digits}f}" if signed else f"{value:.{digits}f}"
    if float(text) == 0:
        # Zero has no sign, and what is zero to four digits is no other number.
        text = "0.00"
    return text.replace("-", MINUS)


def p_value(value: float | None) -> str:
    """A p-value with two significant digits; below 0.0001 as a bound."""
    if value is None or value != value:
        return MISSING
    return "< 0.0001" if value < 0.0001 else f"{value:.2g}"


def interval(low: float | None, high: float | None, unit: str = "", *, signed: bool = False) -> str:
    """A confidence interval in brackets, or a dash when either bound is missing."""
    if low is None or high is None or low != low or high != high:
        return MISSING
    return f"[{number(low, unit, signed=signed)}, {number(high, unit, signed=signed)}]"


def unit_suffix(unit: str) -> str:
    """The unit as it follows a number: nothing for shares and ratios, else a no-break space and the unit."""
    return f"\N{NO-BREAK SPACE}{unit}" if unit in {"s", "ms", "words"} else ""


def direction_text(card: MetricCard) -> str:
    """In words, which values of a metric are better."""
    if card.direction == "target":
        return f"best near {number(card.target)}" if card.target is not None else "best near its target"
    return {"higher": "higher is better", "lower": "lower is better", "none": "no better or worse"}[card.direction]


def tie_letter(group: int | None) -> str:
    """Tie group 1, 2, ... as a, b, ...; nothing when there is none."""
    if group is None or group < 1:
        return ""
    letters = ""
    rest = group
    while rest:
        rest, last = divmod(rest - 1, 26)
        letters = chr(ord("a") + last) + letters
    return letters


def clock(seconds: float) -> str:
    """A second of a recording as minutes and seconds, with hours where there are any."""
    tenths = round(seconds * 10)
    hours, rest = divmod(tenths, 36_000)
    minutes, rest = divmod(rest, 600)
    lead = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{lead}:{rest // 10:02d}.{rest % 10}"
