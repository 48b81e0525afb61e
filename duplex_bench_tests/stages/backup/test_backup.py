"""A backup is whole or none, may be taken while others write, comes back as it was; hostile ones are refused."""

import json
import sqlite3

import polars as pl
import pytest

from duplex_bench.records import tables
from duplex_bench.stages.backup import make, restore
from duplex_bench.stages.backup.manifest import BackupError, read_manifest
from duplex_bench.stages.stored_tables import SCHEMAS, unreadable_tables
from duplex_bench.storage.blobs import BlobStore
from duplex_bench.storage.databases import DatabaseToolError, copy_sqlite
from duplex_bench.storage.frames import write_frame
from duplex_bench.storage.ledger import ItemLedger, LedgerRecord
from duplex_bench.storage.object_store import FolderStore

pytestmark = pytest.mark.unit


@pytest.fixture
def run(tmp_path, monkeypatch):
    for name in (make.RUNS_VARIABLE, make.REVIEW_VARIABLE):
        monkeypatch.delenv(name, raising=False)
    data = tmp_path / "data"
    store = FolderStore(data / "store")
    digest = BlobStore(store).put(b"sound", "flac")
    ledger = ItemLedger(store, "multiparty/rollouts/one")
    ledger.add(LedgerRecord("key", "item", "ok", payload=json.dumps({"listener_audio": digest})))
    ledger.flush()
    write_frame(store, "tables/demo/multiparty/rollouts/one.parquet", pl.DataFrame(schema=dict(tables.ROLLOUTS)))
    for key in ("runs/abc.json", "leases/multiparty/one/1", "health/xyz"):
        store.put(key, b"passing")
    (data / "systems").mkdir()
    (data / "systems" / "mine.toml").write_text("name = 'mine'")
    (data / "dagster" / "history" / "runs").mkdir(parents=True)
    for name in ("dagster/history/runs.db", "dagster/history/runs/1.db", "review.sqlite"):
        with sqlite3.connect(data / name) as connection:
            connection.execute("CREATE TABLE told (what TEXT)")
            connection.execute("INSERT INTO told VALUES (?)", (name,))
    (data / "reports").mkdir()
    (data / "reports" / "index.html").write_text("made again at any time")
    return data


def files(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def told(path):
    with sqlite3.connect(path) as connection:
        return connection.execute("SELECT what FROM told").fetchall()


def test_what_was_kept_comes_back_as_it_was_and_what_passes_does_not(run, tmp_path):
    kept, new = tmp_path / "kept", tmp_path / "new"
    made = make.make_backup(FolderStore(run / "store"), run, kept)
    assert made.databases == {"dagster/history/runs.db": "sqlite", "dagster/history/runs/1.db": "sqlite",
                              "review.sqlite": "sqlite"}  # fmt: skip
    assert restore.checked_backup(kept) == made
    restore.restore_backup(kept, FolderStore(new / "store"), new)
    before, after = files(run), files(new)
    gone = {name for name in before if name not in after}
    assert gone == {"store/runs/abc.json", "store/leases/multiparty/one/1", "store/health/xyz", "reports/index.html"}
    same = {name for name in after if not name.endswith((".db", ".sqlite"))}
    assert {name: after[name] for name in same} == {name: before[name] for name in same}
    for name in made.databases:
        assert told(new / name) == [(name,)]


def test_a_second_backup_copies_no_audio_again_and_forgets_what_was_deleted(run, tmp_path):
    kept = tmp_path / "kept"
    store = FolderStore(run / "store")
    make.make_backup(store, run, kept)
    blob = next((kept / "objects" / "blobs").rglob("*.flac"))
    before = blob.stat().st_mtime_ns
    store.put("tables/demo/more.parquet", b"more")
    (run / "systems" / "mine.toml").unlink()
    made = make.make_backup(store, run, kept)
    assert blob.stat().st_mtime_ns == before
    assert "objects/tables/demo/more.parquet" in made.files
    assert not (kept / "files" / "systems" / "mine.toml").exists()
    restore.checked_backup(kept)


class WrittenMeanwhile(FolderStore):
    """A store in which a run ends an item, audio first and then its ledger, between the folders of every listing."""

    def __init__(self, root):
        super().__init__(root)
        self.written = 0

    def _work(self):
        self.written += 1
        digest = BlobStore(self).put(f"sound {self.written}".encode(), "flac")
        ledger = ItemLedger(self, "multiparty/rollouts/one")
        ledger.add(LedgerRecord(f"key {self.written}", "item", "ok", payload=json.dumps({"listener_audio": digest})))
        ledger.flush()

    def keys(self, prefix):
        for folder in sorted(self.root.iterdir()) if prefix == "." else [self.root / prefix]:
            yield from super().keys(folder.name)
            self._work()


def test_audio_named_by_a_ledger_that_was_copied_is_in_the_backup_although_a_run_goes_on(run, tmp_path):
    store = WrittenMeanwhile(run / "store")
    for number in range(3):
        kept = tmp_path / f"kept-{number}"
        before = store.written
        make.make_backup(store, run, kept)
        assert store.written > before
        copied = FolderStore(kept / "objects")
        finished = ItemLedger(copied, "multiparty/rollouts/one").finished()
        digests = [json.loads(record.payload)["listener_audio"] for record in finished.values()]
        assert digests
        assert copied.missing([BlobStore(copied).key(digest, "flac") for digest in digests]) == set()


@pytest.mark.parametrize("fault", ["changed", "gone", "cut", "link"])
def test_a_damaged_backup_is_named_and_nothing_is_put_back(fault, run, tmp_path):
    kept, new = tmp_path / "kept", tmp_path / "new"
    make.make_backup(FolderStore(run / "store"), run, kept)
    blob = next((kept / "objects" / "blobs").rglob("*.flac"))
    if fault == "changed":
        blob.write_bytes(b"dnuos")
    elif fault == "cut":
        blob.write_bytes(b"so")
    else:
        blob.unlink()
        if fault == "link":
            outside = tmp_path / "outside"
            outside.write_bytes(b"sound")
            blob.symlink_to(outside)
    with pytest.raises(BackupError, match=blob.name):
        restore.restore_backup(kept, FolderStore(new / "store"), new)
    assert not new.exists()


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/passwd", "files/../../outside", "files/outside", "files/dagster/x"]
)
def test_a_backup_that_names_a_path_outside_is_refused(name, run, tmp_path):
    kept, new = tmp_path / "kept", tmp_path / "new"
    make.make_backup(FolderStore(run / "store"), run, kept)
    manifest = json.loads((kept / "manifest.json").read_text())
    entry = next(iter(manifest["files"].values()))
    source = next(key for key, value in manifest["files"].items() if value == entry)
    manifest["files"][name] = entry
    if not name.startswith("/") and ".." not in name:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        (kept / name).write_bytes((kept / source).read_bytes())
    (kept / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BackupError, match="do not use"):
        restore.restore_backup(kept, FolderStore(new / "store"), new)
    assert not new.exists()


def test_a_broken_off_backup_a_later_format_and_a_stranger_are_none(run, tmp_path):
    kept = tmp_path / "kept"
    store = FolderStore(run / "store")
    make.make_backup(store, run, kept)
    text = (kept / "manifest.json").read_text()
    (kept / "manifest.json").write_text(json.dumps({**json.loads(text), "format": 2, "version": "9.9"}))
    with pytest.raises(BackupError, match=r"9\.9"):
        read_manifest(kept)
    for bad in ("{", "[]", '{"files": 3}', '{"files": {}, "other": 1}'):
        (kept / "manifest.json").write_text(bad)
        with pytest.raises(BackupError, match="cannot be read"):
            read_manifest(kept)
    (kept / "manifest.json").unlink()
    with pytest.raises(BackupError, match="broken off"):
        read_manifest(kept)
    with pytest.raises(BackupError, match="data folder"):
        make.make_backup(store, run, run / "kept")
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    (stranger / "letter.txt").write_text("mine")
    with pytest.raises(BackupError, match="something else"):
        make.make_backup(store, run, stranger)


def test_nothing_is_put_back_over_what_is_there(run, tmp_path, monkeypatch):
    kept = tmp_path / "kept"
    make.make_backup(FolderStore(run / "store"), run, kept)
    before = files(run)
    with pytest.raises(BackupError, match="empty"):
        restore.restore_backup(kept, FolderStore(run / "store"), run)
    with pytest.raises(BackupError, match="empty"):
        restore.restore_backup(kept, FolderStore(tmp_path / "empty"), run)
    assert files(run) == before


def test_a_database_that_is_none_is_named(tmp_path):
    (tmp_path / "x.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(DatabaseToolError, match=r"x\.db"):
        copy_sqlite(tmp_path / "x.db", tmp_path / "y.db")


def test_tables_of_another_version_are_named_with_what_differs(tmp_path):
    store = FolderStore(tmp_path)
    for name, schema in SCHEMAS.items():
        write_frame(store, f"tables/demo/multiparty/{name}.parquet", pl.DataFrame(schema=dict(schema)))
    write_frame(store, "tables/demo/multiparty/other.parquet", pl.DataFrame({"anything": [1]}))
    assert unreadable_tables(store) == {}
    old = pl.DataFrame(schema=dict(tables.ROLLOUTS)).drop("wall_s").with_columns(pl.lit(1).alias("extra"))
    write_frame(store, "tables/demo/multiparty/rollouts/one.parquet", old.with_columns(pl.col("repeat").cast(pl.Int8)))
    store.put("tables/demo/multiparty/words/one.parquet", b"PAR1 no")
    wrong = unreadable_tables(store)
    assert set(wrong) == {"tables/demo/multiparty/rollouts/one.parquet", "tables/demo/multiparty/words/one.parquet"}
    assert (
        "lacks wall_s; has unknown extra; has another type of repeat"
        in wrong["tables/demo/multiparty/rollouts/one.parquet"]
    )
