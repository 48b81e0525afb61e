"""One worker at a time on one stage of one system, over nothing but an object store.

Two runs of the same partition would both find an item unfinished and both pay for it. Before a run computes, it takes
the lease of the stage's ledger; another waits, and then finds the work done. The lease is a row of numbered objects:
who creates number n+1 holds it, and creating is atomic in a folder and in a bucket. The holder renews a beat; a waiter
that sees the beat stand still takes the next number. Times are spans on each process's own monotonic clock, so that a
step of somebody's wall clock changes nothing.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from duplex_bench.storage.object_store import ObjectStore

# All (ours). A stale holder is replaced after STALE_AFTER_S, and stops by itself before that.
BEAT_EVERY_S = 5.0
STALE_AFTER_S = 45.0
LOOK_EVERY_S = 1.0
# A number is deleted only this far behind the newest: who reads a list and is then held up for some takeovers must not
# find the number that it wants free again.
NUMBERS_KEPT = 32


class LeaseLostError(OSError):
    """Another run has taken over, since this one gave no sign of life: it ends, and what it finished is kept."""


@dataclass(frozen=True, slots=True)
class LeaseTimes:
    """Seconds between beats, after which an unchanged beat is stale, and between looks of a waiter."""

    beat_every_s: float = BEAT_EVERY_S
    stale_after_s: float = STALE_AFTER_S
    look_every_s: float = LOOK_EVERY_S


@dataclass(frozen=True, slots=True)
class _Holder:
    token: str
    host: str
    process: int
    began: str
    beat: int = 0
    released: bool = False


class Lease:
    """A lease that is held: ``check`` before each piece of work that must not be done twice."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        number: int,
        holder: _Holder,
        times: LeaseTimes,
        clock: Callable[[], float],
    ) -> None:
        self._store, self._prefix, self._number, self._times, self._clock = store, prefix, number, times, clock
        self._holder = holder
        self._lock = threading.Lock()
        self._renewed_at_s = clock()
        self._lost = False

    def check(self) -> None:
        """Make sure that it is still held.

        Raises:
            LeaseLostError: it is not, or nobody can say: the store did not answer for too long.
        """
        if not self._lost and self._clock() - self._renewed_at_s > 2 * self._times.beat_every_s:
            # The process was stopped, or the store away: somebody may have taken over meanwhile.
            self.renew()
        if self._lost:
            raise LeaseLostError(f"{self._prefix}: another run has taken over this work; it goes on there")

    def renew(self) -> None:
        """One beat. A store that does not answer is forgiven until the lease would be stale."""
        with self._lock:
            try:
                if self._store.exists(_number_key(self._prefix, self._number + 1)):
                    self._lost = True
                    return
                self._holder = _Holder(**{**asdict(self._holder), "beat": self._holder.beat + 1})
                self._store.put(_number_key(self._prefix, self._number), _written(self._holder))
                self._renewed_at_s = self._clock()
            except OSError:
                self._lost = self._clock() - self._renewed_at_s > self._times.stale_after_s / 2

    def release(self) -> None:
        """Give it back, so that a waiter need not wait for staleness."""
        with self._lock:
            if not self._lost:
                freed = _Holder(**{**asdict(self._holder), "released": True})
                self._store.put(_number_key(self._prefix, self._number), _written(freed))


@contextmanager
def leased(
    store: ObjectStore,
    scope: str,
    times: LeaseTimes | None = None,
    waiting: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Lease]:
    """Hold the lease of ``scope`` (a key prefix) during the block; waits while another run holds it.

    ``waiting`` is told once who holds it.
    """
    chosen = times or LeaseTimes()
    prefix = f"leases/{scope}"
    number, holder = _taken(store, prefix, chosen, waiting, clock)
    lease = Lease(store, prefix, number, holder, chosen, clock)
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(chosen.beat_every_s):
            lease.renew()

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield lease
    finally:
        ended.set()
        thread.join()
        # What could not be given back becomes stale.
        with suppress(OSError):
            lease.release()


def _taken(
    store: ObjectStore, prefix: str, times: LeaseTimes, waiting: Callable[[str], None], clock: Callable[[], float]
) -> tuple[int, _Holder]:
    me = _Holder(uuid.uuid4().hex, socket.gethostname(), os.getpid(), _began(os.getpid()))
    pause = threading.Event()
    seen: tuple[int, bytes] | None = None
    since_s = clock()
    while True:
        numbers = [_number_of(key) for key in store.keys(prefix)]
        last = max(numbers, default=0)
        held = _read(store, _number_key(prefix, last)) if last else None
        if last and held is None:
            # It went between the list and the look: the list is old.
            continue
        now = (last, held or b"")
        if seen is None or now != seen:
            if seen is None and held is not None and not _is_free(held):
                waiting(_described(held))
            seen, since_s = now, clock()
        if held is None or _is_free(held) or clock() - since_s >= times.stale_after_s:
            mine = _number_key(prefix, last + 1)
            # A retried request may find its own object there: what is stored decides, not the answer.
            store.put_if_absent(mine, _written(me))
            if _token(_read(store, mine)) == me.token:
                # The newest number is never deleted, so a list made now shows whether this one is.
                if max(_number_of(key) for key in store.keys(prefix)) == last + 1:
                    for number in numbers:
                        if number <= last + 1 - NUMBERS_KEPT:
                            store.delete(_number_key(prefix, number))
                    return last + 1, me
                store.delete(mine)
            seen = None
            continue
        pause.wait(times.look_every_s)


def _is_free(held: bytes) -> bool:
    """Whether a holder released it, or is known to be dead: a process of this machine that no longer runs."""
    try:
        holder = _Holder(**json.loads(held))
    except (ValueError, TypeError):
        return False
    here = bool(_space()) and holder.began.startswith(f"{_space()}/")
    return holder.released or (here and _began(holder.process) != holder.began)


@cache
def _space() -> str:
    """Names this start of this kernel and the container: process numbers mean something only within it."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _began(process: int) -> str:
    """Where and at which clock tick a process began: what tells it from a later one of its number."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    except OSError:
        return f"{_space()}/gone"
    return f"{_space()}/{'gone' if fields[0] == 'Z' else fields[19]}"


def _described(held: bytes) -> str:
    try:
        holder = _Holder(**json.loads(held))
    except (ValueError, TypeError):
        return "another run"
    return f"process {holder.process} on {holder.host}"


def _token(held: bytes | None) -> str:
    try:
        return _Holder(**json.loads(held or b"")).token
    except (ValueError, TypeError):
        return ""


def _written(holder: _Holder) -> bytes:
    return json.dumps(asdict(holder)).encode()


def _read(store: ObjectStore, key: str) -> bytes | None:
    try:
        return store.get(key)
    except KeyError:
        return None


def _number_key(prefix: str, number: int) -> str:
    return f"{prefix}/{number:08d}.json"


def _number_of(key: str) -> int:
    return int(key.rsplit("/", 1)[1].removesuffix(".json"))
