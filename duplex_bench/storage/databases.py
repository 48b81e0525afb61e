"""Whole databases into files and back: SQLite by its own online backup, Postgres by its own tools."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path


class DatabaseToolError(ValueError):
    """A database could not be copied; the message says what its tool said and what to do."""


def copy_sqlite(source: Path, target: Path) -> None:
    """Copy a SQLite database as it is at one moment, while others read and write it.

    Raises:
        DatabaseToolError: it is no SQLite database, or damaged.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        with (
            closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True, timeout=60.0)) as read,
            closing(sqlite3.connect(target)) as written,
        ):
            read.backup(written)
            (found,) = written.execute("PRAGMA quick_check").fetchone()
    except sqlite3.DatabaseError as error:
        raise DatabaseToolError(f"{source} cannot be copied: {error}") from error
    if found != "ok":
        raise DatabaseToolError(f"{source} is damaged: {found}")


def dump_postgres(url: str, target: Path) -> None:
    """Write a Postgres database into one file, in pg_dump's custom format, as it is at one moment.

    Raises:
        DatabaseToolError: no pg_dump here, or it failed (a client older than the server, say).
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    _run("pg_dump", url, ["--format=custom", "--no-owner", "--no-privileges", f"--file={target}"])


def load_postgres(url: str, source: Path) -> None:
    """Put a dump back into a database, which loses what it holds of the same tables.

    Raises:
        DatabaseToolError: no pg_restore here, or it failed; the database is then as it was.
    """
    options = ["--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error"]
    _run("pg_restore", url, [*options, str(source)])


def is_postgres(url: str) -> bool:
    """Whether an address is of Postgres."""
    return url.startswith("postgres")


def postgres_program(name: str) -> str:
    """A program of Postgres; Debian keeps the server's out of PATH, a folder a release.

    Raises:
        DatabaseToolError: it is not here.
    """
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=_release)
    found = str(places[-1]) if places else shutil.which(name)
    if found is None:
        raise DatabaseToolError(f"no {name} here: install Debian's postgresql-client")
    return found


def _release(path: Path) -> float:
    try:
        return float(path.parts[-3])
    except ValueError:
        return 0.0


def _run(name: str, address: str, words: list[str]) -> None:
    from sqlalchemy.engine import make_url

    url = make_url(address)
    # The password goes in by the environment: a command line is read by everybody on the machine.
    environment = {**os.environ, **({"PGPASSWORD": url.password} if url.password else {})}
    plain = url.set(drivername="postgresql", password=None).render_as_string(hide_password=False)
    command = [postgres_program(name), f"--dbname={plain}", *words]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DatabaseToolError(f"{name} failed: {done.stderr.strip()[-2000:]}")
