"""Where an artifact comes from: code, lock, profile, machine."""

import platform
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from duplex_bench import __version__
from duplex_bench.storage.digests import digest_bytes, digest_file

_TOLD_PACKAGES = ("numpy", "polars", "onnxruntime", "ctranslate2", "faster-whisper", "pocketsphinx", "dagster")


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made an artifact. ``commit`` is empty outside a checkout; ``dirty`` is the digest of uncommitted changes."""

    version: str
    commit: str
    dirty: str
    lock: str
    profile: str
    profile_digest: str
    python: str
    platform: str
    packages: dict[str, str]


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip()


@cache
def of_code() -> tuple[str, str, str]:
    """Commit, digest of uncommitted changes, and digest of the lock file of the checkout this package runs from."""
    root = Path(__file__).resolve().parents[2]
    if not (root / "pyproject.toml").is_file():
        return "", "", ""
    difference = _git(root, "diff", "HEAD")
    lock = root / "requirements" / "dev.lock"
    return (
        _git(root, "rev-parse", "HEAD"),
        digest_bytes(difference.encode()) if difference else "",
        digest_file(lock) if lock.is_file() else "",
    )


def provenance(profile: str, profile_digest: str) -> Provenance:
    """Provenance of what is made now, in this process, under a profile."""
    commit, dirty, lock = of_code()
    return Provenance(
        version=__version__,
        commit=commit,
        dirty=dirty,
        lock=lock,
        profile=profile,
        profile_digest=profile_digest,
        python=sys.version.split()[0],
        platform=f"{platform.system()} {platform.machine()}",
        packages={name: metadata.version(name) for name in _TOLD_PACKAGES},
    )
