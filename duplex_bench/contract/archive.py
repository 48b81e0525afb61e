"""Sources packed into a zip for an import path: how our code gets into an environment that has none of our packages."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.resources.abc import Traversable

_ZIP_TIME = (1980, 1, 1, 0, 0, 0)


def sources_archive(cache_folder: Path, folders: Sequence[str] = ("contract",)) -> Path:
    """A zip of ``duplex_bench/__init__.py`` and the modules directly in ``folders``, named by its content.

    Args:
        cache_folder: where it is kept; written once, whole or not at all.
        folders: inside ``duplex_bench``, such as ``speech/workers``; their parents' ``__init__.py`` come with them.

    Returns:
        Its absolute path, for ``PYTHONPATH``.
    """
    package = files("duplex_bench")
    sources = {"duplex_bench/__init__.py": package.joinpath("__init__.py").read_bytes()}
    for folder in folders:
        inside = package
        parts = folder.split("/")
        for depth, part in enumerate(parts, start=1):
            inside = inside.joinpath(part)
            prefix = "/".join(("duplex_bench", *parts[:depth]))
            sources[f"{prefix}/__init__.py"] = inside.joinpath("__init__.py").read_bytes()
        sources |= {f"{prefix}/{entry.name}": entry.read_bytes() for entry in _modules(inside)}
    return _archived(cache_folder, f"sources-{folders[-1].replace('/', '-')}", sources)


def package_archive(cache_folder: Path, package: str) -> Path:
    """A zip of the modules directly in an installed ``package``, named by its content; its absolute path."""
    return _archived(
        cache_folder, f"package-{package}", {f"{package}/{e.name}": e.read_bytes() for e in _modules(files(package))}
    )


def _archived(cache_folder: Path, label: str, sources: dict[str, bytes]) -> Path:
    digest = hashlib.sha256(b"".join(name.encode() + b"\0" + data for name, data in sorted(sources.items())))
    target = cache_folder / f"{label}-{digest.hexdigest()[:16]}.zip"
    if not target.exists():
        _write_whole(target, sources)
    return target.absolute()


def _modules(folder: Traversable) -> list[Traversable]:
    return sorted((entry for entry in folder.iterdir() if entry.name.endswith(".py")), key=lambda entry: entry.name)


def _write_whole(target: Path, sources: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(sources.items()):
            archive.writestr(zipfile.ZipInfo(name, _ZIP_TIME), data)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".tmp-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(buffer.getvalue())
        Path(temporary).replace(target)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
