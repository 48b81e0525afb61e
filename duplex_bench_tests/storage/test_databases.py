"""A Postgres database through its own tools and back, on a real server. Passed over where no Postgres is installed."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest
import sqlalchemy

from duplex_bench.cli.cluster.services import ServiceMissingError, start_postgres
from duplex_bench.stages.backup import make, restore
from duplex_bench.stages.backup.manifest import BackupError
from duplex_bench.storage.databases import DatabaseToolError, dump_postgres, load_postgres
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def server(serving):
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    # The server runs as another user where this one is root.
    folder.chmod(0o755)
    try:
        own, processes = serving(start_postgres, folder)
    except ServiceMissingError as missing:
        shutil.rmtree(folder)
        pytest.skip(str(missing))
    yield own.postgres
    processes.stop("postgres")
    shutil.rmtree(folder)


@pytest.fixture
def two_databases(server):
    engine = sqlalchemy.create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        for name in ("one", "two"):
            connection.execute(sqlalchemy.text(f"DROP DATABASE IF EXISTS {name}"))
            connection.execute(sqlalchemy.text(f"CREATE DATABASE {name}"))
    engine.dispose()
    return [server.rsplit("/", 1)[0] + f"/{name}" for name in ("one", "two")]


def run_sql(address, text):
    engine = sqlalchemy.create_engine(address)
    with engine.begin() as connection:
        result = connection.execute(sqlalchemy.text(text))
        found = result.fetchall() if result.returns_rows else []
    engine.dispose()
    return found


def test_a_backup_with_postgres_comes_back_in_another_database(two_databases, tmp_path, monkeypatch):
    one, two = two_databases
    run_sql(one, "CREATE TABLE told (n int, what text); INSERT INTO told VALUES (1, 'a'), (2, 'b')")
    monkeypatch.setenv(make.RUNS_VARIABLE, one)
    monkeypatch.delenv(make.REVIEW_VARIABLE, raising=False)
    store = FolderStore(tmp_path / "data" / "store")
    store.put("ledger/x/1.jsonl", b"{}")
    kept = tmp_path / "kept"
    made = make.make_backup(store, tmp_path / "data", kept)
    assert made.databases == {"runs.dump": "postgres"}
    new = tmp_path / "new"
    monkeypatch.delenv(make.RUNS_VARIABLE)
    with pytest.raises(BackupError, match=make.RUNS_VARIABLE):
        restore.restore_backup(kept, FolderStore(new / "store"), new)
    assert not new.exists()
    monkeypatch.setenv(make.RUNS_VARIABLE, two)
    restore.restore_backup(kept, FolderStore(new / "store"), new)
    assert run_sql(two, "SELECT * FROM told ORDER BY n") == [(1, "a"), (2, "b")]
    password = sqlalchemy.engine.make_url(one).password
    assert not [path for path in kept.rglob("*") if path.is_file() and password.encode() in path.read_bytes()]


def test_a_damaged_dump_leaves_the_database_as_it_was(two_databases, tmp_path):
    one, two = two_databases
    run_sql(one, "CREATE TABLE told (n int); INSERT INTO told SELECT generate_series(1, 5000)")
    run_sql(two, "CREATE TABLE told (n int); INSERT INTO told VALUES (7)")
    dump_postgres(one, tmp_path / "dump")
    data = (tmp_path / "dump").read_bytes()
    (tmp_path / "cut").write_bytes(data[: len(data) * 2 // 3])
    with pytest.raises(DatabaseToolError, match="pg_restore failed"):
        load_postgres(two, tmp_path / "cut")
    assert run_sql(two, "SELECT * FROM told") == [(7,)]
    load_postgres(two, tmp_path / "dump")
    assert run_sql(two, "SELECT count(*) FROM told") == [(5000,)]


def test_a_wrong_password_is_told_without_it(two_databases, tmp_path):
    address = sqlalchemy.engine.make_url(two_databases[0]).set(password="wrong-password-1")
    with pytest.raises(DatabaseToolError) as refused:
        dump_postgres(address.render_as_string(hide_password=False), tmp_path / "dump")
    assert "wrong-password-1" not in str(refused.value)
    assert os.environ.get("PGPASSWORD") is None
