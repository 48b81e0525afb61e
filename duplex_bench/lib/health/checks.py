"""What is looked at: code location, daemons, run database, object store, queue and workers, disk, runs that hang."""

import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import dagster as dg
import httpx

from duplex_bench.lib.broker import BROKER_VARIABLE, queue_lengths
from duplex_bench.stages import pulse
from duplex_bench.stages.cards import readable_cards
from duplex_bench.storage.object_store import ObjectStore
from duplex_bench.storage.places import STORE_VARIABLE
from duplex_bench.storage.secrets import redacted

State = Literal["ok", "warning", "failing"]

# Ours, all: a run renews its pulse every 5 s, and Dagster's monitoring looks every 15 s.
STUCK_AFTER_S: Final = 90.0
DISK_WARNING_BYTES: Final = 10 * 1024**3
DISK_FAILING_BYTES: Final = 2 * 1024**3
DAEMON_LATE_AFTER_S: Final = 120.0
WAITING_WARNING: Final = 50
WEB_VARIABLE: Final = "DUPLEX_BENCH_WEB"
_LOCATIONS: Final = """{ workspaceOrError { __typename ... on PythonError { message } ... on Workspace {
  locationEntries { name loadStatus locationOrLoadError { __typename ... on PythonError { message } } } } } }"""
# What a client of a service that is away raises: all are subclasses of these, named so that our own mistakes show.
_AWAY: Final = (OSError, ValueError, KeyError, httpx.HTTPError, RuntimeError, ImportError)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: how it is, what was seen, how long the look took."""

    name: str
    state: State
    told: str
    took_s: float


Look = Callable[[], tuple[State, str]]


class StuckRuns:
    """Remembers pulses between looks: one that stands still is a run that hangs, whatever the clocks say."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, tuple[int, int, float]] = {}

    def __call__(self, store: ObjectStore) -> tuple[State, str]:
        """Runs without a sign of life, and runs that live and finish no item."""
        now, still, idle = self._clock(), [], []
        found = {one.run_id: one for one in pulse.pulses(store)}
        for run_id, one in found.items():
            beat, done, since = self._seen.get(run_id, (-1, -1, now))
            moved = one.beat != beat
            self._seen[run_id] = (one.beat, one.done, now if moved else since)
            where = f"run {run_id} ({one.stage or 'between stages'}, {one.done} of {one.total} items, on {one.host})"
            if not moved and now - since > STUCK_AFTER_S:
                still.append(where)
            elif one.failed and one.done == done:
                idle.append(where)
        self._seen = {run_id: seen for run_id, seen in self._seen.items() if run_id in found}
        if still:
            return "failing", f"no sign of life for {STUCK_AFTER_S:.0f} s: {'; '.join(still)}; terminate them in the UI"
        if idle:
            return "warning", f"items fail and none is finished: {'; '.join(idle)}"
        return "ok", f"{len(found)} runs under way" if found else "no run under way"


def all_looks(
    instance: dg.DagsterInstance, store: ObjectStore, data: Path, stuck: StuckRuns, count_assets: Callable[[], int]
) -> dict[str, Look]:
    """Every look that makes sense here, by name: a queue where there is a broker, a web server where one is named.

    ``count_assets`` loads the code location in this process and says how many assets it has.
    """
    looks: dict[str, Look] = {
        "code location": lambda: code_location(count_assets),
        "cards": lambda: _cards(data),
        "daemons": lambda: _daemons(instance),
        "run database": lambda: _database(instance),
        "object store": lambda: _store(store),
        "disk": lambda: _disk(data),
        "runs": lambda: stuck(store),
        "waiting runs": lambda: _waiting(instance),
    }
    broker = os.environ.get(BROKER_VARIABLE)
    if broker:
        looks["queue"] = lambda: _queue(broker)
    return looks


def look(looks: dict[str, Look]) -> Iterator[Finding]:
    """Look at each; what cannot be looked at is failing, and what it said is shown without keys."""
    for name, one in looks.items():
        began = time.perf_counter()
        try:
            state, told = one()
        except _AWAY as error:
            state, told = "failing", f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001 - database drivers raise classes of their own; the page must stand
            state, told = "failing", f"{type(error).__name__}: {error}"
        yield Finding(name, state, redacted(told), time.perf_counter() - began)


def code_location(count_assets: Callable[[], int]) -> tuple[State, str]:
    """Whether the assets load: in the web server that is named, else here."""
    web = os.environ.get(WEB_VARIABLE)
    if not web:
        return "ok", f"{count_assets()} assets load here"
    answer = httpx.post(f"{web}/graphql", json={"query": _LOCATIONS}, timeout=20.0)
    answer.raise_for_status()
    found = answer.json()["data"]["workspaceOrError"]
    if found["__typename"] == "PythonError":
        return "failing", found["message"]
    broken = [
        f"{one['name']}: {(one['locationOrLoadError'] or {}).get('message', one['loadStatus'])}"
        for one in found["locationEntries"]
        if (one["locationOrLoadError"] or {}).get("__typename") != "RepositoryLocation"
    ]
    names = ", ".join(one["name"] for one in found["locationEntries"])
    return ("failing", "; ".join(broken)) if broken or not names else ("ok", f"{names} loaded at {web}")


def _cards(data: Path) -> tuple[State, str]:
    cards, errors = readable_cards(data / "systems")
    if errors:
        return "warning", "; ".join(f"{error.file}: {error.message}" for error in errors)
    return "ok", f"{len(cards)} systems"


def _daemons(instance: dg.DagsterInstance) -> tuple[State, str]:
    required = instance.get_required_daemon_types()
    beats = instance.get_daemon_heartbeats()
    now = time.time()
    late = []
    for name in sorted(required):
        beat = beats.get(name)
        if beat is None:
            late.append(f"{name} never beat")
        elif now - beat.timestamp > DAEMON_LATE_AFTER_S:
            late.append(f"{name} beat {now - beat.timestamp:.0f} s ago")
        elif beat.errors:
            late.append(f"{name}: {beat.errors[0].message.strip()}")
    if late:
        return "failing", f"{'; '.join(late)}: is dagster-daemon running?"
    return "ok", f"{len(required)} daemons beat"


def _database(instance: dg.DagsterInstance) -> tuple[State, str]:
    count = instance.get_runs_count()
    storage = type(instance.run_storage).__name__
    return "ok", f"{count} runs in {storage}"


def _waiting(instance: dg.DagsterInstance) -> tuple[State, str]:
    waiting = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.QUEUED]))
    running = instance.get_runs_count(dg.RunsFilter(statuses=[dg.DagsterRunStatus.STARTED]))
    told = f"{waiting} wait, {running} run"
    return ("warning", f"{told}: too few workers?") if waiting > WAITING_WARNING else ("ok", told)


def _store(store: ObjectStore) -> tuple[State, str]:
    key, told = f"health/{uuid.uuid4().hex}", uuid.uuid4().bytes
    store.put(key, told)
    try:
        same = store.get(key) == told
    finally:
        store.delete(key)
    where = os.environ.get(STORE_VARIABLE) or "a folder"
    return ("ok", f"written, read and deleted in {where}") if same else ("failing", f"{where} gave other bytes back")


def _disk(data: Path) -> tuple[State, str]:
    folder = next(parent for parent in (data, *data.parents) if parent.exists())
    free = shutil.disk_usage(folder).free
    state: State = "failing" if free < DISK_FAILING_BYTES else "warning" if free < DISK_WARNING_BYTES else "ok"
    return state, f"{free / 1024**3:.1f} GiB free at {folder}"


def _queue(broker: str) -> tuple[State, str]:
    lengths = queue_lengths(broker)
    told = ", ".join(f"{length} in {queue}" for queue, length in lengths.items())
    return ("warning", f"{told}: too few workers?") if max(lengths.values()) > WAITING_WARNING else ("ok", told)
