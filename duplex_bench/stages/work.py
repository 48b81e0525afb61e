"""Work by content key: what is finished is reused, what fails is counted, an interrupt loses nothing finished."""

import itertools
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from dataclasses import dataclass, field
from typing import Literal

from duplex_bench.stages import progress
from duplex_bench.storage.ledger import FLUSH_AFTER_S, ItemLedger, LedgerRecord

IN_FLIGHT_PER_RUN = 16


@dataclass(frozen=True, slots=True)
class Task:
    """One piece of work: ``key`` says all that its result depends on, ``argument`` is what the function is given."""

    key: str
    item_id: str
    argument: object


@dataclass(slots=True)
class WorkDone:
    """Results by key, as JSON; what was computed now, what was found finished, and what failed and why."""

    payloads: dict[str, str] = field(default_factory=dict)
    computed: list[str] = field(default_factory=list)
    reused: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def counts(self) -> dict[str, int | float | str]:
        """Counts that add up: planned = computed + reused + failed."""
        planned = len(self.computed) + len(self.reused) + len(self.failed)
        return {
            "planned": planned,
            "computed": len(self.computed),
            "reused": len(self.reused),
            "failed": len(self.failed),
        }


def resume(
    ledger: ItemLedger,
    stage: str,
    tasks: Sequence[Task],
    function: Callable[..., str],
    executor: Executor | None = None,
    common: tuple[object, ...] = (),
    final: Callable[[str], bool] = bool,
    intact: Callable[[Sequence[str]], Collection[str]] | None = None,
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
        _compute(ledger, stage, waiting, function, executor, common, final, done, lease.check)
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
) -> None:
    total = len(done.reused) + len(waiting)
    _tell(stage, done, total)
    try:
        with progress.engine_clock.running():
            for task, payload, error in _run(waiting, function, executor, common, ledger.flush, still_ours):
                if error:
                    done.failed[task.key] = error
                    ledger.add(LedgerRecord(task.key, task.item_id, "failed", error=error))
                else:
                    done.payloads[task.key] = payload
                    done.computed.append(task.key)
                    status: Literal["ok", "failed"] = "ok" if final(payload) else "failed"
                    ledger.add(LedgerRecord(task.key, task.item_id, status, payload=payload))
                _tell(stage, done, total)
    finally:
        ledger.flush()


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
) -> Iterator[tuple[Task, str, str]]:
    if executor is None:
        for task in tasks:
            still_ours()
            try:
                yield task, function(*common, task.argument), ""
            except (ValueError, OSError) as error:
                yield task, "", _said(error)
        return
    running: dict[Future[str], Task] = {}
    queue = iter(tasks)
    try:
        while True:
            still_ours()
            # Only a few items are handed over at a time, so that an interrupt waits for those and no more.
            for waiting in itertools.islice(queue, IN_FLIGHT_PER_RUN - len(running)):
                running[executor.submit(function, *common, waiting.argument)] = waiting
            if not running:
                return
            ended = wait(running, timeout=FLUSH_AFTER_S, return_when=FIRST_COMPLETED).done
            if not ended:
                while_waiting()
            for future in ended:
                task = running.pop(future)
                raised = future.exception()
                if raised is None:
                    yield task, future.result(), ""
                elif isinstance(raised, ValueError | OSError):
                    yield task, "", _said(raised)
                else:
                    raise raised
    except KeyboardInterrupt:
        for future in running:
            future.cancel()
        # What was finished while nobody looked is kept too.
        for future, task in running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                yield task, future.result(), ""
        raise
    except GeneratorExit:
        for future in running:
            future.cancel()
        raise


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
