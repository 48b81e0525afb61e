"""The item ledger: which pieces of work are finished, by content key, in immutable segment files.

A record is written after its data (audio, events) is stored, so that a finished key always has its data. Segments
are never changed: several runs may write at once, and an object store that cannot append serves as well as a folder.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Literal

from duplex_bench.storage.digests import canonical_json, digest_bytes
from duplex_bench.storage.lease import Lease, leased
from duplex_bench.storage.object_store import ObjectStore

FLUSH_EVERY = 20
# A killed process loses what is not yet written: at most so much finished work (ours).
FLUSH_AFTER_S = 2.0


@dataclass(frozen=True, slots=True)
class LedgerRecord:
    """One attempt at one piece of work: ``payload`` is the JSON of its result when ``status`` is ok."""

    key: str
    item_id: str
    status: Literal["ok", "failed"]
    payload: str = ""
    error: str = ""


class ItemLedger:
    """Finished work of one stage (and system), below ``ledger/<scope>/``."""

    def __init__(self, store: ObjectStore, scope: str) -> None:
        self._store = store
        self.scope = scope
        self._prefix = f"ledger/{scope}"
        self._pending: list[LedgerRecord] = []
        self._lock = threading.Lock()
        self._flushed_at_s = time.monotonic()
        self.unreadable_segments: tuple[str, ...] = ()

    def finished(self) -> dict[str, LedgerRecord]:
        """Every key with an ok record. A damaged segment is left out and listed, never guessed at."""
        found: dict[str, LedgerRecord] = {}
        unreadable = []
        for name, segment in self._store.get_many(list(self._store.keys(self._prefix))):
            try:
                records = list(_parse(name, segment)) if segment is not None else []
            except (ValueError, KeyError, TypeError):
                # TypeError: a line that is JSON but no record.
                unreadable.append(name)
                continue
            for record in records:
                if record.status == "ok":
                    found[record.key] = record
        self.unreadable_segments = tuple(unreadable)
        return found

    def leased(self, waiting: Callable[[str], None] = lambda _: None) -> AbstractContextManager[Lease]:
        """Be the only run that computes for this ledger; ``waiting`` is told who does while another one is."""
        return leased(self._store, self.scope, waiting=waiting)

    def add(self, record: LedgerRecord) -> None:
        """Note one piece of work; every ``FLUSH_EVERY`` records or ``FLUSH_AFTER_S`` seconds a segment is written."""
        with self._lock:
            self._pending.append(record)
            due = len(self._pending) >= FLUSH_EVERY or time.monotonic() - self._flushed_at_s >= FLUSH_AFTER_S
        if due:
            self.flush()

    def flush(self) -> None:
        """Write what is pending as one segment. Call it when a stage ends, however it ends.

        Raises:
            OSError: it cannot be written (StorageFullError: no space); it stays pending for the next flush.
        """
        with self._lock:
            pending, self._pending = self._pending, []
            self._flushed_at_s = time.monotonic()
        if not pending:
            return
        text = "".join(f"{canonical_json(record)}\n" for record in pending)
        try:
            name = f"{uuid.uuid4().hex}-{_seal(text.encode())}"
            self._store.put(f"{self._prefix}/{name}.jsonl", text.encode())
        except OSError:
            with self._lock:
                self._pending = pending + self._pending
            raise


def _seal(segment: bytes) -> str:
    """What shows damage, a changed digit included; enough of the digest for an accident."""
    return digest_bytes(segment)[:16]


def _parse(name: str, segment: bytes) -> Iterator[LedgerRecord]:
    seal = name.removesuffix(".jsonl").rpartition("-")[2]
    if "-" in name.rpartition("/")[2] and seal != _seal(segment):
        raise ValueError(f"{name}: its bytes are not those that were written")
    # Not splitlines: a judge's or a system's words may hold a line separator (U+2028), which JSON leaves as it is.
    for line in segment.decode().removesuffix("\n").split("\n") if segment else ():
        values = json.loads(line)
        yield LedgerRecord(**values)
