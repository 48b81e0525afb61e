"""What a worker writes to its standard error: read without end, so that it never blocks, and kept only at its end."""

import threading
from typing import IO, Final

KEPT_BYTES: Final = 64 * 1024
_SHOWN_CHARS: Final = 4000
_CHUNK_BYTES: Final = 64 * 1024
_LAST_WAIT_S: Final = 10.0
"""For the last words of a worker that has ended; only a grandchild that holds its pipe makes us wait so long (ours)."""


class WorkerOutput:
    """Drains ``stream`` on a thread of its own until it ends; holds at most ``KEPT_BYTES`` of it."""

    def __init__(self, stream: IO[bytes] | None) -> None:
        self._stream = stream
        self._kept = bytearray()
        self._dropped_bytes = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._drain, name="worker output", daemon=True)
        self._thread.start()

    def tail(self, ended: bool = False) -> str:
        """The last of what was said, and how much was dropped before it; all of it, if the worker has ``ended``."""
        if ended:
            # It has said its last word, but that may not have been read yet.
            self._thread.join(timeout=_LAST_WAIT_S)
        with self._lock:
            said = bytes(self._kept).decode(errors="replace").strip()[-_SHOWN_CHARS:]
            dropped = self._dropped_bytes
        if not said:
            return "it said nothing"
        flood = f" (it wrote {dropped / 1e6:.0f} MB before, which were dropped)" if dropped > 1_000_000 else ""
        return f"{said}{flood}"

    def close(self) -> None:
        """Stop once the worker has ended; a grandchild that holds the pipe is not waited for."""
        self._thread.join(timeout=1.0)
        if not self._thread.is_alive() and self._stream is not None:
            self._stream.close()

    def _drain(self) -> None:
        stream = self._stream
        if stream is None:
            return
        while chunk := stream.read1(_CHUNK_BYTES):  # type: ignore[attr-defined]
            with self._lock:
                self._kept += chunk
                over = len(self._kept) - KEPT_BYTES
                if over > 0:
                    del self._kept[:over]
                    self._dropped_bytes += over
