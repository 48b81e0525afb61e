"""A bundle as one file: packed the same bytes each time, and unpacked without trusting a name in it."""

import gzip
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from duplex_bench.stages.release.contents import ReleaseError
from duplex_bench.storage.archives import Allowance, ArchiveBombError


def pack(folder: Path) -> Path:
    """``<folder>.tar.gz`` with everything below one folder of the same name; it takes the place of an earlier one."""
    archive = folder.with_name(f"{folder.name}.tar.gz")
    temporary = archive.with_name(f".{archive.name}.writing")
    with (
        temporary.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w|") as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                tar.add(path, f"{folder.name}/{path.relative_to(folder).as_posix()}", filter=_anonymous)
    temporary.replace(archive)
    return archive


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    member.mtime = 0
    member.mode = 0o644
    return member


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
    except (tarfile.TarError, EOFError, gzip.BadGzipFile) as error:
        raise ReleaseError(f"{place} is no readable archive ({error}): fetch it again") from error
    if len(tops) != 1:
        raise ReleaseError(f"{place} holds {len(tops)} folders where a bundle is one: fetch it again")
    return into / tops.pop()
