"""Approved labels as the files that the pipeline reads: one JSON a session, written whole or not at all."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from duplex_bench.conversation.label_types import LabelKind, Speaker
from duplex_bench.review.store import LabelCopy
from duplex_bench.storage.object_store import FolderStore
from duplex_bench.storage.serial import to_json


@dataclass(frozen=True, slots=True)
class PublishedLabel:
    """One label; seconds of the recording."""

    speaker: Speaker
    kind: LabelKind
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True)
class PublishedReview:
    """What a review file says (read by ``stages.reviews``)."""

    session_id: str
    status: str
    approved_by: str
    labels: tuple[PublishedLabel, ...]


class ReviewFolder:
    """The folder of approved reviews."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._store = FolderStore(folder)

    def file_name(self, session_id: str) -> str:
        """``<session_id>.json``, with characters that no file name should have escaped."""
        return f"{quote(session_id, safe=' ()+,=@')}.json"

    def write(self, copy: LabelCopy, approved_by: str) -> None:
        """Put a copy in force: the next run uses its labels in place of the engine's."""
        labels = tuple(PublishedLabel(one.speaker, one.kind, one.start_s, one.end_s) for one in copy.state.regions)
        review = PublishedReview(copy.session_id, "approved", approved_by, labels)
        self._store.put(self.file_name(copy.session_id), to_json(review).encode())

    def withdraw(self, session_id: str) -> None:
        """Put the engine's labels back in force."""
        self._store.delete(self.file_name(session_id))
