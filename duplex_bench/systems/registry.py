"""Finds cards: those shipped, those in the user's folder, those of installed plug-ins. A bad card never raises."""

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from duplex_bench.contract.types import SYSTEM_ERRORS
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.card_faults import card_faults

ENTRY_POINT_GROUP: Final = "duplex_bench.systems"
USER_FOLDER: Final = Path("data/systems")


@dataclass(frozen=True, slots=True)
class CardError:
    """A card that was skipped: where it is, what is wrong, what to do."""

    file: str
    message: str
    remedy: str

    @property
    def told(self) -> str:
        """All three as one line."""
        return f"{self.file}: {self.message}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Found:
    """A valid card and the file it came from; ``folder`` is what its relative paths are seen from."""

    card: SystemCard
    file: str
    folder: Path


@dataclass(frozen=True, slots=True)
class Registry:
    """``cards`` by name, in order of name; ``errors`` for every card that was skipped."""

    cards: dict[str, Found]
    errors: tuple[CardError, ...]


def load_cards(user_folder: Path | None = USER_FOLDER, *, plug_ins: bool = True) -> Registry:
    """Every card that can be used, and why the others cannot.

    The first of two cards of one name is kept, in the order shipped, user's folder, plug-ins; the second becomes an
    error that names both files. Plug-ins are entry points of the group ``duplex_bench.systems`` that name a
    function returning paths of card files.

    Args:
        user_folder: Folder of ``*.toml``; a missing folder holds no cards. None to look nowhere.
        plug_ins: Whether to ask installed packages.
    """
    errors: list[CardError] = []
    cards: dict[str, Found] = {}
    for path in _card_files(user_folder, plug_ins, errors):
        found = _read(path, errors)
        if found is None:
            continue
        other = cards.get(found.card.name)
        if other is not None:
            errors.append(
                CardError(
                    str(path), f"name {found.card.name!r} is taken by {other.file}", "give this card another name"
                )
            )
            continue
        cards[found.card.name] = found
    return Registry(dict(sorted(cards.items())), tuple(errors))


def _card_files(user_folder: Path | None, plug_ins: bool, errors: list[CardError]) -> Iterator[Path]:
    shipped = Path(str(files("duplex_bench.systems").joinpath("cards")))
    yield from sorted(shipped.glob("*.toml"))
    if user_folder is not None and user_folder.is_dir():
        yield from sorted(user_folder.glob("*.toml"))
    if plug_ins:
        yield from _plug_in_files(errors)


def _plug_in_files(errors: list[CardError]) -> Iterator[Path]:
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda point: point.name):
        try:
            paths: Iterable[str | Path] = entry.load()()
            yield from [Path(path) for path in paths]
        except SYSTEM_ERRORS as error:
            errors.append(
                CardError(
                    f"entry point {entry.name} = {entry.value}",
                    f"{type(error).__name__}: {error}",
                    "repair or uninstall that package; the function must return paths of card files",
                )
            )


def _read(path: Path, errors: list[CardError]) -> Found | None:
    try:
        # Editors of Windows write a mark before the first letter, which TOML knows nothing of.
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        errors.append(CardError(str(path), f"cannot be read: {error}", "make it a readable UTF-8 file"))
        return None
    except tomllib.TOMLDecodeError as error:
        errors.append(CardError(str(path), f"is not TOML: {error}", "correct the line that the message names"))
        return None
    try:
        return Found(SystemCard.model_validate(data), str(path), path.parent.absolute())
    except ValidationError as error:
        errors += [CardError(str(path), message, remedy) for message, remedy in card_faults(error, data)]
    return None
