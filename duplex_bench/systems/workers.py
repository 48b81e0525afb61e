"""A system in a worker process: started, watched, ended, started again. How it ended is said in the error.

Four things go wrong with a model under another interpreter, and none of them may stop a batch: it dies, it hangs, it
floods its output, it runs out of memory. Each becomes a ``TransportError`` of the session it happened in, with what the
worker said last; the next session starts another worker.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from duplex_bench.contract.client import RemoteSession, RemoteSystem, Timeouts
from duplex_bench.contract.types import RemoteSystemError, Spec, TransportError
from duplex_bench.systems.worker_output import WorkerOutput

START_TIMEOUT_S: Final = 600.0
_POLL_S: Final = 0.02
_END_WAIT_S: Final = 5.0
_LOST_WAIT_S: Final = 30.0
"""For the end of a worker that is about to: it was asked to, or its connection is lost (ours)."""
_MODULE: Final = "duplex_bench.contract.worker"


class SystemStartError(ValueError):
    """A system could not be made; the message names its adapter or interpreter and what to do."""


@dataclass(frozen=True, slots=True)
class LaunchContext:
    """What a launch adds to a worker: variables, and folders or zips of its import path."""

    variables: Mapping[str, str] = field(default_factory=dict)
    python_path: tuple[str, ...] = ()


# Entered before a worker starts and left after it ended: a Dagster Pipes session inside a run, nothing outside.
Launch = Callable[[str], AbstractContextManager[LaunchContext]]


@contextlib.contextmanager
def plain_launch(name: str) -> Iterator[LaunchContext]:
    """A plain subprocess."""
    del name
    yield LaunchContext()


@dataclass(frozen=True, slots=True)
class WorkerCommand:
    """How a worker is started: ``command`` ends in a Python, which gets ``python_path`` before its own import path.

    In its words ``{socket_folder}`` stands for the folder of the worker's socket, ``{python_path}`` for the whole
    import path, and the word ``{mounts}`` for ``--volume`` options that show a container every entry of that path.
    Messages call it ``title`` (the command by default), and name ``key`` as what to correct in the card.
    """

    command: tuple[str, ...]
    python_path: tuple[str, ...]
    adapter: str
    settings: str
    memory_limit_bytes: int | None = None
    title: str = ""
    key: str = "environment.interpreter"

    @property
    def interpreter(self) -> str:
        """What is started, as messages name it."""
        return self.title or " ".join(self.command)

    def words(self, socket_path: Path, launch: LaunchContext) -> list[str]:
        """The whole command line."""
        path = os.pathsep.join((*self.python_path, *launch.python_path))
        words: list[str] = []
        for word in self.command:
            if word == "{mounts}":
                for entry in (*self.python_path, *launch.python_path):
                    words += ["--volume", f"{entry}:{entry}:ro"]
            else:
                words.append(word.replace("{socket_folder}", str(socket_path.parent)).replace("{python_path}", path))
        words += ["-m", _MODULE, "--factory", self.adapter, "--settings", self.settings, "--socket", str(socket_path)]
        if self.memory_limit_bytes is not None:
            words += ["--memory-limit-bytes", str(self.memory_limit_bytes)]
        return words


class WorkerSystem:
    """A system in a worker process that is started again if it was lost. Close it, or use it in a ``with``.

    The worker ends with this process, however this process ends: it watches a pipe that only we hold open.
    """

    def __init__(
        self,
        command: WorkerCommand,
        timeouts: Timeouts | None = None,
        start_timeout_s: float = START_TIMEOUT_S,
        launch: Launch = plain_launch,
    ) -> None:
        """Start the worker and wait until it serves.

        Raises:
            SystemStartError: No such interpreter, the adapter failed, or it took too long.
        """
        self.command = command
        self.timeouts = timeouts or Timeouts()
        self.start_timeout_s = start_timeout_s
        self._launch = launch
        self._folder = tempfile.mkdtemp(prefix="duplex-")
        self._process: subprocess.Popen[bytes] | None = None
        self._output: WorkerOutput | None = None
        self._launched = contextlib.ExitStack()
        self.starts = 0
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
        self.starts += 1
        # The path of a Unix socket holds about 100 bytes, so it lies in the temporary folder, not beside the card.
        address = Path(self._folder) / f"{self.starts}.sock"
        command = self.command
        launch = self._launched.enter_context(self._launch(f"{command.adapter} #{self.starts}"))
        path = os.pathsep.join((*command.python_path, *launch.python_path))
        try:
            self._process = subprocess.Popen(
                command.words(address, launch),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**_environment(), **launch.variables, "PYTHONPATH": path},
            )
        except OSError as error:
            self._launched.close()
            raise SystemStartError(
                f"{command.key} {command.interpreter!r} cannot be started ({error.strerror}): install or make it, or "
                f"correct {command.key} in the card"
            ) from error
        self._output = WorkerOutput(self._process.stderr)
        self._wait_until_served(address)
        try:
            return RemoteSystem(address, self.timeouts, self._last_words)
        except TransportError as error:
            raise SystemStartError(f"the worker of {command.adapter} was lost at its start: {error}") from error
        except (RemoteSystemError, ValueError) as error:
            told = f"the worker of {command.adapter} under {command.interpreter} did not tell its spec: {error}"
            raise SystemStartError(told) from error

    def _wait_until_served(self, address: Path) -> None:
        process = self._process
        deadline = time.monotonic() + self.start_timeout_s
        while process is not None and not address.exists():
            try:
                process.wait(timeout=_POLL_S)
            except subprocess.TimeoutExpired:
                if time.monotonic() > deadline:
                    raise SystemStartError(
                        f"the worker of {self.command.adapter} did not serve within {self.start_timeout_s:.0f} s: "
                        f"raise environment.start_timeout_s, or see why it loads so slowly. {self._tail()}"
                    ) from None
                continue
            raise SystemStartError(
                f"the worker of {self.command.adapter} under {self.command.interpreter} {self._last_words()}"
            )

    def _last_words(self) -> str:
        """How the worker ended, and what it said last; waits a moment for its end."""
        process = self._process
        if process is None:
            return "is gone"
        try:
            status = process.wait(timeout=_LOST_WAIT_S)
        except subprocess.TimeoutExpired:
            return f"still runs. {self._tail()}"
        if status == -signal.SIGKILL:
            return (
                "was killed (signal 9), as the system does when memory runs out: give it more memory, a smaller model, "
                f"or set environment.memory_limit_gb to be told where. {self._tail(ended=True)}"
            )
        how = f"was ended by signal {-status}" if status < 0 else f"ended with status {status}"
        return f"{how}: {self._tail(ended=True)}"

    def _tail(self, ended: bool = False) -> str:
        return "it said nothing" if self._output is None else self._output.tail(ended)

    def _end_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            self._end(process)
        if self._output is not None:
            self._output.close()
            self._output = None
        self._launched.close()

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        if hasattr(self, "_remote"):
            # Asked first, so that it can say what it did; one that hangs, or was lost, is not waited for.
            if self._remote.is_connected and process.poll() is None:
                self._remote.shutdown()
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=_LOST_WAIT_S)
            self._remote.disconnect()
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.wait(timeout=_END_WAIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _environment() -> dict[str, str]:
    # Keys of providers are no business of a local system's code.
    secret = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(secret)}
    kept.pop("PYTHONHOME", None)
    return {**kept, "PYTHONUNBUFFERED": "1"}
