"""Blobs that a store has confirmed and nobody has looked up yet: a note beside the local copies for each.

A note is a small file, since processes of a pool write blobs and another process writes the ledger that names them:
it sees the notes of all. A note that outlives a killed run is looked after by the next run on this machine.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote


@dataclass(frozen=True, slots=True)
class Written:
    """What the store said it took: bytes, and the entity tag it gave them."""

    size: int
    tag: str


class UnseenWrites:
    """Notes below ``folder``: object key -> what was written."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, key: str, written: Written) -> None:
        """Note a write. A reader sees the note whole or not at all: it is a link's target."""
        note = self._folder / quote(key, safe="")
        note.unlink(missing_ok=True)
        note.symlink_to(f"{written.size}:{quote(written.tag)}")

    def all(self) -> dict[str, Written]:
        """Every note, by key."""
        found: dict[str, Written] = {}
        for note in self._folder.iterdir():
            try:
                size, tag = str(note.readlink()).split(":", 1)
            except FileNotFoundError:
                # Another process has looked it up meanwhile.
                continue
            found[unquote(note.name)] = Written(int(size), unquote(tag))
        return found

    def remove(self, keys: Iterable[str]) -> None:
        """Forget what has been seen in the store."""
        for key in keys:
            (self._folder / quote(key, safe="")).unlink(missing_ok=True)
