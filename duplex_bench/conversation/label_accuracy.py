"""Precision and recall of labels against true ones, at a tolerance on both boundaries."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from duplex_bench.conversation.label_types import LabelKind, Speaker


class Event(Protocol):
    """Anything with a speaker, a kind and two boundaries: a ``Label``, or a ``PlantedEvent`` of the generator."""

    @property
    def speaker(self) -> Speaker:
        """Who."""
        ...

    @property
    def kind(self) -> LabelKind:
        """What."""
        ...

    @property
    def start_s(self) -> float:
        """From when."""
        ...

    @property
    def end_s(self) -> float:
        """Until when."""
        ...


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How many were found, how many of them are true, how many there are; add two with ``+``.

    ``precision`` and ``recall`` are None where nothing was found, or there was nothing to find.
    """

    matched: int
    found: int
    true: int

    @property
    def precision(self) -> float | None:
        """Share of what was found that is true."""
        return self.matched / self.found if self.found else None

    @property
    def recall(self) -> float | None:
        """Share of what is true that was found."""
        return self.matched / self.true if self.true else None

    def __add__(self, more: "Accuracy") -> "Accuracy":
        return Accuracy(self.matched + more.matched, self.found + more.found, self.true + more.true)


def matches(found: Sequence[Event], true: Sequence[Event], tolerance_s: float) -> list[tuple[int, int]]:
    """Index pairs (found, true) of a largest one-to-one matching.

    Two events can match if speaker and kind are equal and both boundaries lie within ``tolerance_s`` (inclusive, to a
    nanosecond).
    """
    pairs: list[tuple[int, int]] = []
    for group in sorted({(event.speaker, event.kind) for event in found}):
        ours = [i for i, event in enumerate(found) if (event.speaker, event.kind) == group]
        theirs = [j for j, event in enumerate(true) if (event.speaker, event.kind) == group]
        if not theirs:
            continue
        near = np.abs(_edges(found, ours)[:, None, :] - _edges(true, theirs)[None, :, :]).max(axis=2)
        partner = maximum_bipartite_matching(csr_array(near <= tolerance_s + 1e-9), perm_type="column")
        pairs.extend((ours[i], theirs[int(j)]) for i, j in enumerate(partner) if j >= 0)
    return sorted(pairs)


def accuracy_by_kind(found: Sequence[Event], true: Sequence[Event], tolerance_s: float) -> dict[LabelKind, Accuracy]:
    """Accuracy of each kind that was found or is true.

    Raises:
        ValueError: a negative tolerance.
    """
    if tolerance_s < 0:
        raise ValueError(f"tolerance_s is {tolerance_s}: give at least 0")
    matched = _counts(true[j] for _, j in matches(found, true, tolerance_s))
    ours, theirs = _counts(found), _counts(true)
    return {
        kind: Accuracy(matched.get(kind, 0), ours.get(kind, 0), theirs.get(kind, 0))
        for kind in sorted({*ours, *theirs})
    }


def _edges(events: Sequence[Event], chosen: list[int]) -> npt.NDArray[np.float64]:
    return np.array([(events[i].start_s, events[i].end_s) for i in chosen])


def _counts(events: Iterable[Event]) -> dict[LabelKind, int]:
    counts: dict[LabelKind, int] = {}
    for event in events:
        counts[event.kind] = counts.get(event.kind, 0) + 1
    return counts
