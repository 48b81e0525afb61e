"""Tables of the review store, on SQLite or Postgres. What records what people did can be added to, never changed."""

from typing import Final

from sqlalchemy import (
    DDL,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    event,
)

METADATA: Final = MetaData()

COPIES: Final = Table(
    "copies", METADATA,
    Column("copy_id", Integer, primary_key=True),
    Column("session_id", String(200), nullable=False),
    Column("owner", String(80), nullable=False),
    Column("status", String(20), nullable=False),
    Column("version", Integer, nullable=False),
    Column("state", Text, nullable=False),
    Column("began_with", String(20), nullable=False),
    Column("created_at", String(40), nullable=False),
    Column("changed_at", String(40), nullable=False),
    UniqueConstraint("session_id", "owner"),
)  # fmt: skip

EDITS: Final = Table(
    "edits", METADATA,
    Column("edit_id", String(64), primary_key=True),
    Column("copy_id", Integer, ForeignKey("copies.copy_id"), nullable=False, index=True),
    Column("version", Integer, nullable=False),
    Column("person", String(80), nullable=False),
    Column("action", String(40), nullable=False),
    Column("operations", Text, nullable=False),
    Column("at", String(40), nullable=False),
    UniqueConstraint("copy_id", "version"),
)  # fmt: skip

DECISIONS: Final = Table(
    "decisions", METADATA,
    Column("decision_id", Integer, primary_key=True),
    Column("copy_id", Integer, ForeignKey("copies.copy_id"), nullable=False, index=True),
    Column("version", Integer, nullable=False),
    Column("person", String(80), nullable=False),
    Column("status", String(20), nullable=False),
    Column("note", Text, nullable=False),
    Column("at", String(40), nullable=False),
)  # fmt: skip

WINDOW_CHECKS: Final = Table(
    "window_checks", METADATA,
    Column("check_id", Integer, primary_key=True),
    Column("point_id", String(64), nullable=False, index=True),
    Column("session_id", String(200), nullable=False),
    Column("person", String(80), nullable=False),
    Column("accepted", Boolean, nullable=False),
    Column("reason", Text, nullable=False),
    Column("at", String(40), nullable=False),
)  # fmt: skip

LISTENER_ANSWERS: Final = Table(
    "listener_answers", METADATA,
    Column("answer_id", Integer, primary_key=True),
    Column("point_id", String(64), nullable=False, index=True),
    Column("session_id", String(200), nullable=False),
    Column("person", String(80), nullable=False),
    Column("would_speak", Boolean, nullable=False),
    Column("after_boundary_s", Float, nullable=True),
    Column("words", Text, nullable=False),
    Column("at", String(40), nullable=False),
)  # fmt: skip


def _ddl(statement: str) -> DDL:
    return DDL(statement)  # type: ignore[no-untyped-call]


LOGS: Final = (EDITS, DECISIONS, WINDOW_CHECKS, LISTENER_ANSWERS)

_REFUSE_POSTGRES: Final = _ddl(
    "CREATE OR REPLACE FUNCTION review_refuse() RETURNS trigger AS $$ "
    "BEGIN RAISE EXCEPTION 'the history can only be added to'; END $$ LANGUAGE plpgsql"
)
event.listen(METADATA, "before_create", _REFUSE_POSTGRES.execute_if(dialect="postgresql"))
for _log in LOGS:
    event.listen(
        _log,
        "after_create",
        _ddl(
            f"CREATE TRIGGER {_log.name}_stay BEFORE UPDATE OR DELETE ON {_log.name} "
            "FOR EACH ROW EXECUTE FUNCTION review_refuse()"
        ).execute_if(dialect="postgresql"),
    )
    for _verb in ("UPDATE", "DELETE"):
        event.listen(
            _log,
            "after_create",
            _ddl(
                f"CREATE TRIGGER {_log.name}_no_{_verb.lower()} BEFORE {_verb} ON {_log.name} "
                "BEGIN SELECT RAISE(ABORT, 'the history can only be added to'); END"
            ).execute_if(dialect="sqlite"),
        )
