"""Workers of systems as Dagster Pipes processes: what they say is in the run's log, what they counted on its asset."""

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import dagster as dg

from duplex_bench.contract.archive import package_archive
from duplex_bench.systems.workers import LaunchContext

COUNTED: Final = ("sessions", "units", "empty_steps", "failures")


class PipesLaunch:
    """A ``systems.workers.Launch`` inside a run: each worker has a Pipes session as long as it lives.

    The worker gets ``dagster_pipes`` with our sources, as a zip on its import path: its environment need not have it.
    A worker that was killed leaves no counts, and a warning of Dagster's that its last message is missing.

    Args:
        context: Of the asset that runs the system.
        cache_folder: Where the zip is kept.
    """

    def __init__(self, context: dg.AssetExecutionContext, cache_folder: Path) -> None:
        self._context = context
        self._cache_folder = cache_folder
        self._lock = threading.Lock()
        self._started = 0
        self._counts = dict.fromkeys(COUNTED, 0)

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[LaunchContext]:
        """The variables of one worker's session."""
        with self._lock:
            self._started += 1
        with dg.open_pipes_session(
            self._context,
            context_injector=dg.PipesEnvContextInjector(),
            message_reader=dg.PipesTempFileMessageReader(),
            extras={"worker": name},
        ) as session:
            archive = package_archive(self._cache_folder, "dagster_pipes")
            yield LaunchContext(session.get_bootstrap_env_vars(), (str(archive),))
        with self._lock:
            for message in session.get_custom_messages():
                for counted in COUNTED:
                    self._counts[counted] += message.get(counted, 0)

    def counts(self) -> dict[str, int]:
        """Of all workers that ended: how many were started, and what they did; empty if none was."""
        with self._lock:
            if not self._started:
                return {}
            return {"workers_started": self._started, **{f"worker_{name}": n for name, n in self._counts.items()}}
