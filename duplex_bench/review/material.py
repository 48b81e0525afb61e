"""What the review page shows, behind one small interface: the room does not know where tables and blobs lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from duplex_bench.conversation.flags import Flag
from duplex_bench.conversation.label_types import Label, Speaker, Word
from duplex_bench.review.accepted import PointScore


@dataclass(frozen=True, slots=True)
class SessionEntry:
    """One session of the list. ``duration_s`` is that of the recording."""

    session_id: str
    duration_s: float
    licence: str
    language: str
    n_flags: int
    n_windows: int


@dataclass(frozen=True, slots=True)
class SessionMaterial:
    """One session as a reviewer sees it: times in seconds of the recording; ``flags`` in order of time.

    ``flags_note`` says which flags could not be made, and why.
    """

    entry: SessionEntry
    labels: tuple[Label, ...]
    flags: tuple[Flag, ...]
    words: dict[Speaker, tuple[Word, ...]]
    flags_note: str = ""


@dataclass(frozen=True, slots=True)
class WindowEntry:
    """One selected window: what is scored, with the stretch around it that a person listens to.

    ``start_s`` is the boundary (pause start or turn end), ``end_s`` the end of the pause or of the person's reply;
    ``turn_start_s`` is where the active turn begins.
    """

    point_id: str
    session_id: str
    kind: str
    speaker: Speaker
    turn_start_s: float
    start_s: float
    end_s: float


class Material(Protocol):
    """Where sessions come from."""

    def sessions(self) -> Sequence[SessionEntry]:
        """Every session that can be reviewed, by id."""
        ...

    def session(self, session_id: str) -> SessionMaterial:
        """One session; raises KeyError if there is none."""
        ...

    def audio(self, session_id: str) -> tuple[npt.NDArray[np.int16], int]:
        """PCM16 samples (n, 2), left and right, and their rate; raises KeyError if there is none."""
        ...

    def windows(self) -> Sequence[WindowEntry]:
        """Every selected window."""
        ...

    def scores(self) -> Sequence[PointScore]:
        """What systems scored on selected windows; nothing where none was run yet."""
        ...
