"""Memory and processor time of a process and all its descendants, from /proc."""

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


def tree(root: int) -> list[int]:
    """The process ids of ``root`` and of all below it that live now."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                parents[int(entry.name)] = int(fields[1])
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting += [child for child, parent in parents.items() if parent == process]
    return found


def cpu_s(root: int) -> float:
    """Processor seconds of a process, of its living descendants, and of those that they have waited for."""
    return sum(sum(int(n) for n in fields[11:15]) for process in tree(root) if (fields := _stat(process))) / (
        _TICKS_A_SECOND
    )


def pss_bytes(root: int) -> int:
    """Proportional set size of a process tree: a page that several share counts once."""
    total = 0
    for process in tree(root):
        try:
            lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        total += sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    return total


def _stat(process: int) -> list[str]:
    """Fields of /proc/PID/stat from the third on; empty where the process has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


@dataclass
class Peak:
    """The highest memory that was seen, overall and since the last ``lap``."""

    bytes: int = 0
    _lap: int = 0

    def seen(self, now: int) -> None:
        """Note one look."""
        self.bytes, self._lap = max(self.bytes, now), max(self._lap, now)

    def lap(self) -> int:
        """The highest since the last call."""
        found, self._lap = self._lap, 0
        return found


@contextmanager
def watched(root: int, every_s: float = 0.5) -> Iterator[Peak]:
    """Look at the memory of a process tree until the block ends."""
    peak = Peak()
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(every_s):
            peak.seen(pss_bytes(root))

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield peak
    finally:
        ended.set()
        thread.join()
        peak.seen(pss_bytes(root))
