"""Serves one system over a Unix socket, from inside the system's own environment.

``python -m duplex_bench.contract.worker --factory module:callable --settings JSON --socket PATH``. The factory is
called once with the settings (a dict) and returns a ``System``. One connection and one session at a time.

The worker ends when its standard input does: the parent holds the other end of that pipe, so a parent that is killed
leaves no worker behind. (Linux's parent-death signal is bound to the parent's *thread*, and the threads that start
workers here come and go.) Started by Dagster Pipes it also says there what it does (``telling``).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import resource
import socket
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any

from duplex_bench.contract import codec, messages, telling
from duplex_bench.contract.returned import checked_outs, checked_session, checked_stats, checked_system
from duplex_bench.contract.types import SYSTEM_ERRORS, InvalidOutputError, TransportError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    import numpy.typing as npt

    from duplex_bench.contract.types import Session, System

    Reply = tuple[dict[str, Any], list[npt.NDArray[np.float32]]]


_SHOWN_CALLS = 3


def load_factory(path: str) -> Callable[..., System]:
    """The callable that ``module:callable`` names.

    Raises:
        ValueError: Not of that form, or the module has no such callable.
    """
    module_name, _, name = path.partition(":")
    if not module_name or not name:
        raise ValueError(f"adapter {path!r} is not of the form module:callable")
    found = getattr(importlib.import_module(module_name), name, None)
    if not callable(found):
        raise ValueError(f"adapter {path!r}: module {module_name} has no callable {name!r}")
    factory: Callable[..., System] = found
    return factory


class Worker:
    """Answers the messages of one client after another: hello, open, step, close, shutdown."""

    def __init__(self, system: System, told: telling.Told) -> None:
        self.system = system
        self.told = told
        self.session: Session | None = None
        self.running = True

    def serve(self, listener: socket.socket) -> None:
        """Accept clients until one asks for shutdown."""
        while self.running:
            connection, _ = listener.accept()
            with connection:
                self._serve_client(connection)
            self._drop_session()

    def _serve_client(self, connection: socket.socket) -> None:
        while self.running:
            try:
                header, arrays = codec.receive(connection)
            except (TransportError, ConnectionError):
                return
            except codec.CodecError as error:
                # The stream is out of step, nothing after this can be understood.
                with contextlib.suppress(OSError):
                    codec.send(connection, _error(error))
                return
            try:
                reply, out_arrays = self._answer(header, arrays)
            except SYSTEM_ERRORS as error:
                reply, out_arrays = _error(error), []
                self.told.failed(error)
                # What an exhausted memory left behind is nobody's guess: another worker takes over.
                self.running = self.running and not isinstance(error, MemoryError)
            try:
                codec.send(connection, reply, out_arrays)
            except (TypeError, ValueError) as error:
                codec.send(connection, _error(error))
            except ConnectionError:
                return

    def _answer(self, header: dict[str, Any], arrays: list[Any]) -> Reply:
        kind = header.get("kind")
        if kind == "step":
            if self.session is None:
                raise UnsupportedError("step before open")
            outs, out_arrays = messages.pack_outs(checked_outs(self.session.step(arrays[0])))
            return {"kind": "outs", "outs": outs}, out_arrays
        if kind == "hello":
            return {"kind": "spec", "spec": messages.pack_spec(self.system.spec), "pid": os.getpid()}, []
        if kind == "open":
            self._drop_session()
            session = checked_session(self.system.new_session())
            session.open(messages.unpack_request(header["request"], arrays))
            self.session = session
            return {"kind": "opened"}, []
        if kind == "close":
            if self.session is None:
                raise UnsupportedError("close before open")
            closing, self.session = self.session, None
            stats = checked_stats(closing.close())
            self.told.closed(stats)
            return {"kind": "closed", "stats": messages.pack_stats(stats)}, []
        if kind == "shutdown":
            self.running = False
            return {"kind": "bye"}, []
        raise codec.CodecError(f"unknown message {kind!r}")

    def _drop_session(self) -> None:
        session, self.session = self.session, None
        if session is not None:
            with contextlib.suppress(*SYSTEM_ERRORS):
                session.close()


def _error(error: BaseException) -> dict[str, Any]:
    # What the contract itself refuses says where already.
    where = "" if isinstance(error, (UnsupportedError, InvalidOutputError, codec.CodecError)) else _place(error)
    return {
        "kind": "error",
        "type": type(error).__name__,
        "message": f"{str(error)[:10_000]}{where}",
        "unsupported": isinstance(error, UnsupportedError),
    }


def _place(error: BaseException) -> str:
    """Where in the system's code ``error`` was raised: the last calls that are not ours, outermost first."""
    own = os.path.dirname(__file__), os.path.dirname(importlib.__file__), "<"  # noqa: PTH120 (a folder inside a zip)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(own)]
    calls = [f"{os.path.basename(frame.filename)}:{frame.lineno} in {frame.name}" for frame in frames[-_SHOWN_CALLS:]]  # noqa: PTH119
    return f" ({', '.join(calls)})" if calls else ""


def _why_not_made(error: Exception, factory: str) -> str:
    """What to say of a system that could not be made: the error, where, and what to do if that is plain."""
    remedy = ""
    if isinstance(error, MemoryError):
        remedy = ": give it more memory (environment.memory_limit_gb, if the card sets it), or a smaller model"
    if isinstance(error, ModuleNotFoundError) and error.name:
        remedy = f": install it into the environment of {sys.executable}"
        if error.name == factory.partition(":")[0].partition(".")[0]:
            remedy = ": name the folder of that module in the card's environment.python_path"
    return f"{type(error).__name__}: {error}{_place(error)}{remedy}"


def end_with_parent() -> None:
    """Block until standard input ends, then end this process at once, whatever its other threads do."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status, 2 if the system cannot be made (the reason goes to standard error)."""
    parser = argparse.ArgumentParser(prog="duplex_bench.contract.worker", description="Serve one system on a socket.")
    parser.add_argument("--factory", required=True, help="module:callable that makes the system")
    parser.add_argument("--settings", default="{}", help="the factory's argument, as a JSON object")
    parser.add_argument("--socket", required=True, help="path of the Unix socket to serve on")
    parser.add_argument("--memory-limit-bytes", type=int, help="the most private memory that it may ask for")
    parser.add_argument("--keep-without-parent", action="store_true", help="do not end when standard input does")
    options = parser.parse_args(arguments)
    if not options.keep_without_parent:
        threading.Thread(target=end_with_parent, daemon=True).start()
    if options.memory_limit_bytes is not None:
        # Private writable memory: address space would also count what a GPU's driver only reserves.
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory_limit_bytes, options.memory_limit_bytes))
    with telling.telling() as told:
        try:
            system = checked_system(load_factory(options.factory)(json.loads(options.settings)))
        except SYSTEM_ERRORS as error:
            sys.stderr.write(f"{options.factory}: {_why_not_made(error, options.factory)}\n")
            told.failed(error)
            return 2
        told.started(options.factory)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            # The path appears when it can be connected to, not between bind and listen.
            listener.bind(f"{options.socket}.new")
            listener.listen(1)
            os.rename(f"{options.socket}.new", options.socket)  # noqa: PTH104 (a socket path, not a file of ours)
            Worker(system, told).serve(listener)
    return 0


if __name__ == "__main__":
    sys.exit(main())
