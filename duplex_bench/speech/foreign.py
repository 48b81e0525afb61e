"""An engine that runs under another interpreter: started when first asked, asked over a socket pair, ended with us."""

import json
import os
import socket
import subprocess
import tempfile
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from duplex_bench.contract import codec
from duplex_bench.contract.archive import sources_archive
from duplex_bench.contract.types import TransportError
from duplex_bench.speech.interfaces import Samples
from duplex_bench.speech.model_cache import model_cache_folder

_SECRETS = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD")
_END_WAIT_S = 5.0
_LOST_WAIT_S = 30.0
"""For the end of a worker whose connection is lost: a crash may take its time (ours)."""


class ForeignEngineError(ValueError):
    """An engine in another environment could not be started, was lost, or refused; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a worker may take to load its model, and to answer one request (ours)."""

    start_s: float = 900.0
    answer_s: float = 900.0


class ForeignEngine:
    """One worker process, made when first asked and again after it was lost. Close it, or let it be collected.

    The worker holds one end of a socket pair and of its standard input; it ends when this process does, however
    that ends. Requests of several threads take turns.
    """

    def __init__(
        self,
        interpreter: str,
        module: str,
        settings: Mapping[str, Any],
        timeouts: Timeouts | None = None,
        python_path: tuple[str, ...] = (),
    ) -> None:
        """Remember how the worker is started.

        Args:
            interpreter: path of the other environment's Python.
            module: what to run: calls ``workers.serving.serve``.
            settings: handed to it as JSON.
            timeouts: for loading and answering.
            python_path: folders added to its import path.
        """
        self.interpreter = interpreter
        self.module = module
        self.settings = dict(settings)
        self.timeouts = timeouts or Timeouts()
        self._python_path = python_path
        self._lock = threading.Lock()
        self._running: _Running | None = None

    def request(
        self, header: Mapping[str, Any], arrays: Sequence[Samples] = ()
    ) -> tuple[dict[str, Any], list[Samples]]:
        """One request and its answer.

        Args:
            header: with ``kind``; plain JSON values.
            arrays: float32, each (n,).

        Returns:
            The answer's header and arrays.

        Raises:
            ForeignEngineError: no such interpreter, the model cannot be loaded, the worker is lost or too slow (it is
                ended, the next request starts another), or the engine refused.
        """
        with self._lock:
            running = self._running or self._start()
            try:
                running.connection.settimeout(self.timeouts.answer_s)
                codec.send(running.connection, dict(header), list(arrays))
                reply, out = codec.receive(running.connection)
            except TimeoutError as error:
                self._end()
                raise ForeignEngineError(
                    f"{self.module} did not answer within {self.timeouts.answer_s:g} s: raise answer_timeout_s"
                ) from error
            except (TransportError, OSError) as error:
                told = running.last_words()
                self._end()
                raise ForeignEngineError(f"{self.module} was lost: {told or error}") from error
            except codec.CodecError as error:
                self._end()
                raise ForeignEngineError(f"{self.module} answered what is no message: {error}") from error
        if reply.get("kind") == "error":
            raise ForeignEngineError(f"{self.module}: {reply.get('type')}: {reply.get('message')}")
        return reply, out

    def close(self) -> None:
        """End the worker, if there is one."""
        with self._lock:
            self._end()

    @property
    def worker_pid(self) -> int | None:
        """Process id of the running worker."""
        return None if self._running is None else self._running.process.pid

    def _start(self) -> "_Running":
        ours, theirs = socket.socketpair()
        archive = sources_archive(model_cache_folder().parent / "workers", ("contract", "speech/workers"))
        errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the worker)
        with theirs:
            try:
                process = subprocess.Popen(
                    [
                        self.interpreter, "-m", self.module,
                        "--fd", str(theirs.fileno()), "--settings", json.dumps(self.settings),
                    ],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=errors,
                    pass_fds=(theirs.fileno(),),
                    env=_environment((str(archive), *self._python_path)),
                )  # fmt: skip
            except OSError as error:
                ours.close()
                errors.close()
                raise ForeignEngineError(
                    f"interpreter {self.interpreter!r} cannot be started ({error.strerror}): make its environment "
                    "(docs/qwen.md), or correct `interpreter` in the engine's settings"
                ) from error
        running = _Running(process, ours, errors)
        self._running = running
        # A forgotten engine must not leave a model in memory.
        self._finalizer = weakref.finalize(self, running.end)
        self._wait_until_ready(running)
        return running

    def _wait_until_ready(self, running: "_Running") -> None:
        deadline_s = time.monotonic() + self.timeouts.start_s
        try:
            running.connection.settimeout(max(0.001, deadline_s - time.monotonic()))
            reply, _ = codec.receive(running.connection)
        except TimeoutError as error:
            self._end()
            raise ForeignEngineError(
                f"{self.module} was not ready within {self.timeouts.start_s:g} s: raise start_timeout_s"
            ) from error
        except (TransportError, OSError, codec.CodecError) as error:
            told = running.last_words()
            self._end()
            raise ForeignEngineError(
                f"{self.module} under {self.interpreter} did not start: {told or error}"
            ) from error
        if reply.get("kind") == "error":
            self._end()
            raise ForeignEngineError(
                f"{self.module} under {self.interpreter} did not start: {reply.get('type')}: {reply.get('message')}"
            )

    def _end(self) -> None:
        if self._running is not None:
            self._finalizer.detach()
            self._running.end()
            self._running = None


class _Running:
    """A worker process with our ends of its socket, its standard input and its standard error."""

    def __init__(self, process: "subprocess.Popen[bytes]", connection: socket.socket, errors: Any) -> None:
        self.process = process
        self.connection = connection
        self._errors = errors

    def last_words(self) -> str:
        """What the worker wrote last, once it has ended."""
        try:
            self.process.wait(timeout=_LOST_WAIT_S)
        except subprocess.TimeoutExpired:
            return ""
        self._errors.seek(0)
        said = self._errors.read()[-4000:].decode(errors="replace").strip()
        return f"it ended with status {self.process.returncode}: {said or 'it said nothing'}"

    def end(self) -> None:
        """Close our ends and wait; a worker that goes on is killed."""
        self.connection.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        try:
            self.process.wait(timeout=_END_WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._errors.close()


def _environment(python_path: tuple[str, ...]) -> dict[str, str]:
    # Keys of providers are no business of a local engine; its own packages must not mix with ours.
    kept = {name: value for name, value in os.environ.items() if not name.upper().endswith(_SECRETS)}
    return {**kept, "PYTHONPATH": os.pathsep.join(python_path), "PYTHONUNBUFFERED": "1", "HF_HUB_OFFLINE": "1"}
