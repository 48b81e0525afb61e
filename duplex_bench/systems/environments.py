"""Opens the system that a card describes: in this process, or in a worker under another interpreter.

A foreign environment needs numpy alone: ``duplex_bench/__init__.py`` and ``duplex_bench/contract`` are put into a zip
file, and that file on the worker's import path.
"""

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, Self

from duplex_bench.contract.archive import sources_archive
from duplex_bench.contract.client import RemoteSession, RemoteSystem, Timeouts
from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import SYSTEM_ERRORS, Spec, System, TransportError
from duplex_bench.contract.worker import load_factory
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.systems.card import SystemCard

CACHE_FOLDER: Final = Path(".cache/duplex_bench")
START_TIMEOUT_S: Final = 600.0
_POLL_S: Final = 0.02


class SystemStartError(ValueError):
    """A system could not be made; the message names its adapter or interpreter and what to do."""


def contract_archive(cache_folder: Path = CACHE_FOLDER) -> Path:
    """The zip of the contract's sources, named by its content; written once, whole or not at all."""
    return sources_archive(cache_folder)


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How a worker is started: ``interpreter`` with ``python_path`` before its own import path."""

    interpreter: str
    python_path: tuple[str, ...]
    adapter: str
    settings: str


class WorkerSystem:
    """A system in a worker process that is started again if it was lost. Close it, or use it in a ``with``.

    The worker ends with this process, however this process ends: it watches a pipe that only we hold open.
    """

    def __init__(
        self, command: WorkerCommand, timeouts: Timeouts | None = None, start_timeout_s: float = START_TIMEOUT_S
    ) -> None:
        """Start the worker and wait until it serves.

        Raises:
            SystemStartError: No such interpreter, the adapter failed, or it took too long.
        """
        self.command = command
        self.timeouts = timeouts or Timeouts()
        self.start_timeout_s = start_timeout_s
        self._folder = tempfile.mkdtemp(prefix="duplex-")
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        try:
            self._remote = self._start()
        except BaseException:
            self.close()
            raise

    @property
    def spec(self) -> Spec:
        """The spec that the worker's system reported."""
        return self._remote.spec

    @property
    def worker_pid(self) -> int:
        """Process id of the worker."""
        return self._remote.worker_pid

    def new_session(self) -> RemoteSession:
        """A session in the worker, which is started again if it died or hung.

        Raises:
            TransportError: It could not be started again.
        """
        if self._process is None or self._process.poll() is not None or not self._remote.is_connected:
            self._end_process()
            try:
                self._remote = self._start()
            except SystemStartError as error:
                raise TransportError(str(error)) from error
        return self._remote.new_session()

    def close(self) -> None:
        """End the worker and remove its socket."""
        self._end_process()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _start(self) -> RemoteSystem:
        self._starts += 1
        # The path of a Unix socket holds about 100 bytes, so it lies in the temporary folder, not beside the card.
        address = Path(self._folder) / f"{self._starts}.sock"
        command = self.command
        arguments = [
            command.interpreter, "-m", "duplex_bench.contract.worker", "--factory", command.adapter,
            "--settings", command.settings, "--socket", str(address),
        ]  # fmt: skip
        with tempfile.TemporaryFile() as errors:
            try:
                self._process = subprocess.Popen(
                    arguments,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    env=_environment(command.python_path),
                )
            except OSError as error:
                raise SystemStartError(
                    f"interpreter {command.interpreter!r} cannot be started ({error.strerror}): make its environment, "
                    "or correct the card's environment.interpreter"
                ) from error
            self._wait_until_served(address, errors)
        try:
            return RemoteSystem(address, self.timeouts)
        except TransportError as error:
            raise SystemStartError(f"the worker of {command.adapter} was lost at its start: {error}") from error

    def _wait_until_served(self, address: Path, errors: IO[bytes]) -> None:
        process = self._process
        deadline = time.monotonic() + self.start_timeout_s
        while process is not None and not address.exists():
            try:
                process.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise SystemStartError(
                        f"the worker of {self.command.adapter} did not serve within {self.start_timeout_s:.0f} s"
                    ) from None
                continue
            errors.seek(0)
            said = errors.read()[-4000:].decode(errors="replace").strip()
            raise SystemStartError(
                f"the worker of {self.command.adapter} under {self.command.interpreter} ended with status "
                f"{process.returncode}: {said or 'it said nothing'}"
            )

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if hasattr(self, "_remote"):
            self._remote.disconnect()
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=5.0)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment(python_path: tuple[str, ...]) -> dict[str, str]:
    # Keys of providers are no business of a local system's code.
    secret = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(secret)}
    return {**kept, "PYTHONPATH": os.pathsep.join(python_path), "PYTHONUNBUFFERED": "1"}


@contextlib.contextmanager
def open_system(
    card: SystemCard,
    *,
    store: ObjectStore | None = None,
    cache_folder: Path = CACHE_FOLDER,
    timeouts: Timeouts | None = None,
) -> Iterator[System | PushSystem]:
    """The system of ``card``, ready for sessions; a worker ends with the ``with`` block.

    Args:
        card: With its paths resolved (``card.resolved``).
        store: Cache of engines, for cards that use one.
        cache_folder: Where the contract's archive is kept.
        timeouts: Of a worker's answers.

    Raises:
        SystemStartError: The system could not be made; names the card and says why.
    """
    if card.environment.kind == "none":
        try:
            factory = load_factory(card.adapter)
            settings = dict(card.settings)
            system = factory(settings, store=store) if card.uses_cache else factory(settings)
        except SYSTEM_ERRORS as error:
            raise SystemStartError(f"system {card.name}: {card.adapter}: {type(error).__name__}: {error}") from error
        yield system
        return
    command = WorkerCommand(
        interpreter=card.environment.interpreter or "",
        python_path=(str(contract_archive(cache_folder)), *card.environment.python_path),
        adapter=card.adapter,
        settings=json.dumps(card.settings),
    )
    try:
        worker = WorkerSystem(command, timeouts)
    except SystemStartError as error:
        raise SystemStartError(f"system {card.name}: {error}") from error
    with worker:
        yield worker
