"""Answers one client's requests over an inherited socket, in the codec of the session contract.

``--fd N`` is one end of a socket pair; ``--settings`` the engine's settings as JSON. A request is a header with a
``kind`` and float32 arrays; so is an answer; an error is answered with ``kind`` "error", its type and its text. The
worker ends when the socket or standard input does: both are held open by the parent alone.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import socket
import threading
from typing import TYPE_CHECKING, Any

from duplex_bench.contract import codec
from duplex_bench.contract.types import SYSTEM_ERRORS, TransportError
from duplex_bench.contract.worker import end_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    Arrays = list[npt.NDArray[np.float32]]
    Answer = tuple[dict[str, Any], Arrays]
    Handler = Callable[[dict[str, Any], Arrays], Answer]


def serve(engine: Callable[[dict[str, Any]], Handler]) -> None:
    """Make the engine from ``--settings`` and answer until the client is gone.

    The first message out is ``ready``, or ``error`` if the engine cannot be made.

    Args:
        engine: from settings to the function that answers requests.
    """
    parser = argparse.ArgumentParser(description="Serve one engine on an inherited socket.")
    parser.add_argument("--fd", type=int, required=True)
    parser.add_argument("--settings", default="{}")
    options = parser.parse_args()
    threading.Thread(target=end_with_parent, daemon=True).start()
    with socket.socket(fileno=options.fd) as connection:
        try:
            handler = engine(json.loads(options.settings))
        except SYSTEM_ERRORS as error:
            codec.send(connection, _told(error))
            return
        codec.send(connection, {"kind": "ready"})
        while True:
            try:
                header, arrays = codec.receive(connection)
            except (TransportError, ConnectionError):
                return
            try:
                reply, out = handler(header, arrays)
            except SYSTEM_ERRORS as error:
                reply, out = _told(error), []
            codec.send(connection, reply, out)


def require_version(package: str, wanted: str) -> None:
    """Raise ValueError unless ``package`` is installed here in exactly the version that results are named by."""
    found = importlib.metadata.version(package)
    if found != wanted:
        raise ValueError(f"{package} {found} is installed here, {wanted} is needed: install the lock file again")


def _told(error: BaseException) -> dict[str, Any]:
    return {"kind": "error", "type": type(error).__name__, "message": str(error)[:10_000]}
