"""What a profile may choose about the tables of the multiparty track."""

from dataclasses import dataclass
from math import isfinite


@dataclass(frozen=True, slots=True)
class MultipartyAnalysis:
    """Numbers of the analyses beside the headline (P1 A3.5, A3.6, A5.1, A7.1).

    Raises:
        ValueError: a number is out of range.
    """

    equivalence_margin: float = 0.05
    """Largest difference of rates between explicit and implicit requests that would not matter (ours)."""
    minimum_speech_s: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 1.0)
    """Detected speech shorter than this in a window counts as none: the sensitivity of P1 A3.5, values ours."""
    paper_family: int = 20
    """Comparisons that the paper's Bonferroni correction counts in each condition: 10 pairs by 2 metrics (P1 A7.1)."""
    examples_per_rule: int = 1
    """Qualitative examples of each rule, system and condition (P1 A6; number ours)."""
    level: float = 0.95
    n_resamples: int = 2000

    def __post_init__(self) -> None:
        if not (isfinite(self.equivalence_margin) and self.equivalence_margin > 0):
            raise ValueError(f"equivalence_margin is {self.equivalence_margin}: give a share above 0")
        if not self.minimum_speech_s or any(not isfinite(s) or s < 0 for s in self.minimum_speech_s):
            raise ValueError(f"minimum_speech_s is {self.minimum_speech_s}: give one or more of 0 s and up")
        if list(self.minimum_speech_s) != sorted(set(self.minimum_speech_s)):
            raise ValueError(f"minimum_speech_s is {self.minimum_speech_s}: give them in rising order, each once")
        if self.paper_family < 1 or self.examples_per_rule < 1:
            raise ValueError("paper_family and examples_per_rule: give 1 or more")
        if not 0 < self.level < 1 or self.n_resamples < 1:
            raise ValueError("level lies between 0 and 1, n_resamples is 1 or more")
