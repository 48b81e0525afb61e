"""Readers of what people keep beside two-channel recordings: RTTM, TextGrid (short and long form) and JSON words.

Each gives tracks by speaker name, in the order of the file, times as the file has them; checking against the audio is
the loader's part (``two_channel``).
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from duplex_bench.conversation.timed_rows import spread_words


class AnnotationError(ValueError):
    """An annotation file that cannot be read; the message names file, row and remedy."""

    def __init__(self, path: Path, problem: str, remedy: str) -> None:
        super().__init__(f"{path}: {problem}; {remedy}")


@dataclass(slots=True)
class AnnotatedTrack:
    """One speaker of an annotation file: raw (start, end) and (text, start, end, score) rows.

    ``words_spread`` says that the file had only utterances, over which the words were spread by their lengths.
    """

    speech: list[tuple[Any, Any]] = field(default_factory=list)
    words: list[tuple[str, Any, Any, Any]] = field(default_factory=list)
    words_spread: bool = False


Tracks = dict[str, AnnotatedTrack]


def read_annotation(path: Path) -> Tracks:
    """Tracks by speaker name, read by the file's suffix (.rttm, .TextGrid, .json).

    Raises:
        AnnotationError: missing, another suffix, or not what the suffix says.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise AnnotationError(path, f"has the suffix {path.suffix!r}", f"give one of {', '.join(_READERS)}")
    if not path.is_file():
        raise AnnotationError(path, "no such file", "check the name")
    return reader(path)


def read_rttm(path: Path) -> Tracks:
    """Speech of each speaker from SPEAKER rows (onset and duration in seconds); other rows are skipped."""
    tracks: Tracks = {}
    for number, line in enumerate(_text(path).splitlines(), start=1):
        cells = line.split()
        if not cells or cells[0] != "SPEAKER":
            continue
        try:
            start, length, name = float(cells[3]), float(cells[4]), cells[7]
        except (IndexError, ValueError):
            raise AnnotationError(
                path, f"row {number} is {line!r}", "give SPEAKER file channel onset duration <NA> <NA> name"
            ) from None
        tracks.setdefault(name, AnnotatedTrack()).speech.append((start, start + length))
    return tracks


def read_textgrid(path: Path) -> Tracks:
    """Tracks from interval tiers.

    Tiers whose name has "word" hold words: ``words`` is the only speaker's, ``anna - words`` is anna's. Without such
    tiers each tier is one speaker's utterances (speech), with its words spread over it. Tiers of phones are skipped.
    """
    from praatio import textgrid
    from praatio.utilities.errors import PraatioException

    try:
        grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=False, reportingMode="silence")
    except (PraatioException, LookupError, ValueError) as error:
        raise AnnotationError(path, f"is no TextGrid ({error})", "save it from Praat again, short or long") from error
    tiers = {
        str(name): [(str(entry.label).strip(), float(entry.start), float(entry.end)) for entry in tier.entries]
        for name, tier in zip(grid.tierNames, grid.tiers, strict=True)
        if isinstance(tier, textgrid.IntervalTier) and "phone" not in name.lower()
    }
    word_tiers = {name: rows for name, rows in tiers.items() if "word" in name.lower()}
    tracks: Tracks = {}
    for name, rows in (word_tiers or tiers).items():
        spoken = [row for row in rows if row[0]]
        if word_tiers:
            speaker = name.lower().replace("words", "").replace("word", "").strip(" -_")
            tracks[speaker] = AnnotatedTrack(words=[(text, start, end, None) for text, start, end in spoken])
        else:
            spread = [word for text, start, end in spoken for word in spread_words(text, start, end)]
            tracks[name] = AnnotatedTrack(
                [(start, end) for _, start, end in spoken],
                [(word.text, word.start_s, word.end_s, word.score) for word in spread],
                words_spread=True,
            )
    return tracks


def read_json_words(path: Path) -> Tracks:
    """Tracks from JSON: an object by speaker, or a list of rows with ``speaker`` (or ``channel``).

    By speaker: ``{"left": {"speech": [[0.5, 2.0]], "words": [{"word": "hello", "start": 0.5, "end": 0.9}]}}``; as rows:
    ``[{"speaker": "left", "word": "hello", "start": 0.5, "end": 0.9}]``. ``text`` stands for ``word``
    too, and times may be null.
    """
    try:
        data = json.loads(_text(path))
    except ValueError as error:
        raise AnnotationError(path, f"is no JSON ({error})", "see the documented forms") from error
    tracks: Tracks = {}
    if isinstance(data, list):
        for number, row in enumerate(data):
            name = _row(path, number, row).get("speaker", row.get("channel"))
            if name is None:
                raise AnnotationError(path, f"row {number} names no speaker", "add speaker or channel")
            tracks.setdefault(str(name), AnnotatedTrack()).words.append(_word(path, number, row))
        return tracks
    if not isinstance(data, dict):
        raise AnnotationError(path, "is neither an object nor a list", "see the documented forms")
    for name, track in data.items():
        parts = _row(path, 0, track)
        speech = parts.get("speech", [])
        if not all(isinstance(pair, list) and len(pair) == 2 for pair in speech):
            raise AnnotationError(path, f"speech of {name!r} holds something else than [start, end]", "correct it")
        words = [_word(path, number, row) for number, row in enumerate(parts.get("words", []))]
        tracks[str(name)] = AnnotatedTrack([(start, end) for start, end in speech], words)
    return tracks


def _row(path: Path, number: int, row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise AnnotationError(path, f"row {number} is {row!r}", "give an object")
    return row


def _word(path: Path, number: int, row: Any) -> tuple[str, Any, Any, Any]:
    cells = _row(path, number, row)
    text = cells.get("word", cells.get("text"))
    if not isinstance(text, str):
        raise AnnotationError(path, f"row {number} has no word", "add word or text")
    start, end = cells.get("start", cells.get("start_s")), cells.get("end", cells.get("end_s"))
    return text, start, end, cells.get("score")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise AnnotationError(path, "is not UTF-8 text", "save it as UTF-8") from error


_READERS: Final[Mapping[str, Callable[[Path], Tracks]]] = {
    ".rttm": read_rttm,
    ".textgrid": read_textgrid,
    ".json": read_json_words,
}
SUFFIXES: Final = tuple(_READERS)
