"""Which labels a person should look at first: the heuristics of P2 3.2 that need no projection model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex_bench.conversation.label_types import Label, Speaker, Word


@dataclass(frozen=True, slots=True)
class FlagRules:
    """When a turn is flagged.

    Attributes:
        gap_fill_share: at least this share of a turn's words came from gap fill (P2: half).
        lexical_turn_s: a turn with words shorter than this (P2: 400 ms).
    """

    gap_fill_share: float = 0.5
    lexical_turn_s: float = 0.4


@dataclass(frozen=True, slots=True)
class Flag:
    """One doubtful label: which, by which rule, and why in words."""

    speaker: Speaker
    kind: str
    start_s: float
    end_s: float
    flag: str
    reason: str


def flags_of(
    labels: Sequence[Label], words: Mapping[Speaker, Sequence[Word]], rules: FlagRules | None = None
) -> list[Flag]:
    """Flags of one session's labels, in order of time; a turn may carry several."""
    chosen = rules or FlagRules()
    found: list[Flag] = []
    for label in sorted(labels, key=lambda one: (one.start_s, one.speaker)):
        if label.kind != "turn":
            continue
        spoken = words[label.speaker]
        inside = [word for word in spoken if label.start_s <= (word.start_s + word.end_s) / 2 <= label.end_s]
        if not inside:
            continue
        filled = sum(word.gap_filled for word in inside)
        if filled / len(inside) >= chosen.gap_fill_share:
            found.append(_flag(label, "gap_fill_turn", f"{filled} of {len(inside)} words come from gap fill"))
        if label.end_s - label.start_s < chosen.lexical_turn_s:
            length_ms = round(1000 * (label.end_s - label.start_s))
            found.append(_flag(label, "short_lexical_turn", f"a turn with words lasts {length_ms} ms"))
    return found


def _flag(label: Label, name: str, reason: str) -> Flag:
    return Flag(label.speaker, label.kind, label.start_s, label.end_s, name, reason)
