"""The pulse of a run: a small object that the run renews while it lives, with how far its stage has come.

``status`` reads it to show items inside a running partition, and the run launcher to tell a run whose worker was
killed from one that works: a pulse counts up, and nobody's clock is compared with another's.
"""

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass

from duplex_bench.stages import progress
from duplex_bench.storage.object_store import ObjectStore

# All (ours).
PULSE_EVERY_S = 5.0
LOG_EVERY_S = 30.0
LOOK_EVERY_S = 15.0
LAST_WORD_S = 1.0
_FOLDER = "runs"
_beating: set[str] = set()
_given_up: dict[str, Callable[[], bool]] = {}


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


def end_if(run_id: str, given_up: Callable[[], bool]) -> None:
    """End this process, which makes a single run, once ``given_up`` says that the run was ended by somebody else.

    A process that was stopped for a while (SIGSTOP, a suspended machine) is taken for dead and its run is made again.
    Awake again it must not go on beside the other: it would keep a worker busy, and write into the log of a run that
    has ended. It leaves as a killed one does, so that no word of it comes after the last.
    """
    _given_up[run_id] = given_up


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
    beat, looked_at_s, given_up = 0, time.monotonic() - LOOK_EVERY_S, _given_up.get(run_id)
    while not ended.wait(PULSE_EVERY_S if beat else 0.0):
        beat += 1
        if given_up is not None and time.monotonic() - looked_at_s >= LOOK_EVERY_S:
            looked_at_s = time.monotonic()
            # A run that says its own last word is done here at once.
            if given_up() and not ended.wait(LAST_WORD_S):
                _leave(store, run_id)
        now = told.latest
        pulse = Pulse(run_id, beat, now.stage, now.done, now.total, now.failed, socket.gethostname(), os.getpid())
        try:
            store.put(_key(run_id), json.dumps(asdict(pulse)).encode())
        except OSError:
            # The store is away: the work will say so itself, and a later beat may get through.
            continue
    with suppress(OSError):
        forget(store, run_id)


def _leave(store: ObjectStore, run_id: str) -> None:
    with suppress(OSError):
        forget(store, run_id)
    logging.getLogger(__name__).warning("run %s was ended elsewhere: this process leaves it", run_id)
    os._exit(1)


def _key(run_id: str) -> str:
    return f"{_FOLDER}/{run_id}.json"
