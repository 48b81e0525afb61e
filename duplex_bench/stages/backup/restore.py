"""Put a backup back into an empty data folder and store, once every file of it was checked."""

import os
import shutil
from pathlib import Path
from typing import Final

from duplex_bench.stages.backup.make import DATABASES, FILES, FOLDERS, OBJECTS, REVIEW_VARIABLE, RUNS_VARIABLE
from duplex_bench.stages.backup.manifest import BackupError, Manifest, damaged, read_manifest
from duplex_bench.storage.databases import copy_sqlite, is_postgres, load_postgres
from duplex_bench.storage.object_store import FolderStore, ObjectStore

_SHOWN: Final = 5


def checked_backup(folder: Path) -> Manifest:
    """The manifest of a backup whose every file is what was written.

    Raises:
        BackupError: it is none, or not whole; names what is damaged.
    """
    manifest = read_manifest(folder)
    broken = damaged(folder, manifest)
    if broken:
        shown = ", ".join(broken[:_SHOWN]) + (f" and {len(broken) - _SHOWN} more" if len(broken) > _SHOWN else "")
        raise BackupError(f"{folder}: {len(broken)} files lack or are damaged: {shown}. Use another backup")
    return manifest


def restore_backup(folder: Path, store: ObjectStore, data: Path) -> Manifest:
    """Put everything back; audio first, what names it last.

    Raises:
        BackupError: the backup is not whole; the store or the data folder holds a run already; or a database of the
            backup has no place here.
        DatabaseToolError: a database cannot be written.
        OSError: a file cannot be written.
    """
    manifest = checked_backup(folder)
    _refuse_what_is_there(store, data, manifest)
    places = {name: _place(name, kind, data) for name, kind in manifest.databases.items()}
    names = [name.removeprefix(f"{OBJECTS}/") for name in manifest.files if name.startswith(f"{OBJECTS}/")]
    kept = FolderStore(folder / OBJECTS)
    for key in sorted(names, key=lambda key: (not key.startswith("blobs/"), not key.startswith("ledger/"), key)):
        store.put(key, kept.get(key))
    for name in manifest.files:
        if name.startswith(f"{FILES}/"):
            target = data / name.removeprefix(f"{FILES}/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(folder / name, target)
    for name, kind in manifest.databases.items():
        if kind == "postgres":
            load_postgres(places[name], folder / DATABASES / name)
        else:
            copy_sqlite(folder / DATABASES / name, Path(places[name]))
    return manifest


def _refuse_what_is_there(store: ObjectStore, data: Path, manifest: Manifest) -> None:
    for part in ("blobs", "ledger", "tables"):
        if next(iter(store.keys(part)), None) is not None:
            raise BackupError(f"the object store holds {part} already: restore into an empty one")
    for part in (*FOLDERS, "review.sqlite", "dagster"):
        place = data / part
        if place.is_file() or (place.is_dir() and any(path.is_file() for path in place.rglob("*"))):
            raise BackupError(f"{place} is there already: restore into an empty data folder (--data)")
    for name in manifest.files:
        first = name.split("/")
        if first[0] == FILES and (len(first) < 3 or first[1] not in FOLDERS):
            raise BackupError(f"the backup names {name}, which is no file of a data folder: do not use it")


def _place(name: str, kind: str, data: Path) -> str:
    if kind == "sqlite":
        return str(data / name)
    variable = RUNS_VARIABLE if name == "runs.dump" else REVIEW_VARIABLE
    address = os.environ.get(variable, "")
    if not is_postgres(address):
        raise BackupError(f"the backup holds a Postgres database ({name}): set {variable} to the one it goes into")
    return address
