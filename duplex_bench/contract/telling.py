"""What a worker tells the Dagster run that started it, over Dagster Pipes; outside of a run it tells nobody.

``dagster_pipes`` is one package without dependencies: the launcher puts it on the worker's import path.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duplex_bench.contract.types import SessionStats

_STARTED_BY_PIPES = "DAGSTER_PIPES_MESSAGES"
# Each message is a row in the run's database: failures past this number are counted, not told one by one.
_MOST_LINES = 20


@dataclass
class Counts:
    """What a worker did: sessions closed, units stepped, steps without output, requests that failed."""

    sessions: int = 0
    units: int = 0
    empty_steps: int = 0
    failures: int = 0


class Told:
    """Counts, and says what matters; ``pipes`` is a Pipes context, or None."""

    def __init__(self, pipes: Any = None) -> None:
        self._pipes = pipes
        self._warned: set[str] = set()
        self.counts = Counts()

    def started(self, factory: str) -> None:
        """The system was made."""
        self._say("info", f"worker {os.getpid()} serves {factory}")

    def closed(self, stats: SessionStats) -> None:
        """A session ended."""
        self.counts.sessions += 1
        self.counts.units += stats.units
        self.counts.empty_steps += stats.empty_steps
        for warning in stats.warnings:
            if warning not in self._warned and len(self._warned) < _MOST_LINES:
                self._warned.add(warning)
                self._say("warning", warning)

    def failed(self, error: BaseException) -> None:
        """Loading, or a request, failed."""
        self.counts.failures += 1
        if self.counts.failures <= _MOST_LINES:
            self._say("error", f"{type(error).__name__}: {error}")

    def ended(self) -> None:
        """The worker ends as it was asked to."""
        if self._pipes is not None:
            self._pipes.report_custom_message({"worker": os.getpid(), **asdict(self.counts)})

    def _say(self, level: str, text: str) -> None:
        if self._pipes is not None:
            getattr(self._pipes.log, level)(text)


@contextlib.contextmanager
def telling() -> Iterator[Told]:
    """Tell the run that started this process, if one did and ``dagster_pipes`` is there."""
    pipes = _module() if os.environ.get(_STARTED_BY_PIPES) else None
    if pipes is None:
        yield Told()
        return
    with pipes.open_dagster_pipes() as context:
        told = Told(context)
        yield told
        told.ended()


def _module() -> Any:
    try:
        return importlib.import_module("dagster_pipes")
    except ImportError:
        return None
