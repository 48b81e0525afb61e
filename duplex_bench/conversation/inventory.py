"""What the labels of a conversation add up to: counts, lengths and floor transfers (P2 Table 5 and Figure 6)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from duplex_bench.conversation.label_types import Label, LabelKind

KINDS: tuple[LabelKind, ...] = ("turn", "pause", "backchannel", "overlap", "failed_take")


@dataclass(frozen=True, slots=True)
class Inventory:
    """Labels of one conversation in numbers.

    ``counts`` and ``per_minute`` are by kind; ``lengths_s`` are float64 (k,) by kind in the order of the labels;
    ``floor_transfers_s`` float64 (m,).
    """

    counts: dict[LabelKind, int]
    per_minute: dict[LabelKind, float]
    lengths_s: dict[LabelKind, npt.NDArray[np.float64]]
    floor_transfers_s: npt.NDArray[np.float64]


def take_inventory(labels: Sequence[Label], duration_s: float) -> Inventory:
    """Counts, rates and distributions of ``labels`` over a conversation of ``duration_s`` seconds.

    Raises:
        ValueError: a duration of 0 or less.
    """
    if not duration_s > 0:
        raise ValueError(f"a conversation of {duration_s} s has no rates: give its length")
    lengths = {
        kind: np.array([label.end_s - label.start_s for label in labels if label.kind == kind]) for kind in KINDS
    }
    counts = {kind: len(values) for kind, values in lengths.items()}
    rates = {kind: count / (duration_s / 60) for kind, count in counts.items()}
    return Inventory(counts, rates, lengths, floor_transfers(labels))


def floor_transfers(labels: Sequence[Label]) -> npt.NDArray[np.float64]:
    """Floor-transfer offsets in seconds, float64 (m,): next speaker's start minus previous speaker's end.

    One for each change of speaker between turns in order of their starts; negative where the next turn begins before
    the one before has ended. Turns run across their own pauses, as in P2 appendix B. Backchannels and failed takes take
    no floor.
    """
    turns = sorted((label for label in labels if label.kind == "turn"), key=lambda label: (label.start_s, label.end_s))
    return np.array(
        [after.start_s - before.end_s for before, after in pairwise(turns) if before.speaker != after.speaker]
    )
