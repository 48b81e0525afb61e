"""Cards of the systems that can be run here."""

import difflib
from collections.abc import Collection
from pathlib import Path

import polars as pl

from duplex_bench.stages.result import StageResult
from duplex_bench.systems.card import SystemCard, resolved
from duplex_bench.systems.registry import CardError, load_cards


def readable_cards(user_folder: Path) -> tuple[dict[str, SystemCard], tuple[CardError, ...]]:
    """Cards by name, and what could not be read: a bad card never stops the others."""
    registry = load_cards(user_folder)
    cards: dict[str, SystemCard] = {}
    errors = list(registry.errors)
    for name, found in registry.cards.items():
        try:
            cards[name] = resolved(found.card, found.folder)
        except OSError as error:
            told = f"its environment.lock cannot be read: {error}"
            errors.append(CardError(found.file, told, "name a lock file by its path as seen from the card"))
    return cards, tuple(errors)


def card_named(user_folder: Path, name: str) -> SystemCard:
    """The card called ``name``.

    Raises:
        ValueError: There is none; the message lists those that there are, or says why it was skipped.
    """
    cards, errors = readable_cards(user_folder)
    if name in cards:
        return cards[name]
    faults = [error.told for error in errors if Path(error.file).stem == name]
    if faults:
        raise ValueError(f"system {name}: {'; '.join(faults)}")
    raise ValueError(unknown_system(name, cards, user_folder))


def unknown_system(name: str, known: Collection[str], user_folder: Path) -> str:
    """What to say of a name that no card has: names that are like it, or all."""
    close = difflib.get_close_matches(name, known, n=3)
    like = f"did you mean {' or '.join(close)}?" if close else f"there are {', '.join(known)}"
    return f"no system {name!r}: {like} (own cards are read from {user_folder})"


def card_of(table: pl.DataFrame) -> SystemCard:
    """The card that ``card_table`` stored."""
    return SystemCard.model_validate_json(table["card"].item())


def card_table(card: SystemCard) -> StageResult:
    """One row: what is run, and the digest of the settings that rollouts depend on."""
    row = {
        "system": card.name,
        "title": card.title,
        "family": card.family,
        "execution_digest": card.execution_digest(),
        "stands_in_for": card.stands_in_for,
        "licence": card.licence,
        "card": card.model_dump_json(),
    }
    frame = pl.DataFrame([row])
    return StageResult(frame, {"family": card.family}, preview=frame.drop("card"))
