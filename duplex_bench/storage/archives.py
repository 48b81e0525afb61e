"""How much may come out of an archive from outside: a file of a few kilobytes can hold a disk full of zeros."""

from pathlib import Path
from typing import Final

# Both ours. Audio, Parquet and JSON of a real bundle come out at most about tenfold.
MOST_TIMES: Final = 100
ALWAYS_BYTES: Final = 256 * 1024**2


class ArchiveBombError(ValueError):
    """More would come out of an archive than any honest one holds."""


class Allowance:
    """What may still come out of one archive; ask before each member is read."""

    def __init__(self, archive: Path, most_times: int = MOST_TIMES, always_bytes: int = ALWAYS_BYTES) -> None:
        self._archive = archive
        self._left = max(always_bytes, most_times * archive.stat().st_size)

    def take(self, n_bytes: int) -> None:
        """Take a member's bytes.

        Raises:
            ArchiveBombError: it is more than is left.
        """
        self._left -= n_bytes
        if self._left < 0:
            raise ArchiveBombError(
                f"{self._archive} unpacks to more than {MOST_TIMES} times its size: do not use this archive"
            )
