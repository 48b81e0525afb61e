"""Approved label reviews: one JSON file per session, put in force in place of the engine's labels."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from duplex_bench.conversation.label_types import Label, LabelKind, Speaker
from duplex_bench.storage.digests import digest_file, digest_value
from duplex_bench.storage.serial import from_json

REVIEWED_RULE = "review"


class ReviewError(ValueError):
    """A review file cannot be used; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True)
class ReviewedLabel:
    """One label as a person set it; seconds of the recording."""

    speaker: Speaker
    kind: LabelKind
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class Review:
    """One session's review. Only ``approved`` reviews are in force."""

    session_id: str
    status: Literal["draft", "submitted", "approved"]
    approved_by: str
    labels: tuple[ReviewedLabel, ...]


def read_review(path: Path) -> Review:
    """One review file.

    Raises:
        ReviewError: not a review, or a label that ends before it starts.
    """
    try:
        review = from_json(Review, path.read_bytes())
    except ValueError as error:
        raise ReviewError(f"{path}: not a review: {error}; export it again from the review page") from error
    for number, label in enumerate(review.labels):
        if not label.end_s > label.start_s >= 0:
            raise ReviewError(f"{path}: label {number} runs from {label.start_s} to {label.end_s} s: correct its times")
    return review


def approved(folder: Path) -> dict[str, list[Label]]:
    """Labels of every approved review, by session."""
    found: dict[str, list[Label]] = {}
    for path in sorted(folder.glob("*.json")):
        review = read_review(path)
        if review.status == "approved":
            found[review.session_id] = [
                Label(label.speaker, label.kind, label.start_s, label.end_s, REVIEWED_RULE, 1.0)
                for label in review.labels
            ]
    return found


def digest(folder: Path) -> tuple[str, dict[str, int | float | str]]:
    """What the reviews say, and how many there are."""
    files = {path.name: digest_file(path) for path in sorted(folder.glob("*.json"))}
    return digest_value("reviews", files), {"reviews": len(files), "approved": len(approved(folder))}
