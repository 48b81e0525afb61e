"""Which labels a person should look at first: the heuristics of P2 3.2, and what an activity projection doubts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from duplex_bench.conversation.label_types import Label, Speaker, Word
from duplex_bench.speech.projection.settings import FloorProjection


@dataclass(frozen=True, slots=True)
class FlagRules:
    """When a label is flagged. Which share of the floor the thresholds are on is ours: the paper does not say.

    Attributes:
        gap_fill_share: at least this share of a turn's words came from gap fill (P2: half).
        lexical_turn_s: a turn with words shorter than this (P2: 400 ms).
        keeps_floor: a turn that has ended, where the projection gives its speaker at least this share of the next
            0.6 s (P2: 0.65), read over ``after_turn_end_s`` behind its end (as that model's shift and hold events).
        hands_over: a backchannel where the projection gives its speaker at least this share of the time from 0.6 to
            2 s ahead (P2: 0.60), read over its first ``backchannel_onset_s`` (as its long and short events).
    """

    gap_fill_share: float = 0.5
    lexical_turn_s: float = 0.4
    keeps_floor: float = 0.65
    hands_over: float = 0.6
    after_turn_end_s: tuple[float, float] = (0.05, 0.25)
    backchannel_onset_s: float = 0.2

    def __post_init__(self) -> None:
        shares = (self.gap_fill_share, self.keeps_floor, self.hands_over)
        if not all(0 < share <= 1 for share in shares):
            raise ValueError(f"flag thresholds {shares}: give shares above 0 and up to 1")
        first, last = self.after_turn_end_s
        if not 0 <= first < last or self.backchannel_onset_s <= 0:
            raise ValueError(
                f"flags read the projection over {self.after_turn_end_s} s after a turn and {self.backchannel_onset_s} "
                "s of a backchannel: give a stretch from 0 on, and a length above 0"
            )


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
    labels: Sequence[Label],
    words: Mapping[Speaker, Sequence[Word]],
    rules: FlagRules | None = None,
    floor: FloorProjection | None = None,
) -> list[Flag]:
    """Flags of one session's labels, in order of time; a turn may carry several. No projection, no flags of it."""
    chosen = rules or FlagRules()
    found: list[Flag] = []
    for label in sorted(labels, key=lambda one: (one.start_s, one.speaker)):
        if floor is not None and (doubt := _doubted(label, chosen, floor)) is not None:
            found.append(doubt)
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


def _doubted(label: Label, rules: FlagRules, floor: FloorProjection) -> Flag | None:
    if label.kind == "turn":
        first, last = rules.after_turn_end_s
        share = _share(label.speaker, floor.mean(floor.now, label.end_s + first, label.end_s + last))
        if share is not None and share >= rules.keeps_floor:
            return _flag(
                label, "projection_keeps_floor", f"the projection gives its speaker {share:.2f} of what follows"
            )
    if label.kind == "backchannel":
        share = _share(
            label.speaker, floor.mean(floor.future, label.start_s, label.start_s + rules.backchannel_onset_s)
        )
        if share is not None and share >= rules.hands_over:
            return _flag(
                label, "projection_hands_over", f"the projection gives its speaker {share:.2f} of what follows"
            )
    return None


def _share(speaker: Speaker, lefts: float | None) -> float | None:
    return lefts if lefts is None or speaker == "left" else 1.0 - lefts


def _flag(label: Label, name: str, reason: str) -> Flag:
    return Flag(label.speaker, label.kind, label.start_s, label.end_s, name, reason)
