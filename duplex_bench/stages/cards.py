"""Cards of the systems that can be run here."""

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
    for error in errors:
        if Path(error.file).stem == name:
            raise ValueError(f"system {name}: {error.file}: {error.message}. {error.remedy}")
    raise ValueError(f"no system {name!r}: choose {', '.join(cards)}")


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
