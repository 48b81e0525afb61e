"""The window check and the listener task: what people said about single windows, each answer a row of a log."""

from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import insert, select

from duplex_bench.review.errors import ReviewInputError
from duplex_bench.review.store import ReviewStore, now
from duplex_bench.review.tables import LISTENER_ANSWERS, WINDOW_CHECKS

# Later than this after the boundary nobody waits in the listener task (as the look-ahead of the label engine).
LISTEN_AFTER_S = 5.0


@dataclass(frozen=True, slots=True)
class WindowCheck:
    """One person's verdict on one selected window. A rejection says why."""

    point_id: str
    session_id: str
    person: str
    accepted: bool
    reason: str
    at: str = ""

    def __post_init__(self) -> None:
        if not self.accepted and not self.reason.strip():
            raise ReviewInputError(f"window {self.point_id}: a rejection needs a reason; choose or write one")


@dataclass(frozen=True, slots=True)
class ListenerAnswer:
    """What one person would have done at a boundary, having heard everything up to it and nothing after.

    ``after_boundary_s`` is when they would have begun to speak, below 0 if before the boundary; None if not at all.
    """

    point_id: str
    session_id: str
    person: str
    would_speak: bool
    after_boundary_s: float | None
    words: str
    at: str = ""

    def __post_init__(self) -> None:
        if self.would_speak and self.after_boundary_s is None:
            raise ReviewInputError(f"window {self.point_id}: press the key at the moment you would speak")
        if not self.would_speak and self.after_boundary_s is not None:
            raise ReviewInputError(f"window {self.point_id}: who stays silent has no moment of speaking; leave it out")
        if self.after_boundary_s is not None and self.after_boundary_s > LISTEN_AFTER_S:
            raise ReviewInputError(f"window {self.point_id}: answers end {LISTEN_AFTER_S:g} s after the boundary")


class JudgementLog:
    """Both logs, in the review's database. A second answer of a person to the same window stands beside the first;
    the last one counts.
    """

    def __init__(self, store: ReviewStore) -> None:
        self._store = store

    def add_check(self, check: WindowCheck) -> None:
        """Note a verdict."""
        with self._store.transaction() as connection:
            connection.execute(insert(WINDOW_CHECKS).values(**{**asdict(check), "at": now()}))

    def add_answer(self, answer: ListenerAnswer) -> None:
        """Note an answer."""
        with self._store.transaction() as connection:
            connection.execute(insert(LISTENER_ANSWERS).values(**{**asdict(answer), "at": now()}))

    def checks(self) -> list[WindowCheck]:
        """The last verdict of every person on every window, by window and person."""
        return [WindowCheck(**row) for row in self._latest(WINDOW_CHECKS, "check_id")]

    def answers(self) -> list[ListenerAnswer]:
        """The last answer of every person to every window, by window and person."""
        return [ListenerAnswer(**row) for row in self._latest(LISTENER_ANSWERS, "answer_id")]

    def _latest(self, table: Any, number: str) -> list[dict[str, Any]]:
        with self._store.transaction() as connection:
            rows = connection.execute(select(table).order_by(table.c[number])).mappings().all()
        found = {(row["point_id"], row["person"]): {k: v for k, v in row.items() if k != number} for row in rows}
        return [found[key] for key in sorted(found)]
