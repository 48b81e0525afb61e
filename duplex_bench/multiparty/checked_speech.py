"""What a recogniser and a voice detector make of the built speech, as tables (P1 3.5; issue 3, item 5)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

import numpy as np
import polars as pl

from duplex_bench.multiparty.construction import BoundaryError
from duplex_bench.text.error_rate import WordErrors


@dataclass(frozen=True, slots=True)
class ConstructionSettings:
    """How construction is checked; all numbers are ours.

    Raises:
        ValueError: a number is out of range.
    """

    clips_checked: int | None = None
    """Clips heard by the recogniser, drawn by hash; all where None."""
    scenes_checked: int | None = None
    """Scenes heard by the voice detector, drawn by hash; all where None."""
    boundary_tolerance_s: float = 0.2
    """How far a detected edge may lie from the gold one; silero's own bias is +22 ms and +60 ms."""
    boundary_share: float = 0.98
    """Share of edges that must lie within the tolerance; P1's reviewers passed 98 to 100 % of construction checks."""
    most_word_errors: float = 0.15
    """Highest word error rate of a voice."""

    def __post_init__(self) -> None:
        for name in ("clips_checked", "scenes_checked"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}: give 1 or more, or leave it out for all")
        if not (isfinite(self.boundary_tolerance_s) and self.boundary_tolerance_s > 0):
            raise ValueError(f"boundary_tolerance_s is {self.boundary_tolerance_s}: give more than 0 seconds")
        if not 0 <= self.boundary_share <= 1 or self.most_word_errors < 0:
            raise ValueError("boundary_share is a share from 0 to 1, most_word_errors 0 or more")


@dataclass(frozen=True, slots=True)
class HeardClip:
    """One clip as heard: the voice, what it should say, what was recognised, and the word errors."""

    voice: str
    text: str
    heard: str
    errors: WordErrors


def by_voice(clips: Iterable[HeardClip]) -> pl.DataFrame:
    """Word errors of each voice and of all: columns voice, n_clips, n_words, substitutions, deletions, insertions,
    word_error_rate (errors over reference words), clips_exact (share without an error).
    """
    found: dict[str, list[HeardClip]] = {}
    for clip in clips:
        found.setdefault(clip.voice, []).append(clip)
    every = [clip for mine in found.values() for clip in mine]
    rows = []
    for voice, mine in [*sorted(found.items()), ("all", every)]:
        total = sum((clip.errors for clip in mine), WordErrors())
        rows.append(
            (voice, len(mine), total.n_reference, total.substitutions, total.deletions, total.insertions,
             total.rate if total.n_reference else None,
             sum(clip.errors.errors == 0 for clip in mine) / len(mine) if mine else None)
        )  # fmt: skip
    schema = {"voice": pl.String, "n_clips": pl.Int64, "n_words": pl.Int64, "substitutions": pl.Int64,
              "deletions": pl.Int64, "insertions": pl.Int64, "word_error_rate": pl.Float64,
              "clips_exact": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")


def misheard(clips: Iterable[HeardClip], limit: int = 20) -> pl.DataFrame:
    """The clips with most word errors, worst first: columns voice, text, heard, errors."""
    wrong = sorted((clip for clip in clips if clip.errors.errors), key=lambda c: (-c.errors.errors, c.voice, c.text))
    rows = [(clip.voice, clip.text, clip.heard, clip.errors.errors) for clip in wrong[:limit]]
    schema = {"voice": pl.String, "text": pl.String, "heard": pl.String, "errors": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def boundary_summary(errors: Sequence[BoundaryError], tolerance_s: float) -> pl.DataFrame:
    """Detector minus construction at onsets and offsets: columns edge, n_edges, not_heard, median_s, low_s, high_s
    (5th and 95th percentile), within_tolerance (share of all edges; one that was not heard is outside).
    """
    edges: Mapping[str, list[float | None]] = {
        "onset": [error.onset_s for error in errors],
        "offset": [error.offset_s for error in errors],
    }
    rows = []
    for edge, values in edges.items():
        known = np.array([value for value in values if value is not None], dtype=np.float64)
        low, middle, high = (float(q) for q in np.quantile(known, (0.05, 0.5, 0.95))) if len(known) else (None,) * 3
        inside = int((np.abs(known) <= tolerance_s).sum())
        rows.append((edge, len(values), len(values) - len(known), middle, low, high,
                     inside / len(values) if values else None))  # fmt: skip
    schema = {"edge": pl.String, "n_edges": pl.Int64, "not_heard": pl.Int64, "median_s": pl.Float64,
              "low_s": pl.Float64, "high_s": pl.Float64, "within_tolerance": pl.Float64}  # fmt: skip
    return pl.DataFrame(rows, schema=schema, orient="row")
