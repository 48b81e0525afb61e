"""A bundle as one file: packed the same bytes each time, and unpacked without trusting a name in it."""

import gzip
import shutil
import struct
import tarfile
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from duplex_bench.stages.release.contents import ReleaseError
from duplex_bench.storage.archives import Allowance, ArchiveBombError

# Recordings and tables are compressed as they are: deflating them again takes hours of a large run and saves nothing.
_COMPRESSED: Final = frozenset({".flac", ".parquet"})
_BLOCK: Final = 1 << 20
_TAR_BLOCK: Final = 512
_TAR_RECORD: Final = 20 * _TAR_BLOCK
# Deflate, no flags, no time, nothing about the compressor, system not known (RFC 1952).
_GZIP_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


def pack(folder: Path) -> Path:
    """``<folder>.tar.gz`` with everything below one folder of the same name; it takes the place of an earlier one."""
    archive = folder.with_name(f"{folder.name}.tar.gz")
    temporary = archive.with_name(f".{archive.name}.writing")
    with temporary.open("wb") as raw:
        zipped = _Gzip(raw)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                level = 0 if path.suffix in _COMPRESSED else 6
                _add(zipped, path, f"{folder.name}/{path.relative_to(folder).as_posix()}", level)
        zipped.write(bytes(2 * _TAR_BLOCK + -(zipped.size + 2 * _TAR_BLOCK) % _TAR_RECORD), 6)
        zipped.close()
    temporary.replace(archive)
    return archive


def _add(zipped: "_Gzip", path: Path, name: str, level: int) -> None:
    """One file as a member of the tar: its name and size, and nothing about who packed it or when."""
    member = tarfile.TarInfo(name)
    with path.open("rb") as file:
        member.size = path.stat().st_size
        zipped.write(member.tobuf(tarfile.PAX_FORMAT), level)
        while block := file.read(_BLOCK):
            zipped.write(block, level)
    zipped.write(bytes(-member.size % _TAR_BLOCK), level)


class _Gzip:
    """One gzip member whose level may change as it is written, which the standard library's cannot."""

    def __init__(self, raw: BinaryIO) -> None:
        self._raw = raw
        self._level: int | None = None
        self._deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
        self._sum = 0
        self.size = 0
        raw.write(_GZIP_HEAD)

    def write(self, data: bytes, level: int) -> None:
        """Add ``data``, deflated at ``level`` (0: stored)."""
        if level != self._level:
            # Both ends of a cut lie on whole bytes, so that another compressor can go on.
            self._raw.write(self._deflate.flush(zlib.Z_FULL_FLUSH))
            self._deflate = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
            self._level = level
        self._raw.write(self._deflate.compress(data))
        self._sum = zlib.crc32(data, self._sum)
        self.size += len(data)

    def close(self) -> None:
        """Write the end of the stream, with sum and size."""
        self._raw.write(self._deflate.flush(zlib.Z_FINISH))
        self._raw.write(struct.pack("<II", self._sum, self.size & 0xFFFFFFFF))


@contextmanager
def opened(place: Path) -> Iterator[Path]:
    """The folder of a bundle: the folder itself, or a temporary one that an archive is unpacked into.

    Raises:
        ReleaseError: nothing there, no archive, a member that is no plain file below the archive's one folder, or far
            more in it than an archive of its size can hold.
    """
    if place.is_dir():
        yield place
        return
    if not place.is_file():
        raise ReleaseError(f"{place} does not exist: name a bundle's folder or its .tar.gz")
    with tempfile.TemporaryDirectory(prefix="duplex-bench-release-") as folder:
        yield _unpacked(place, Path(folder))


def _unpacked(place: Path, into: Path) -> Path:
    tops: set[str] = set()
    allowance = Allowance(place)
    try:
        with tarfile.open(place, "r:gz") as tar:
            for member in tar:
                path = PurePosixPath(member.name)
                if member.isdir():
                    continue
                if not member.isfile() or path.is_absolute() or ".." in path.parts or len(path.parts) < 2:
                    raise ReleaseError(
                        f"{place}: member {member.name!r} is no plain file inside the bundle: do not use this archive, "
                        "fetch it from where it was published"
                    )
                allowance.take(member.size)
                tops.add(path.parts[0])
                stream = tar.extractfile(member)
                target = into / path
                target.parent.mkdir(parents=True, exist_ok=True)
                if stream is not None:
                    with target.open("wb") as written:
                        shutil.copyfileobj(stream, written)
    except ArchiveBombError as error:
        raise ReleaseError(str(error)) from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ReleaseError(f"{place} is no readable archive ({error}): fetch it again") from error
    if len(tops) != 1:
        raise ReleaseError(f"{place} holds {len(tops)} folders where a bundle is one: fetch it again")
    return into / tops.pop()
