"""The store on a real Postgres: the same rules as on SQLite. Passed over where no Postgres is installed."""

import os
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.exc import DatabaseError

from duplex_bench.review.edits import Add, RegionData
from duplex_bench.review.errors import ConflictError, DatabaseLostError
from duplex_bench.review.judgements import JudgementLog, WindowCheck
from duplex_bench.review.store import OPEN, Edit, ReviewStore

pytestmark = pytest.mark.process


class Cluster:
    """A Postgres cluster of its own, reached through a socket in its folder."""

    def __init__(self, binaries, folder):
        self.binaries, self.folder = binaries, folder
        # Postgres refuses to run as root.
        self.become = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
        self.url = f"postgresql+psycopg://postgres@/postgres?host={folder}"

    def run(self, name, *arguments):
        command = [*self.become, str(self.binaries / name), *arguments]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, timeout=300)

    def start(self):
        options = f"-c listen_addresses='' -c unix_socket_directories='{self.folder}' -c fsync=off"
        command = [*self.become, str(self.binaries / "pg_ctl"), "-D", str(self.folder / "data"), "-w", "-o", options]
        command += ["-l", str(self.folder / "log"), "start"]
        # The server keeps what it inherits open: a pipe would never end.
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=300)

    def stop(self):
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")


@pytest.fixture(scope="module")
def cluster():
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    initdb = found[-1] if found else shutil.which("initdb")
    if initdb is None or (os.geteuid() == 0 and shutil.which("runuser") is None):
        pytest.skip("no Postgres here: install Debian's postgresql to run this")
    pytest.importorskip("psycopg")
    # A socket's path must be short, and its folder the server's own.
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        folder = Path(name)
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        made = Cluster(Path(initdb).parent, folder)
        made.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", "postgres", "--no-sync",
                 "-E", "UTF8", "--no-locale")  # fmt: skip
        made.start()
        yield made
        made.stop()


def edit(name, version, at_s):
    region = RegionData(region_id=name, speaker="left", kind="turn", start_s=at_s, end_s=at_s + 0.5)
    return Edit(f"edit-{name}", version, "add", (Add(op="add", region=region),))


def test_the_same_rules_hold(cluster):
    store = ReviewStore(cluster.url)
    ReviewStore(cluster.url)  # A second server on the same database makes nothing anew.
    copy = store.open_copy("s1", "Ben", "engine", [])
    assert store.open_copy("s1", "Ben", "engine", []) == copy
    assert store.edit(copy.copy_id, "Ben", edit("first", 0, 1.0), 10.0).version == 1
    with pytest.raises(ConflictError):
        store.edit(copy.copy_id, "Cem", edit("second", 0, 2.0), 10.0)
    store.decide(copy.copy_id, 1, "Ben", "submitted", "", OPEN)
    JudgementLog(store).add_check(WindowCheck("p", "s1", "Ben", True, ""))
    for log in ("edits", "decisions", "window_checks"):
        with pytest.raises(DatabaseError, match="only be added to"), store.engine.begin() as connection:
            connection.execute(text(f"DELETE FROM {log}"))
    assert len(store.history(copy.copy_id)) == len(store.decisions(copy.copy_id)) == 1


def test_a_database_without_an_encoding_keeps_text_too(cluster):
    """As a server has them that was made under locale C."""
    maker = create_engine(cluster.url, isolation_level="AUTOCOMMIT")
    with maker.connect() as connection:
        connection.execute(text("CREATE DATABASE plain ENCODING 'SQL_ASCII' TEMPLATE template0"))
    maker.dispose()
    store = ReviewStore(cluster.url.replace("@/postgres", "@/plain"))
    copy = store.open_copy("s1", "Zoë", "engine", [])
    store.edit(copy.copy_id, "Zoë", edit("first", 0, 1.0), 10.0)
    assert [row["person"] for row in store.history(copy.copy_id)] == ["Zoë"]
    store.engine.dispose()


def test_of_many_at_once_exactly_one_gets_each_version(cluster):
    stores = [ReviewStore(cluster.url) for _ in range(2)]
    copy = stores[0].open_copy("s2", "together", "nothing", [])
    start = threading.Barrier(6)
    stored = []

    def work(number):
        start.wait()
        for step in range(3):
            while True:
                store = stores[number % 2]
                try:
                    name = f"n{number}-{step}"
                    store.edit(
                        copy.copy_id,
                        f"p{number}",
                        edit(name, store.copy(copy.copy_id).version, number * 3 + step),
                        99.0,
                    )
                    stored.append(name)
                    break
                except ConflictError:
                    continue

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    final = stores[0].copy(copy.copy_id)
    assert final.version == 18
    assert {region.region_id for region in final.state.regions} == set(stored)


def test_a_connection_lost_in_an_edit_is_said_and_nothing_is_lost(cluster):
    store = ReviewStore(cluster.url)
    copy = store.open_copy("s3", "Ben", "nothing", [])
    cluster.stop()
    with pytest.raises(DatabaseLostError, match="nothing of this step was stored"):
        store.edit(copy.copy_id, "Ben", edit("late", 0, 1.0), 10.0)
    cluster.start()
    assert store.edit(copy.copy_id, "Ben", edit("late", 0, 1.0), 10.0).version == 1
