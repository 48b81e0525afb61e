"""Where blobs and tables lie: keys to bytes, written whole or not at all."""

import errno
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Protocol


class StorageFullError(OSError):
    """The disk is full; nothing half-written was left behind."""


class ObjectStore(Protocol):
    """Keys are relative POSIX paths. A reader never sees part of an object."""

    def get(self, key: str) -> bytes:
        """The object's bytes; raises KeyError if there is none."""
        ...

    def put(self, key: str, data: bytes) -> None:
        """Write or replace an object, atomically."""
        ...

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object unless one is there; True if this call wrote it."""
        ...

    def exists(self, key: str) -> bool:
        """Whether an object is there."""
        ...

    def delete(self, key: str) -> None:
        """Remove an object; no error if there is none."""
        ...

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key below ``prefix`` (a folder, ``.`` for all), sorted."""
        ...

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Objects in the order of ``keys``; None for one that is not there."""
        ...

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` under which there is no object."""
        ...

    def stamp(self, key: str) -> str:
        """A text that changes when the object does; empty where there is none."""
        ...


def checked_key(key: str) -> PurePosixPath:
    """``key`` as a relative path that stays inside the store.

    Raises:
        ValueError: absolute, empty, or climbing out.
    """
    path = PurePosixPath(key)
    if not key or path.is_absolute() or ".." in path.parts or "\\" in key or "\0" in key:
        raise ValueError(f"object key {key!r} is not a relative path inside the store")
    return path


class FolderStore:
    """An object store in a local folder: temporary file in the same folder, fsync-free rename, create-only by link."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def _path(self, key: str) -> Path:
        return self.root / checked_key(key)

    def get(self, key: str) -> bytes:
        """The object's bytes; raises KeyError if there is none."""
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            raise KeyError(key) from None

    def put(self, key: str, data: bytes) -> None:
        """Write or replace an object, atomically.

        Raises:
            StorageFullError: no space left; the temporary file is removed.
        """
        target = self._path(key)
        temporary = self._write_temporary(target, data)
        temporary.replace(target)

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Write an object unless one is there; True if this call wrote it."""
        target = self._path(key)
        if target.exists():
            return False
        temporary = self._write_temporary(target, data)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        finally:
            temporary.unlink()
        return True

    def exists(self, key: str) -> bool:
        """Whether an object is there."""
        return self._path(key).is_file()

    def delete(self, key: str) -> None:
        """Remove an object; no error if there is none."""
        self._path(key).unlink(missing_ok=True)

    def keys(self, prefix: str) -> Iterator[str]:
        """Every key below ``prefix`` (a folder, ``.`` for all), sorted."""
        base = self._path(prefix)
        found = (path for path in base.rglob("*") if path.is_file() and not path.name.startswith(".writing-"))
        yield from sorted(path.relative_to(self.root).as_posix() for path in found)

    def get_many(self, keys: Sequence[str]) -> Iterator[tuple[str, bytes | None]]:
        """Objects in the order of ``keys``; None for one that is not there."""
        for key in keys:
            try:
                yield key, self.get(key)
            except KeyError:
                yield key, None

    def missing(self, keys: Sequence[str]) -> set[str]:
        """Those of ``keys`` under which there is no object."""
        return {key for key in keys if not self.exists(key)}

    def stamp(self, key: str) -> str:
        """A text that changes when the object does; empty where there is none."""
        try:
            found = self._path(key).stat()
        except FileNotFoundError:
            return ""
        return f"{found.st_mtime_ns}-{found.st_size}-{found.st_ino}"

    def path(self, key: str) -> Path:
        """The file that holds an object, for readers that stream from disk; raises KeyError if there is none."""
        path = self._path(key)
        if not path.is_file():
            raise KeyError(key)
        return path

    def put_file(self, key: str, source: Path) -> None:
        """Make a finished file of the same file system the object ``key``, by rename: for objects of hours of audio."""
        target = self._path(key)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.replace(target)

    def _write_temporary(self, target: Path, data: bytes) -> Path:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            descriptor, name = tempfile.mkstemp(prefix=".writing-", dir=target.parent)
        except OSError as error:
            raise _explained(error, target) from error
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise _explained(error, target) from error
        return temporary


def _explained(error: OSError, target: Path) -> OSError:
    if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
        message = f"no space left to write {target}: free some and run again, finished work is kept"
        return StorageFullError(error.errno, message)
    return error
