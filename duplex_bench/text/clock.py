"""Clock times said in words, folded to hour and minutes."""

from typing import Final

_PARTS: Final = {"half": 30, "quarter": 15}


def fold_spoken_times(words: list[str]) -> list[str]:
    """``words`` (numbers already digits) with "half past 5", "a quarter to 6", "5 oh 5" as hour and minutes.

    "N to H" needs "quarter" or "minutes", since "10 to 6" may be a range.
    """
    folded: list[str] = []
    place = 0
    while place < len(words):
        hour, minute, used = _time_at(words, place)
        if used:
            folded += [str(hour), f"{minute:02d}"]
            place += used
        else:
            folded.append(words[place])
            place += 1
    return folded


def _time_at(words: list[str], place: int) -> tuple[int, int, int]:
    """Hour, minute and number of words of a time that begins at ``place``; zeros if none does."""
    start = place + 1 if words[place] == "a" and words[place + 1 : place + 2] == ["quarter"] else place
    ahead = words[start : start + 4]
    if len(ahead) >= 3 and ahead[1] in ("oh", "o") and _whole(ahead[0], 1, 12) and _whole(ahead[2], 1, 9):
        return int(ahead[0]), int(ahead[2]), 3
    minutes = _PARTS.get(ahead[0]) or _whole(ahead[0], 1, 59)
    says_minutes = ahead[1:2] in (["minutes"], ["minute"])
    rest = ahead[2:] if says_minutes else ahead[1:]
    hour = _whole(rest[1], 1, 12) if len(rest) >= 2 else 0
    if not minutes or not hour:
        return 0, 0, 0
    used = start - place + len(ahead) - len(rest) + 2
    certain = says_minutes or ahead[0] == "quarter"
    if rest[0] == "past" or (rest[0] == "after" and certain):
        return hour, minutes, used
    if rest[0] in ("to", "before") and certain:
        return (hour - 1) or 12, 60 - minutes, used
    return 0, 0, 0


def _whole(word: str, low: int, high: int) -> int:
    """``word`` as a whole number from ``low`` to ``high``; 0 if it is not one."""
    return int(word) if word.isdecimal() and low <= int(word) <= high else 0
