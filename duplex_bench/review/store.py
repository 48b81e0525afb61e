"""Copies of sessions, their history and decisions, in SQLite or Postgres.

Two people who edit one copy never lose work: an edit names the version that it was made on, and is stored only if the
copy still has it. An edit whose answer got lost on the way can be sent again: its id is known, it is stored once.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import TypeAdapter
from sqlalchemy import Connection, Engine, RowMapping, create_engine, event, insert, make_url, select, update
from sqlalchemy.exc import ArgumentError, DBAPIError, IntegrityError, NoSuchModuleError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from duplex_bench.review.edits import CopyState, Operation, apply
from duplex_bench.review.errors import ConflictError, DatabaseLostError, NotAllowedError, UnknownError
from duplex_bench.review.regions import Region
from duplex_bench.review.tables import COPIES, DECISIONS, EDITS, METADATA
from duplex_bench.storage.digests import canonical_json

Status = Literal["draft", "submitted", "returned", "approved", "superseded"]
OPEN: frozenset[Status] = frozenset({"draft", "returned"})
# The owner's name of the one copy that all edit together.
TOGETHER = "together"

_STATE: TypeAdapter[CopyState] = TypeAdapter(CopyState)


@dataclass(frozen=True, slots=True)
class LabelCopy:
    """One person's (or the joint) labels of one session. ``version`` counts its edits."""

    copy_id: int
    session_id: str
    owner: str
    status: Status
    version: int
    began_with: Literal["engine", "nothing"]
    created_at: str
    changed_at: str
    state: CopyState

    def plain(self) -> dict[str, object]:
        """As JSON data."""
        names = ("copy_id", "session_id", "owner", "status", "version", "began_with", "created_at", "changed_at")
        return {name: getattr(self, name) for name in names} | self.state.plain()


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person did in one go: split, merge, drag, undo. ``operations`` are its small steps."""

    edit_id: str
    version: int
    action: str
    operations: tuple[Operation, ...]


class ReviewStore:
    """The database of a review. Every method is one transaction: all of it happens or nothing.

    Raises:
        DatabaseLostError: from every method, when the database does not answer; nothing was stored.
    """

    def __init__(self, url: str, busy_timeout_s: float = 5.0) -> None:
        """Open the database and make its tables; ``busy_timeout_s`` is how long to wait for another writer
        (SQLite) or for a free connection.

        Raises:
            ValueError: no usable database URL, or its driver is not installed.
        """
        self.engine = _engine(url, busy_timeout_s)
        with self._errors():
            METADATA.create_all(self.engine)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except IntegrityError:
            raise
        except (DBAPIError, PoolTimeoutError) as error:
            told = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            raise DatabaseLostError(
                f"the database did not answer ({told}); nothing of this step was stored: it is sent again, or check "
                "that the database runs and its disk has space"
            ) from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A connection whose work is committed at the end, or undone."""
        with self._errors(), self.engine.begin() as connection:
            yield connection

    def open_copy(
        self, session_id: str, owner: str, began_with: Literal["engine", "nothing"], regions: Sequence[Region]
    ) -> LabelCopy:
        """The copy of this owner; made from ``regions`` if there is none yet."""
        with self.transaction() as connection:
            found = _one(connection, COPIES.c.session_id == session_id, COPIES.c.owner == owner)
            if found is not None:
                return found
        at = now()
        row = {
            "session_id": session_id, "owner": owner, "status": "draft", "version": 0, "began_with": began_with,
            "state": canonical_json(CopyState(tuple(regions)).plain()), "created_at": at, "changed_at": at,
        }  # fmt: skip
        try:
            with self.transaction() as connection:
                connection.execute(insert(COPIES).values(row))
        except IntegrityError:
            # Made by another tab in between: that one counts.
            pass
        with self.transaction() as connection:
            return _known(connection, COPIES.c.session_id == session_id, COPIES.c.owner == owner)

    def copy(self, copy_id: int) -> LabelCopy:
        """One copy; raises UnknownError."""
        with self.transaction() as connection:
            return _known(connection, COPIES.c.copy_id == copy_id)

    def copies(self, session_id: str | None = None) -> list[LabelCopy]:
        """Every copy, or those of a session, by session and owner."""
        query = select(COPIES).order_by(COPIES.c.session_id, COPIES.c.owner)
        if session_id is not None:
            query = query.where(COPIES.c.session_id == session_id)
        with self.transaction() as connection:
            return [_copy(row) for row in connection.execute(query).mappings()]

    def edit(self, copy_id: int, person: str, edit: Edit, duration_s: float) -> LabelCopy:
        """Store an edit made on version ``edit.version``; sent twice it counts once.

        Raises:
            ConflictError: the copy has gone on since.
            ReviewInputError: the edit breaks a rule.
            NotAllowedError: the copy is approved or superseded.
        """
        try:
            return self._edit(copy_id, person, edit, duration_s)
        except IntegrityError:
            # The same edit came twice at once and the other was first.
            raise _gone_on(self.copy(copy_id).version) from None

    def _edit(self, copy_id: int, person: str, edit: Edit, duration_s: float) -> LabelCopy:
        with self.transaction() as connection:
            found = _known(connection, COPIES.c.copy_id == copy_id)
            if connection.execute(select(EDITS.c.edit_id).where(EDITS.c.edit_id == edit.edit_id)).first():
                return found
            if found.status in {"approved", "superseded"}:
                raise NotAllowedError(f"this copy is {found.status}: an administrator must return it first")
            if found.version != edit.version:
                raise _gone_on(found.version)
            state = apply(found.state, edit.operations, duration_s)
            changed = connection.execute(
                update(COPIES)
                .where(COPIES.c.copy_id == copy_id, COPIES.c.version == edit.version, COPIES.c.status == found.status)
                .values(version=edit.version + 1, state=canonical_json(state.plain()), changed_at=now())
            )
            if changed.rowcount != 1:
                raise _gone_on(found.version + 1)
            connection.execute(
                insert(EDITS).values(
                    edit_id=edit.edit_id,
                    copy_id=copy_id,
                    version=edit.version + 1,
                    person=person,
                    action=edit.action,
                    operations=canonical_json([operation.model_dump() for operation in edit.operations]),
                    at=now(),
                )
            )
            return _known(connection, COPIES.c.copy_id == copy_id)

    def history(self, copy_id: int, after_version: int = 0) -> list[dict[str, Any]]:
        """Edits after a version, oldest first: version, person, action, operations, at."""
        query = (
            select(EDITS).where(EDITS.c.copy_id == copy_id, EDITS.c.version > after_version).order_by(EDITS.c.version)
        )
        with self.transaction() as connection:
            return [
                {**row, "operations": json.loads(row["operations"])} for row in connection.execute(query).mappings()
            ]

    def decisions(self, copy_id: int) -> list[dict[str, Any]]:
        """What was decided about a copy, oldest first."""
        query = select(DECISIONS).where(DECISIONS.c.copy_id == copy_id).order_by(DECISIONS.c.decision_id)
        with self.transaction() as connection:
            return [dict(row) for row in connection.execute(query).mappings()]

    def decide(
        self,
        copy_id: int,
        version: int,
        person: str,
        status: Status,
        note: str,
        allowed_from: frozenset[Status],
        publish: Callable[[LabelCopy], None] | None = None,
    ) -> LabelCopy:
        """Set a copy's status, on the version that the person has seen.

        With status ``approved`` an earlier approved copy of the session is superseded. ``publish`` runs before the
        commit: if it fails, nothing was decided.

        Raises:
            ConflictError: the copy has gone on since.
            NotAllowedError: not from its present status.
        """
        with self.transaction() as connection:
            found = _known(connection, COPIES.c.copy_id == copy_id)
            if found.version != version:
                raise _gone_on(found.version)
            if found.status not in allowed_from:
                raise NotAllowedError(f"this copy is {found.status}: it cannot become {status} from there")
            if status == "approved":
                earlier = select(COPIES).where(
                    COPIES.c.session_id == found.session_id, COPIES.c.status == "approved", COPIES.c.copy_id != copy_id
                )
                for row in connection.execute(earlier).mappings().all():
                    _set_status(connection, _copy(row), person, "superseded", f"by the copy of {found.owner}")
            _set_status(connection, found, person, status, note)
            decided = _known(connection, COPIES.c.copy_id == copy_id)
            if publish is not None:
                publish(decided)
            return decided


def _set_status(connection: Connection, copy: LabelCopy, person: str, status: Status, note: str) -> None:
    changed = connection.execute(
        update(COPIES)
        .where(COPIES.c.copy_id == copy.copy_id, COPIES.c.version == copy.version, COPIES.c.status == copy.status)
        .values(status=status, changed_at=now())
    )
    if changed.rowcount != 1:
        raise _gone_on(copy.version)
    row = {"copy_id": copy.copy_id, "version": copy.version, "person": person, "status": status, "note": note}
    connection.execute(insert(DECISIONS).values(**row, at=now()))


def _gone_on(version: int) -> ConflictError:
    return ConflictError("someone else changed this copy in the meantime; look at what changed, then go on", version)


def _one(connection: Connection, *where: Any) -> LabelCopy | None:
    row = connection.execute(select(COPIES).where(*where)).mappings().first()
    return None if row is None else _copy(row)


def _known(connection: Connection, *where: Any) -> LabelCopy:
    found = _one(connection, *where)
    if found is None:
        raise UnknownError("there is no such copy; go back to the list of sessions")
    return found


def _copy(row: RowMapping) -> LabelCopy:
    values = {name: row[name] for name in row if name != "state"}
    return LabelCopy(**values, state=_STATE.validate_json(row["state"]))


def now() -> str:
    """The present moment in UTC, for the log of what people did; no audio time hangs on it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _engine(url: str, busy_timeout_s: float) -> Engine:
    try:
        parsed = make_url(url)
        lite = parsed.get_backend_name() == "sqlite"
        if lite:
            engine = create_engine(parsed, connect_args={"timeout": busy_timeout_s})
        else:
            # A server whose databases have no encoding (made under locale C) would hand out bytes instead of text.
            told = {"client_encoding": "utf8"} if parsed.get_backend_name() == "postgresql" else {}
            engine = create_engine(parsed, pool_pre_ping=True, pool_timeout=busy_timeout_s, connect_args=told)
    except (ArgumentError, NoSuchModuleError) as error:
        raise ValueError(
            "the review database's URL cannot be read; give sqlite:///FILE or postgresql+psycopg://USER@HOST/NAME"
        ) from error
    except ModuleNotFoundError as error:
        raise ValueError(f"the database driver {error.name} is missing; install duplex-bench[postgres]") from error
    if lite:
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _: Any) -> None:
    # The driver's own transactions begin too late to be a lock: they are begun by hand instead.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys=ON")
    connection.execute("PRAGMA synchronous=FULL")


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
