"""Licence and language of single recordings: a table ``recordings.csv`` beside them."""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE: Final = "recordings.csv"
# The normaliser, the content words and every recogniser here are English.
LANGUAGES: Final = frozenset({"en"})


class RightsError(ValueError):
    """The table cannot be read; the message names file, row and remedy."""


@dataclass(frozen=True, slots=True)
class Rights:
    """Under which licence a recording may be used (empty: nobody says), and in which language it is."""

    licence: str = ""
    language: str = "en"


def read_rights(folder: Path) -> dict[str, Rights]:
    """Rights by file name, from ``recordings.csv`` with columns file, licence and, if not all is English, language.

    No table, no rows. A row without licence is kept as such: its recording has none, whatever holds for the others.

    Raises:
        RightsError: no such columns, a file named twice, or no text.
    """
    path = folder / FILE
    if not path.is_file():
        return {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as stream:
            rows = list(csv.DictReader(stream))
            columns = set(rows[0]) if rows else {"file", "licence"}
    except UnicodeDecodeError as error:
        raise RightsError(f"{path}: is not UTF-8 text; save it as UTF-8") from error
    if missing := {"file", "licence"} - columns:
        raise RightsError(f"{path}: has no column {', '.join(sorted(missing))}; give file and licence")
    found: dict[str, Rights] = {}
    for number, row in enumerate(rows, start=2):
        name = (row["file"] or "").strip()
        if not name:
            raise RightsError(f"{path}, row {number}: names no file; give the recording's file name")
        if name in found:
            raise RightsError(f"{path}, row {number}: {name} stands there already; leave one row")
        found[name] = Rights((row["licence"] or "").strip(), (row.get("language") or "en").strip().lower())
    return found
