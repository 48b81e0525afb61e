"""One pool of warm worker processes for everything that runs an engine.

Engines are single-threaded so that their output is the same bytes each time; processes give the parallelism, and a
worker keeps its loaded models from one stage to the next.
"""

import multiprocessing
import multiprocessing.util
import os
import signal
import threading
from concurrent.futures import ProcessPoolExecutor

from duplex_bench.speech import engines

_BEFORE_CHILDREN = 100
"""Finalizers of 0 and more are called before children are waited for, the greatest first."""
_pools: dict[int, ProcessPoolExecutor] = {}


def _start_worker() -> None:
    # Ctrl-C reaches the whole process group: the parent decides what it means, workers finish their item.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    # A killed parent cannot stop its workers, and a worker that waits for work never learns of it: it would hold its
    # models in memory for good.
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def pool(n_processes: int | None = None) -> ProcessPoolExecutor:
    """The pool of this process, started at first use with ``n_processes`` workers (default: one per core)."""
    wanted = n_processes or os.cpu_count() or 1
    if not _pools:
        # A process that Dagster started for a run waits for its children at its end, before any ``atexit``: a worker
        # that nobody told to end would keep it for good.
        multiprocessing.util.Finalize(None, close, exitpriority=_BEFORE_CHILDREN)
    if wanted not in _pools:
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        context = multiprocessing.get_context("spawn")
        _pools[wanted] = ProcessPoolExecutor(wanted, mp_context=context, initializer=_start_worker)
    return _pools[wanted]


def engine_pool(engine: str, n_processes: int | None = None) -> ProcessPoolExecutor | None:
    """The pool for work with a speech engine; None, work is done here, where the engine has a process of its own.

    Each process of the pool would load such an engine's model once more, and hold it on the same device.
    """
    return None if engines.runs_apart(engine) else pool(n_processes)


def close() -> None:
    """Stop the workers; waiting items are dropped, running ones finish."""
    for executor in _pools.values():
        executor.shutdown(wait=True, cancel_futures=True)
    _pools.clear()
