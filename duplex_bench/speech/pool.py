"""Engines in parallel: one thread each, in worker processes, results in the order of the items."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True, slots=True)
class ItemResult(Generic[Result]):
    """What became of one item: its value, or the error as text (None: it went well)."""

    value: Result | None
    error: str | None = None


def map_in_processes(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    n_processes: int,
    on_done: Callable[[int, ItemResult[Result]], None] | None = None,
) -> list[ItemResult[Result]]:
    """``function`` of each item, in ``n_processes`` fresh processes that keep their engines between items.

    An item that raises, or whose process dies, becomes an error in its place and the rest goes on. Ctrl-C stops
    the workers and is raised; what ``on_done`` was told stays done.

    Args:
        function: importable by name from the workers; engines it makes are cached per process (``engines``).
        items: picklable.
        n_processes: at least 1; with 1, or one item, the work is done here, without a process.
        on_done: called here with each item's position and result as it comes, in any order.

    Raises:
        ValueError: ``n_processes`` is below 1.
    """
    if n_processes < 1:
        raise ValueError(f"n_processes is {n_processes}: at least 1 is needed")
    results: dict[int, ItemResult[Result]] = {}

    def done(position: int, result: ItemResult[Result]) -> None:
        results[position] = result
        if on_done is not None:
            on_done(position, result)

    if n_processes == 1 or len(items) < 2:
        for position, item in enumerate(items):
            done(position, _attempt(function, item))
    else:
        _run(function, items, list(range(len(items))), n_processes, done)
        # A process that died takes its neighbours with it: what is left is tried alone, so that only the
        # item that kills its process is lost.
        for position in [number for number in range(len(items)) if number not in results]:
            _run(function, items, [position], 1, done)
            if position not in results:
                done(position, ItemResult(None, "the worker process died (killed, out of memory, or a crash)"))
    return [results[position] for position in range(len(items))]


def _attempt(function: Callable[[Item], Result], item: Item) -> ItemResult[Result]:
    # A future holds whatever was raised; as text it crosses to the parent even where the error cannot be pickled.
    with ThreadPoolExecutor(1) as thread:
        future = thread.submit(function, item)
        error = future.exception()
    return ItemResult(future.result()) if error is None else ItemResult(None, f"{type(error).__name__}: {error}")


def _run(
    function: Callable[[Item], Result],
    items: Sequence[Item],
    positions: list[int],
    n_processes: int,
    done: Callable[[int, ItemResult[Result]], None],
) -> None:
    context = multiprocessing.get_context("spawn")
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    # Read by libraries when they are first imported, so that they must be there before a worker starts.
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, "1"))
    pool = ProcessPoolExecutor(n_processes, mp_context=context, initializer=_ignore_interrupt)
    waiting: dict[Future[ItemResult[Result]], int] = {}
    try:
        for position in positions:
            waiting[pool.submit(_attempt, function, items[position])] = position
        while waiting:
            finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
            for future in finished:
                position = waiting.pop(future)
                try:
                    done(position, future.result())
                except BrokenProcessPool:
                    continue
    finally:
        for worker in list((pool._processes or {}).values()):
            if waiting:
                worker.terminate()
        pool.shutdown(wait=True, cancel_futures=True)
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _ignore_interrupt() -> None:
    """Ctrl-C reaches every process of the terminal; only the parent decides what it means."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
