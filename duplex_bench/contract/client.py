"""A system that runs in a worker, seen from here: the same contract, over the socket."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duplex_bench.contract import codec, messages
from duplex_bench.contract.types import (
    InvalidOutputError,
    OpenRequest,
    Out,
    RemoteSystemError,
    SessionStats,
    Spec,
    TransportError,
    UnsupportedError,
    checked_unit,
    refuse_unsupported,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import numpy as np
    import numpy.typing as npt

    Samples = npt.NDArray[np.float32]


_ANSWERS = {"hello": "spec", "open": "opened", "step": "outs", "close": "closed", "shutdown": "bye"}


@dataclass(frozen=True)
class Timeouts:
    """How long a worker may take to answer before it counts as dead (all ours)."""

    connect_s: float = 10.0
    open_s: float = 600.0
    step_s: float = 120.0


def _field(reply: dict[str, Any], name: str) -> Any:
    if name not in reply:
        raise codec.CodecError(f"the answer {reply.get('kind')!r} has no {name!r}: it has {sorted(reply)}")
    return reply[name]


class RemoteSystem:
    """Implements ``System`` over a worker's Unix socket. One session at a time, as the worker."""

    def __init__(
        self, path: Path | str, timeouts: Timeouts | None = None, last_words: Callable[[], str] | None = None
    ) -> None:
        """Connect to the worker on the Unix socket ``path`` and ask for its spec.

        Args:
            path: of its socket.
            timeouts: of its answers.
            last_words: asked when it is lost: how it ended, for the message.

        Raises:
            TransportError: Nobody serves there, or not in time.
        """
        self.path = str(path)
        self.timeouts = timeouts or Timeouts()
        self._last_words = last_words
        self._connection: socket.socket | None = None
        self.connections = 0
        reply, _ = self.request({"kind": "hello"}, (), self.timeouts.open_s)
        self._spec = messages.unpack_spec(_field(reply, "spec"))
        self.worker_pid = int(_field(reply, "pid"))

    @property
    def spec(self) -> Spec:
        """The spec that the worker's system reports."""
        return self._spec

    def new_session(self) -> RemoteSession:
        """A session in the worker; opening it ends one that was left open."""
        return RemoteSession(self)

    def shutdown(self) -> None:
        """Ask the worker to end; no error if it is gone already."""
        try:
            self.request({"kind": "shutdown"}, (), self.timeouts.connect_s)
        except (TransportError, RemoteSystemError):
            pass
        finally:
            self.disconnect()

    @property
    def is_connected(self) -> bool:
        """False after the worker was lost or did not answer in time."""
        return self._connection is not None

    def disconnect(self) -> None:
        """Close the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def request(
        self, header: dict[str, Any], arrays: list[Samples] | tuple[Samples, ...], timeout_s: float
    ) -> tuple[dict[str, Any], list[Samples]]:
        """One message and its answer.

        Raises:
            TransportError: The worker is gone, or does not answer in time.
            UnsupportedError, RemoteSystemError: What the system raised.
            InvalidOutputError: It gave back what the contract rules out.
            CodecError: The answer is none of this contract.
        """
        try:
            connection = self._connected()
            connection.settimeout(timeout_s)
            codec.send(connection, header, arrays)
            reply, out_arrays = codec.receive(connection)
        except TimeoutError as error:
            # What comes later would answer an older question.
            self.disconnect()
            raise TransportError(
                f"the worker did not answer {header['kind']!r} within {timeout_s:g} s: it hangs, or needs a higher "
                f"environment.{'step' if header['kind'] == 'step' else 'open'}_timeout_s"
            ) from error
        except OSError as error:
            self.disconnect()
            how = "" if self._last_words is None else f"; it {self._last_words()}"
            raise TransportError(f"the worker was lost during {header['kind']!r}: {error}{how}") from error
        except codec.CodecError:
            self.disconnect()
            raise
        if reply.get("kind") == "error":
            message = str(reply.get("message"))
            if reply.get("unsupported"):
                raise UnsupportedError(message)
            if reply.get("type") == "MemoryError":
                # The worker ends after that: what such an error left behind is nobody's guess.
                self.disconnect()
                message = (
                    f"{message or 'out of memory'}: give the worker more memory (environment.memory_limit_gb, if the "
                    "card sets it), or run a smaller model"
                )
            if reply.get("type") == InvalidOutputError.__name__:
                raise InvalidOutputError(message)
            raise RemoteSystemError(f"{reply.get('type')}: {message}")
        wanted = _ANSWERS[header["kind"]]
        if reply.get("kind") != wanted:
            self.disconnect()
            raise codec.CodecError(f"{header['kind']!r} is answered with {wanted!r}, not with {reply.get('kind')!r}")
        return reply, out_arrays

    def _connected(self) -> socket.socket:
        if self._connection is None:
            connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                connection.settimeout(self.timeouts.connect_s)
                connection.connect(self.path)
            except OSError:
                connection.close()
                raise
            self._connection = connection
            self.connections += 1
        return self._connection


class RemoteSession:
    """Implements ``Session`` over the system's connection; lost with that connection, never taken up on another."""

    def __init__(self, system: RemoteSystem) -> None:
        self.system = system
        self._stats: SessionStats | None = None
        # Which of the system's connections it was opened on; 0 before.
        self._connection = 0

    def open(self, request: OpenRequest) -> None:
        """Open a session in the worker.

        Raises:
            UnsupportedError: The request holds something that the spec does not offer.
            TransportError, RemoteSystemError: The worker or its system failed.
        """
        refuse_unsupported(request, self.system.spec)
        data, arrays = messages.pack_request(request)
        self.system.request({"kind": "open", "request": data}, arrays, self.system.timeouts.open_s)
        self._connection = self.system.connections

    def step(self, unit: Samples) -> list[Out]:
        """Send one unit, return its outputs.

        Raises:
            UnsupportedError: Not one whole unit.
            TransportError, RemoteSystemError: The worker or its system failed.
        """
        checked_unit(unit, self.system.spec)
        if self._is_lost:
            raise TransportError("the session was lost with its worker: open another")
        reply, arrays = self.system.request({"kind": "step"}, [unit], self.system.timeouts.step_s)
        return messages.unpack_outs(_field(reply, "outs"), arrays)

    def close(self) -> SessionStats:
        """End the session; empty statistics if it was never opened, or was lost with its worker."""
        if self._stats is None and not self._connection:
            return SessionStats()
        if self._stats is None and self._is_lost:
            # A hung worker would be waited for; what it had to say is lost anyway.
            self._stats = SessionStats(warnings=("the session was lost with its worker",))
        if self._stats is None:
            reply, _ = self.system.request({"kind": "close"}, (), self.system.timeouts.open_s)
            self._stats = messages.unpack_stats(_field(reply, "stats"))
        return self._stats

    @property
    def _is_lost(self) -> bool:
        return not self.system.is_connected or self._connection != self.system.connections
