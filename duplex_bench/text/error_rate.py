"""Word error rate with its parts."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan

from duplex_bench.text.normalise import normalised_words


@dataclass(frozen=True, slots=True)
class WordErrors:
    """Counts of a least-edit alignment; they add up over texts, rates do not."""

    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0
    n_reference: int = 0

    @property
    def errors(self) -> int:
        """Substitutions, deletions and insertions together."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float:
        """Errors over reference words; may exceed 1; NaN without reference words."""
        return self.errors / self.n_reference if self.n_reference else nan

    def __add__(self, other: "WordErrors") -> "WordErrors":
        return WordErrors(
            self.substitutions + other.substitutions,
            self.deletions + other.deletions,
            self.insertions + other.insertions,
            self.n_reference + other.n_reference,
        )


def word_errors(reference: str, hypothesis: str) -> WordErrors:
    """Errors of ``hypothesis`` against ``reference``, both normalised first."""
    return align(normalised_words(reference), normalised_words(hypothesis))


def align(reference: Sequence[str], hypothesis: Sequence[str]) -> WordErrors:
    """Least-edit counts (Levenshtein 1966) of two word sequences; of equal costs the one with most substitutions."""
    # A cell is (cost, -substitutions, deletions, insertions): the tuple order breaks ties.
    row = [(j, 0, 0, j) for j in range(len(hypothesis) + 1)]
    for i, wanted in enumerate(reference, 1):
        above, row = row, [(i, 0, i, 0)]
        for j, found in enumerate(hypothesis, 1):
            cost, substituted, deleted, inserted = above[j - 1]
            best = above[j - 1] if wanted == found else (cost + 1, substituted - 1, deleted, inserted)
            cost, substituted, deleted, inserted = above[j]
            best = min(best, (cost + 1, substituted, deleted + 1, inserted))
            cost, substituted, deleted, inserted = row[j - 1]
            row.append(min(best, (cost + 1, substituted, deleted, inserted + 1)))
    _, substituted, deleted, inserted = row[-1]
    return WordErrors(-substituted, deleted, inserted, len(reference))
