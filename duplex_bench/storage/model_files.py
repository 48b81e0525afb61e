"""Model files inside installed packages: found without importing the package, refused unless their hash is right."""

import importlib.util
from functools import cache
from pathlib import Path

from duplex_bench.storage.digests import digest_file


class ModelFileError(ValueError):
    """A model file is missing or is not the file this version was made for; the message says what to do."""


def package_folder(module: str) -> Path:
    """The folder of an installed package, without importing it (importing would run its code and pull torch).

    Raises:
        ModelFileError: the package is not installed.
    """
    spec = importlib.util.find_spec(module)
    if spec is None:
        raise ModelFileError(f"package {module!r} is not installed: run `make setup`, then `duplex-bench doctor`")
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    if spec.origin is None:
        raise ModelFileError(f"package {module!r} has no folder on disk: run `make setup`")
    return Path(spec.origin).parent


@cache
def verified_file(module: str, relative: str, sha256: str) -> Path:
    """Path of ``relative`` inside package ``module``, checked against ``sha256`` once per process.

    Raises:
        ModelFileError: file missing, or of another hash.
    """
    path = package_folder(module) / relative
    if not path.is_file():
        raise ModelFileError(f"{path} is missing: reinstall package {module!r} with `make setup`")
    found = digest_file(path)
    if found != sha256:
        raise ModelFileError(
            f"{path} has sha256 {found}, expected {sha256}: the package was changed, reinstall it with `make setup`"
        )
    return path
