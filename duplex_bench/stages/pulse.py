"""The pulse of a run: a small object that the run renews while it lives, with how far its stage has come.

``status`` reads it to show items inside a running partition, and the run launcher to tell a run whose worker was
killed from one that works: a pulse counts up, and nobody's clock is compared with another's.
"""

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

from duplex_bench.stages import progress
from duplex_bench.storage.object_store import ObjectStore

# Both (ours).
PULSE_EVERY_S = 5.0
LOG_EVERY_S = 30.0
_FOLDER = "runs"
_beating: set[str] = set()


@dataclass(frozen=True, slots=True)
class Pulse:
    """One look at a run: ``beat`` counts renewals, ``stage``, ``done``, ``total`` and ``failed`` are of the stage."""

    run_id: str
    beat: int
    stage: str
    done: int
    total: int
    failed: int
    host: str
    process: int


def read_pulse(store: ObjectStore, run_id: str) -> Pulse | None:
    """The pulse of a run, or None: it ended, never began, or its pulse cannot be read."""
    try:
        return Pulse(**json.loads(store.get(_key(run_id))))
    except (KeyError, ValueError, TypeError):
        return None


def pulses(store: ObjectStore) -> list[Pulse]:
    """Every run that lives, or was killed and not yet noticed."""
    found = (read_pulse(store, key.rsplit("/", 1)[1].removesuffix(".json")) for key in store.keys(_FOLDER))
    return [pulse for pulse in found if pulse is not None]


def forget(store: ObjectStore, run_id: str) -> None:
    """Remove the pulse of a run that has ended."""
    store.delete(_key(run_id))


@contextmanager
def beating(store: ObjectStore, run_id: str, log: Callable[[str], object]) -> Iterator[None]:
    """Renew the pulse of a run until the block ends, and log how far its stages come, at most every LOG_EVERY_S."""
    if run_id in _beating:
        # Dagster opens the workspace once for the stages and once for the tables between them.
        yield
        return
    _beating.add(run_id)
    told = _Told(log)
    ended = threading.Event()
    thread = threading.Thread(target=_beat, args=(store, run_id, told, ended), daemon=True)
    thread.start()
    try:
        with progress.listening(told):
            yield
    finally:
        _beating.discard(run_id)
        ended.set()
        thread.join()


class _Told:
    def __init__(self, log: Callable[[str], object]) -> None:
        self._log = log
        self._logged_at_s = time.monotonic()
        self.latest = progress.Progress("", 0, 0)

    def __call__(self, told: progress.Progress) -> None:
        self.latest = told
        if time.monotonic() - self._logged_at_s >= LOG_EVERY_S and told.total:
            self._logged_at_s = time.monotonic()
            self._log(
                f"{told.stage}: {told.done} of {told.total} items, {told.reused} from before, {told.failed} failed"
            )


def _beat(store: ObjectStore, run_id: str, told: _Told, ended: threading.Event) -> None:
    beat = 0
    while not ended.wait(PULSE_EVERY_S if beat else 0.0):
        beat += 1
        now = told.latest
        pulse = Pulse(run_id, beat, now.stage, now.done, now.total, now.failed, socket.gethostname(), os.getpid())
        try:
            store.put(_key(run_id), json.dumps(asdict(pulse)).encode())
        except OSError:
            # The store is away: the work will say so itself, and a later beat may get through.
            continue
    try:
        forget(store, run_id)
    except OSError:
        return


def _key(run_id: str) -> str:
    return f"{_FOLDER}/{run_id}.json"
