"""Work by content key: what is finished is reused, what fails is counted, an interrupt loses nothing finished."""

import itertools
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from typing import Literal

from duplex_bench.stages import progress
from duplex_bench.storage import happenings
from duplex_bench.storage.ledger import FLUSH_AFTER_S, ItemLedger, LedgerRecord
from duplex_bench.storage.secrets import redacted

IN_FLIGHT_PER_RUN = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work: ``key`` says all that its result depends on, ``argument`` is what the function is given."""

    key: str
    item_id: str
    argument: object


# More to tell of an item that ended, from its payload; asked for where somebody listens.
Details = Callable[[str], Mapping[str, happenings.Value]]


@dataclass(slots=True)
class WorkDone:
    """Results by key, as JSON; what was computed now, what was found finished, what failed and why.

    ``damaged`` are files of the ledger whose work was not found finished for that; they may be deleted.
    """

    payloads: dict[str, str] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    damaged: tuple[str, ...] = ()

    def counts(self) -> dict[str, int | float | str]:
        """Counts that add up: planned = computed + reused + failed; and ledger files that are damaged, if any."""
        planned = len(self.computed) + len(self.reused) + len(self.failed)
        counts: dict[str, int | float | str] = {
            "planned": planned,
            "computed": len(self.computed),
            "reused": len(self.reused),
            "failed": len(self.failed),
        }
        if self.damaged:
            counts["damaged_ledger_files"] = ", ".join(self.damaged)
        return counts


def resume(
    ledger: ItemLedger,
    stage: str,
    tasks: Sequence[Task],
    function: Callable[..., str],
    executor: Executor | None = None,
    common: tuple[object, ...] = (),
    final: Callable[[str], bool] = bool,
    intact: Callable[[Sequence[str]], Collection[str]] | None = None,
    details: Details | None = None,
    in_flight: int = IN_FLIGHT_PER_RUN,
) -> WorkDone:
    """Run ``function(*common, argument) -> JSON`` for every task whose key has no finished record.

    A payload that is not ``final`` (a rollout lost in transport, say) is handed back and reported, but the next run
    tries its task again.

    With an executor the function must be importable by name. An item that raises ValueError or OSError is recorded
    as failed and the rest goes on; it is tried again by the next run. Whatever ends the stage, finished items are kept.

    Only one run at a time computes for a ledger: another waits, and then finds the work done.

    Args:
        ledger: what is finished.
        stage: name, for progress.
        tasks: all that is wanted.
        function: makes one result.
        executor: where it runs; None for here.
        common: its first arguments.
        final: whether a payload is kept for good.
        intact: those of finished payloads whose data is still stored; others are made again. Default: all.
        details: what logs and metrics are told of an item beside its outcome and time.
        in_flight: how many items the executor is handed at a time.

    Raises:
        LeaseLostError: this run gave no sign of life for so long that another took over.
    """
    done = WorkDone()
    waiting = _split(ledger, tasks, intact, done)
    if not waiting:
        _tell(stage, done, len(done.reused))
        return done
    with ledger.leased(lambda holder: progress.tell(progress.Progress(f"{stage}: waits for {holder}", 0, 0))) as lease:
        # What another run finished while this one waited is not done again.
        waiting = _split(ledger, tasks, intact, done)
        _compute(ledger, stage, waiting, function, executor, common, final, done, lease.check, details, in_flight)
    # In the order of the tasks, not in that in which they happened to end: tables are made of it.
    done.payloads = {task.key: done.payloads[task.key] for task in tasks if task.key in done.payloads}
    return done


def _split(
    ledger: ItemLedger,
    tasks: Sequence[Task],
    intact: Callable[[Sequence[str]], Collection[str]] | None,
    done: WorkDone,
) -> list[Task]:
    """Note in ``done`` what is finished; the tasks that are not, each key once."""
    finished = ledger.finished()
    done.damaged = ledger.unreadable_segments
    found = {task.key: finished[task.key].payload for task in tasks if task.key in finished}
    if intact is not None:
        whole = set(intact(list(found.values())))
        found = {key: payload for key, payload in found.items() if payload in whole}
    done.payloads, done.reused = found, list(found)
    waiting: dict[str, Task] = {}
    for task in tasks:
        if task.key not in found:
            waiting.setdefault(task.key, task)
    return list(waiting.values())


def _compute(
    ledger: ItemLedger,
    stage: str,
    waiting: Sequence[Task],
    function: Callable[..., str],
    executor: Executor | None,
    common: tuple[object, ...],
    final: Callable[[str], bool],
    done: WorkDone,
    still_ours: Callable[[], None],
    details: Details | None,
    in_flight: int,
) -> None:
    total = len(done.reused) + len(waiting)
    _tell(stage, done, total)
    began_s = time.perf_counter()
    try:
        with progress.engine_clock.running():
            ended = _run(waiting, function, executor, common, ledger.flush, still_ours, in_flight)
            for task, payload, error, took_s in ended:
                if error:
                    done.failed[task.key] = error
                    ledger.add(LedgerRecord(task.key, task.item_id, "failed", error=error))
                else:
                    done.payloads[task.key] = payload
                    done.computed.append(task.key)
                    status: Literal["ok", "failed"] = "ok" if final(payload) else "failed"
                    ledger.add(LedgerRecord(task.key, task.item_id, status, payload=payload))
                if happenings.anyone_listens():
                    told = dict(details(payload)) if details is not None and not error else {}
                    told |= {"key": task.key, "state": "failed" if error else "done", "error": error or None}
                    happenings.tell("item", scope=ledger.scope, item_id=task.item_id, took_s=round(took_s, 4), **told)
                _tell(stage, done, total)
    finally:
        ledger.flush()
        counts = {"computed": len(done.computed), "reused": len(done.reused), "failed": len(done.failed)}
        seconds = round(time.perf_counter() - began_s, 3)
        happenings.tell("stage", stage=stage, planned=total, took_s=seconds, **counts)


def _tell(stage: str, done: WorkDone, total: int) -> None:
    n_done = len(done.computed) + len(done.reused) + len(done.failed)
    progress.tell(progress.Progress(stage, n_done, total, len(done.reused), len(done.failed)))


def _run(
    tasks: Sequence[Task],
    function: Callable[..., str],
    executor: Executor | None,
    common: tuple[object, ...],
    while_waiting: Callable[[], None],
    still_ours: Callable[[], None],
    in_flight: int,
) -> Iterator[tuple[Task, str, str, float]]:
    """Each task with its payload or error, and the seconds since it was handed over."""
    if executor is None:
        for task in tasks:
            still_ours()
            began_s = time.perf_counter()
            try:
                payload, told = function(*common, task.argument), ""
            except (ValueError, OSError) as error:
                payload, told = "", _said(error)
            yield task, payload, told, time.perf_counter() - began_s
        return
    running: dict[Future[str], tuple[Task, float]] = {}
    queue = iter(tasks)
    try:
        while True:
            still_ours()
            # Only a few items are handed over at a time, so that an interrupt waits for those and no more.
            for waiting in itertools.islice(queue, in_flight - len(running)):
                running[executor.submit(function, *common, waiting.argument)] = (waiting, time.perf_counter())
            if not running:
                return
            ended = wait(running, timeout=FLUSH_AFTER_S, return_when=FIRST_COMPLETED).done
            if not ended:
                while_waiting()
            for future in ended:
                task, began_s = running.pop(future)
                took_s = time.perf_counter() - began_s
                raised = future.exception()
                if raised is None:
                    yield task, future.result(), "", took_s
                elif isinstance(raised, ValueError | OSError):
                    yield task, "", _said(raised), took_s
                else:
                    raise raised
    except KeyboardInterrupt:
        for future in running:
            future.cancel()
        # What was finished while nobody looked is kept too.
        for future, (task, began_s) in running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield task, future.result(), "", time.perf_counter() - began_s
        raise
    except GeneratorExit:
        for future in running:
            future.cancel()
        raise


def _said(error: BaseException) -> str:
    return redacted(f"{type(error).__name__}: {error}")
