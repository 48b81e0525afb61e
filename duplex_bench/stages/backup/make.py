"""Make a backup: ledgers and tables first, then the audio they name, so that a run may go on meanwhile."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from duplex_bench.stages.backup.manifest import NAME, BackupError, Kept, Manifest, read_manifest, write_manifest
from duplex_bench.storage.databases import copy_sqlite, dump_postgres, is_postgres
from duplex_bench.storage.digests import digest_file
from duplex_bench.storage.object_store import FolderStore, ObjectStore

OBJECTS: Final = "objects"
DATABASES: Final = "databases"
FILES: Final = "files"
FOLDERS: Final = ("systems", "reviews", "corpora")
"""Of the data folder: a user's cards and corpora, and approved reviews."""
RUNS_VARIABLE: Final = "DUPLEX_BENCH_POSTGRES"
REVIEW_VARIABLE: Final = "DUPLEX_BENCH_REVIEW_DATABASE"
# Of runs under way; and audio last, since what names it was copied before.
_PASSED_OVER: Final = ("runs", "leases", "health")
_LAST: Final = "blobs"


def make_backup(store: ObjectStore, data: Path, folder: Path) -> Manifest:
    """Copy everything into ``folder``; audio that an earlier backup there holds already is not copied again.

    Raises:
        BackupError: the folder holds something else, or lies inside the data folder.
        DatabaseToolError: a database cannot be copied.
        OSError: it cannot be written (StorageFullError: no space).
    """
    if folder.resolve().is_relative_to(data.resolve()):
        raise BackupError(f"{folder} lies in the data folder: a disk that breaks would take both. Name another")
    before = read_manifest(folder).files if (folder / NAME).is_file() else {}
    if not before and folder.exists() and any(folder.iterdir()) and not (folder / OBJECTS).is_dir():
        raise BackupError(f"{folder} holds something else: name an empty folder or an earlier backup")
    folder.mkdir(parents=True, exist_ok=True)
    # Until the new one is written there is no backup here, rather than one that is half old.
    (folder / NAME).unlink(missing_ok=True)
    manifest = Manifest()
    for name, source in _databases(data):
        target = folder / DATABASES / name
        if is_postgres(source):
            dump_postgres(source, target)
            manifest.databases[name] = "postgres"
        else:
            target.unlink(missing_ok=True)
            copy_sqlite(Path(source), target)
            manifest.databases[name] = "sqlite"
        _note(manifest, folder, f"{DATABASES}/{name}")
    for path in _own_files(data):
        name = f"{FILES}/{path.relative_to(data).as_posix()}"
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
        _note(manifest, folder, name)
    kept = FolderStore(folder / OBJECTS)
    for key in _keys(store):
        name = f"{OBJECTS}/{key}"
        # A blob is named by its content: what is there already, and whole, is the same.
        if not (key.startswith(f"{_LAST}/") and name in before and kept.exists(key)):
            try:
                kept.put(key, store.get(key))
            except KeyError:
                continue  # removed meanwhile
        _note(manifest, folder, name)
    _drop_others(folder, manifest)
    write_manifest(folder, manifest)
    return manifest


def _note(manifest: Manifest, folder: Path, name: str) -> None:
    path = folder / name
    manifest.files[name] = Kept(path.stat().st_size, digest_file(path))


def _databases(data: Path) -> Iterator[tuple[str, str]]:
    runs = os.environ.get(RUNS_VARIABLE)
    if runs:
        yield "runs.dump", runs
    else:
        for path in sorted((data / "dagster").rglob("*.db")):
            yield f"dagster/{path.relative_to(data / 'dagster').as_posix()}", str(path)
    review = os.environ.get(REVIEW_VARIABLE)
    if review and is_postgres(review):
        yield "review.dump", review
    elif (data / "review.sqlite").is_file():
        yield "review.sqlite", str(data / "review.sqlite")


def _own_files(data: Path) -> Iterator[Path]:
    for folder in FOLDERS:
        yield from (path for path in sorted((data / folder).rglob("*")) if path.is_file() and not path.is_symlink())


def _keys(store: ObjectStore) -> Iterator[str]:
    last = []
    for key in store.keys("."):
        first = key.split("/", 1)[0]
        if first == _LAST:
            last.append(key)
        elif first not in _PASSED_OVER:
            yield key
    # Looked for again: audio that was written since, which a ledger copied above may name.
    yield from sorted({*last, *store.keys(_LAST)})


def _drop_others(folder: Path, manifest: Manifest) -> None:
    for part in (OBJECTS, DATABASES, FILES):
        for path in (folder / part).rglob("*"):
            if path.is_file() and path.relative_to(folder).as_posix() not in manifest.files:
                path.unlink()
