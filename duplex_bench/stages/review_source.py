"""Sessions, labels, flags and windows of a run as the review page's material, and the review composed over them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import polars as pl

from duplex_bench.conversation.flags import Flag
from duplex_bench.conversation.label_types import Label
from duplex_bench.conversation.points import Point
from duplex_bench.conversation.sessions import Session
from duplex_bench.review.accepted import PointScore
from duplex_bench.review.access import ReviewSettings
from duplex_bench.review.desk import ReviewDesk
from duplex_bench.review.material import SessionEntry, SessionMaterial, WindowEntry
from duplex_bench.review.publish import ReviewFolder
from duplex_bench.review.store import ReviewStore
from duplex_bench.stages.conversation import TRACK, session_words
from duplex_bench.stages.human_windows import database_url, stored_scores
from duplex_bench.stages.projection import NOT_LOOKED_AT
from duplex_bench.stages.session_audio import StoredAudio
from duplex_bench.stages.workspace import Workspace
from duplex_bench.storage.frames import read_frame
from duplex_bench.storage.serial import from_json

# What the page needs of a run; the last may be missing, as before the first draw.
TABLES = ("lively_sessions", "gap_fill", "engine_labels", "review_flags", "points")


@dataclass(frozen=True)
class _Tables:
    """One state of a run's tables, read once."""

    sessions: dict[str, SessionMaterial]
    audio: dict[str, StoredAudio]
    windows: tuple[WindowEntry, ...]


class RunMaterial:
    """The review's material from the stored tables of a run; a new run is seen without a restart."""

    def __init__(self, workspace: Workspace) -> None:
        """Read the tables.

        Raises:
            ValueError: the run has not come so far; the message says what to run.
        """
        self._workspace = workspace
        self._state: tuple[str, ...] = ()
        self._tables = self._read()

    def _stamps(self) -> tuple[str, ...]:
        store = self._workspace.store
        keys = [self._workspace.table_key((TRACK, name), None) for name in TABLES]
        return tuple(store.stamp(key) for key in keys)

    def _read(self) -> _Tables:
        stamps = self._stamps()
        if stamps != self._state:
            if not all(stamps[:-1]):
                raise ValueError(
                    f"profile {self._workspace.profile.name} has no labelled sessions here: "
                    f"run `duplex-bench run --profile {self._workspace.profile.name} --track conversation` first"
                )
            self._tables, self._state = _load(self._workspace), stamps
        return self._tables

    def sessions(self) -> Sequence[SessionEntry]:
        """Every kept session."""
        return [material.entry for _, material in sorted(self._read().sessions.items())]

    def session(self, session_id: str) -> SessionMaterial:
        """One kept session."""
        return self._read().sessions[session_id]

    def audio(self, session_id: str) -> tuple[npt.NDArray[np.int16], int]:
        """Its stored recording."""
        return self._workspace.blobs.read_audio(self._read().audio[session_id].source)

    def windows(self) -> Sequence[WindowEntry]:
        """The drawn points."""
        return self._read().windows

    def scores(self) -> Sequence[PointScore]:
        """Scores of every measured system on drawn points."""
        known = {window.point_id for window in self.windows()}
        return [score for score in stored_scores(self._workspace) if score.point_id in known]


def _load(workspace: Workspace) -> _Tables:
    def table(name: str) -> pl.DataFrame:
        return read_frame(workspace.store, workspace.table_key((TRACK, name), None))

    kept = table("lively_sessions").filter("selected").sort("session_id")
    filled, labels, flags = table("gap_fill"), table("engine_labels"), table("review_flags")
    key = workspace.table_key((TRACK, "points"), None)
    points = [from_json(Point, text) for text in table("points")["point"]] if workspace.store.exists(key) else []
    known = set(kept["session_id"])
    windows = tuple(window_of(point) for point in points if point.session_id in known)
    sessions: dict[str, SessionMaterial] = {}
    for row in kept.iter_rows(named=True):
        session = from_json(Session, row["session"])
        mine = pl.col("session_id") == session.session_id
        words = session_words(session, filled)
        found_flags = tuple(Flag(**one) for one in flags.filter(mine).drop("session_id").iter_rows(named=True))
        entry = SessionEntry(
            session.session_id, session.duration_s, session.licence, session.language, len(found_flags), 0
        )
        entry = replace(entry, n_windows=sum(window.session_id == session.session_id for window in windows))
        sessions[session.session_id] = SessionMaterial(
            entry,
            tuple(Label(**one) for one in labels.filter(mine).drop("session_id", "source").iter_rows(named=True)),
            found_flags,
            {speaker: tuple(found) for speaker, found in words.items()},
            "" if workspace.profile.speech.projection.weights else NOT_LOOKED_AT,
        )
    audio = {row["session_id"]: from_json(StoredAudio, row["audio"]) for row in kept.iter_rows(named=True)}
    return _Tables(sessions, audio, windows)


def window_of(point: Point) -> WindowEntry:
    """A drawn point as a window of the review."""
    end_s = point.pause_end_s
    if end_s is None:
        end_s = point.reply.end_s if point.reply is not None else point.boundary_s
    return WindowEntry(
        point.point_id, point.session_id, point.kind, point.speaker, point.turn_start_s, point.boundary_s,
        max(end_s, point.boundary_s),
    )  # fmt: skip


def open_review(workspace: Workspace, settings: ReviewSettings, database: str | None = None) -> ReviewDesk:
    """The review of a run: its database is ``data/review.sqlite`` unless a URL is given; approved labels go to
    ``data/reviews``.

    Raises:
        ValueError: nothing to review yet, or a database that cannot be opened.
    """
    material = RunMaterial(workspace)
    workspace.reviews_folder.mkdir(parents=True, exist_ok=True)
    store = ReviewStore(database_url(workspace, database))
    return ReviewDesk(material, store, ReviewFolder(workspace.reviews_folder), settings)
