"""One run, observed: logs name it, its counts can be scraped while it lives, and are stored for after it has ended."""

import json
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from duplex_bench.stages.telemetry import logs
from duplex_bench.stages.telemetry.counts import Counts
from duplex_bench.stages.telemetry.exposition import TOKEN_VARIABLE, registry, served
from duplex_bench.storage import happenings
from duplex_bench.storage.object_store import ObjectStore

VARIABLE: Final = "DUPLEX_BENCH_METRICS"
"""``port`` or ``host:port`` on which the process of a run serves its own metrics; unset: it serves none."""
STORE_EVERY_S: Final = 15.0
"""How old stored counts of a run under way may be (ours)."""
FOLDER: Final = "metrics"
_observed: set[str] = set()


@contextmanager
def observed(store: ObjectStore, run_id: str) -> Iterator[None]:
    """Observe a run until the block ends; within the block of the same run nothing more is done.

    Raises:
        ValueError: DUPLEX_BENCH_LOG or DUPLEX_BENCH_METRICS cannot be used.
        OSError: DUPLEX_BENCH_LOG_FILE cannot be written.
    """
    if run_id in _observed:
        yield
        return
    logs.install()
    counts, ended = Counts(), threading.Event()
    with ExitStack() as stack:
        address = os.environ.get(VARIABLE)
        if address:
            host, port = parsed(address)
            token = os.environ.get(TOKEN_VARIABLE) or None
            try:
                stack.enter_context(served(registry(lambda: counts), host, port, token))
            except OSError as error:
                # Another run of this machine has it; what this one counts is stored all the same.
                logs.LOGGER.warning("no metrics at %s:%d: %s", host, port, error)
        stack.enter_context(happenings.heard_by(counts.hear))
        _observed.add(run_id)
        logs.about["run_id"] = run_id
        thread = threading.Thread(target=_keep_stored, args=(store, run_id, counts, ended), daemon=True)
        thread.start()
        happenings.tell("run", state="begun")
        try:
            yield
        finally:
            happenings.tell("run", state="ended")
            ended.set()
            thread.join()
            logs.about.pop("run_id", None)
            _observed.discard(run_id)


def parsed(address: str) -> tuple[str, int]:
    """Host and port of ``port`` or ``host:port``.

    Raises:
        ValueError: it is neither.
    """
    host, _, port = address.rpartition(":")
    if not port.isdigit() or not 0 <= int(port) <= 65535:
        raise ValueError(f"{VARIABLE}={address!r}: give a port, or host:port")
    return host or "127.0.0.1", int(port)


def _keep_stored(store: ObjectStore, run_id: str, counts: Counts, ended: threading.Event) -> None:
    last = False
    while not last:
        last = ended.wait(STORE_EVERY_S)
        told = {"run_id": run_id, "host": socket.gethostname(), "ended": last, "counts": counts.to_json()}
        try:
            store.put(f"{FOLDER}/{run_id}.json", json.dumps(told).encode())
        except OSError:
            # The store is away: the work will say so itself, and the next time may get through.
            continue


class StoredCounts:
    """The counts of every run whose counts are in a store, added up: of all machines, ended or not."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._ended: dict[str, str] = {}

    def __call__(self) -> Counts:
        """The sum as of now. A file that cannot be read is left out: metrics decide nothing."""
        counts = Counts()
        names = list(self._store.keys(FOLDER))
        for name, data in self._store.get_many([name for name in names if name not in self._ended]):
            try:
                told = json.loads(data or b"")
                if told["ended"]:
                    self._ended[name] = told["counts"]
                else:
                    counts.add_all([told["counts"]])
            except (ValueError, KeyError, TypeError):
                continue
        # What ended never changes, and is read once.
        counts.add_all(self._ended[name] for name in names if name in self._ended)
        return counts
