"""Cards that differ from one another in their endpointer alone: how soon a silence ends the user's turn."""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from duplex_bench.systems.card import Plain, Sweep, SystemCard
from duplex_bench.systems.serving.conversation import EAGERNESS_CAP_S

SILENCES_MS: Final = (100, 200, 300, 500, 700, 1000, 1500, 2000)
# The embedded cascade waits as long as our server of the OpenAI protocol, and as the vendor says.
EAGERNESS: Final = ("low", "medium", "high")
SHORTEST_MS, LONGEST_MS = 20, 10_000


class SweepError(ValueError):
    """A card that has no endpointer to sweep, or a silence that makes no sense."""


def sweep_cards(base: SystemCard, silences_ms: Sequence[int] = SILENCES_MS) -> list[SystemCard]:
    """``base`` at each silence, and where it offers semantic detection at each eagerness.

    Args:
        base: A card of the embedded cascade, of a hosted adapter, or of a server in memory.
        silences_ms: Silences that end a turn.

    Raises:
        SweepError: No such setting, an environment of its own, or a silence outside 20 to 10,000 ms.
    """
    if base.environment.kind != "none":
        raise SweepError(f"{base.name} has an environment of its own: write its cards by hand, with a [sweep] each")
    wrong = [silence for silence in silences_ms if not SHORTEST_MS <= silence <= LONGEST_MS]
    if wrong or not silences_ms:
        raise SweepError(f"silences are {SHORTEST_MS} to {LONGEST_MS} ms, got {wrong or 'none'}")
    return [*_silences(base, sorted(set(silences_ms))), *_eagerness(base)]


def _silences(base: SystemCard, silences_ms: Sequence[int]) -> Iterator[SystemCard]:
    for silence in silences_ms:
        if _is_cascade(base):
            changed: dict[str, Plain] = {"endpointer": "silence", "silence_s": silence / 1000}
            dropped: tuple[str, ...] = ("check_after_s", "threshold", "cap_s")
        elif "silence_ms" in base.settings or "detector" in base.settings:
            changed, dropped = {"silence_ms": silence}, ("eagerness",)
            if "detector" in base.settings:
                changed["detector"] = "server_vad"
        else:
            raise SweepError(f"{base.name} has no endpointer to sweep: its settings name no silence")
        yield _changed(base, "silence", float(silence), f"{silence} ms", f"{silence:04d}ms", changed, dropped)


def _eagerness(base: SystemCard) -> Iterator[SystemCard]:
    cascade = _is_cascade(base)
    speaks_openai = "openai" in f"{base.adapter} {base.settings.get('protocol', '')}"
    if not cascade and not speaks_openai:
        return
    for place, name in enumerate(EAGERNESS):
        changed: dict[str, Plain] = {"detector": "semantic_vad", "eagerness": name}
        dropped: tuple[str, ...] = ("silence_ms",)
        if cascade:
            changed, dropped = {"endpointer": "semantic", "cap_s": EAGERNESS_CAP_S[name]}, ("silence_s",)
        yield _changed(base, "semantic", float(place), f"semantic, {name}", name, changed, dropped)


def _is_cascade(card: SystemCard) -> bool:
    return "endpointer" in card.settings


def _changed(
    base: SystemCard, kind: str, at: float, label: str, suffix: str, changed: dict[str, Plain], dropped: Sequence[str]
) -> SystemCard:
    settings = {name: value for name, value in base.settings.items() if name not in dropped} | changed
    family = base.name.removesuffix("-300ms").removesuffix("-500ms").removesuffix("-semantic")
    return base.model_copy(
        update={
            "name": f"{family}-sweep-{kind}-{suffix}",
            "title": f"{family}, {label}",
            "settings": settings,
            "on_request": True,
            "protocols": ("pause", "turn_end"),
            "tracks": ("conversation",),
            "stands_in_for": "",
            "notes": f"Made by `duplex-bench systems sweep {base.name}`: that card but for its endpointer.",
            "sweep": Sweep(name=f"{family}-{kind}", at=at, label=label),
        }
    )


def card_toml(card: SystemCard) -> str:
    """``card`` as the text of a card file: what is not the default, tables last."""
    data = card.model_dump(mode="json", exclude_defaults=True)
    lines = [f"{name} = {_value(value)}" for name, value in data.items() if not isinstance(value, dict)]
    for name, table in data.items():
        if isinstance(table, dict):
            lines += [
                "",
                f"[{name}]",
                *(f"{key} = {_value(value)}" for key, value in table.items() if value is not None),
            ]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    # JSON strings, numbers, booleans and arrays of them are TOML as well.
    return json.dumps(value, ensure_ascii=False)
