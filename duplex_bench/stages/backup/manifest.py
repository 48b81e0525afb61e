"""What a backup holds: every file with size and SHA-256, and the versions that wrote it."""

import json
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Final

from duplex_bench import __version__
from duplex_bench.storage.digests import digest_file
from duplex_bench.storage.object_store import checked_key

NAME: Final = "manifest.json"
FORMAT: Final = 1


class BackupError(ValueError):
    """A backup cannot be made, is not whole, or must not be put back here; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Kept:
    """One file of a backup."""

    size: int
    sha256: str


@dataclass(slots=True)
class Manifest:
    """All files by their path in the backup, and what wrote them. ``databases`` names each one's kind."""

    files: dict[str, Kept] = field(default_factory=dict)
    databases: dict[str, str] = field(default_factory=dict)
    version: str = __version__
    dagster: str = field(default_factory=lambda: metadata.version("dagster"))
    made_at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    format: int = FORMAT


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it, whole or not at all: a backup without one is none."""
    temporary = folder / f".{NAME}.writing"
    temporary.write_text(json.dumps(asdict(manifest), indent=1, sort_keys=True), "utf-8")
    temporary.replace(folder / NAME)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a backup; names in it are only trusted so far as they stay inside.

    Raises:
        BackupError: there is none, it is damaged, of a later format, or names a path outside.
    """
    try:
        told = json.loads((folder / NAME).read_text("utf-8"))
        files = {str(name): Kept(int(one["size"]), str(one["sha256"])) for name, one in told.pop("files").items()}
        manifest = Manifest(files=files, **told)
    except FileNotFoundError:
        raise BackupError(f"{folder} is no backup (no {NAME}), or one that was broken off: make it again") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BackupError(f"{folder / NAME} cannot be read: {error}") from error
    if manifest.format > FORMAT:
        raise BackupError(f"{folder} was made by duplex_bench {manifest.version}: restore it with that or a later one")
    for name in manifest.files:
        try:
            checked_key(name)
        except ValueError as error:
            raise BackupError(f"{folder}: {error}: do not use this backup") from error
    return manifest


def damaged(folder: Path, manifest: Manifest) -> list[str]:
    """Files of the manifest that lack, are links, or are not what was written."""
    return [name for name, kept in manifest.files.items() if not _whole(folder / PurePosixPath(name), kept)]


def _whole(path: Path, kept: Kept) -> bool:
    if path.is_symlink() or not path.is_file() or path.stat().st_size != kept.size:
        return False
    return digest_file(path) == kept.sha256
