"""Sessions of many threads in one loop: results come back to their threads, time is shared out, the end frees all."""

import asyncio
import threading
import time
from concurrent.futures import CancelledError, ThreadPoolExecutor

import numpy as np
import pytest

from duplex_bench.records.outcome import Outcome
from duplex_bench.rollout.listener import RolloutResult
from duplex_bench.rollout.session_loop import SessionLoop

pytestmark = pytest.mark.unit


def result(name):
    return RolloutResult(Outcome.COMPLETED, name, np.zeros(1, np.float32), 24_000, 1.0, 1.0, [], 99.0)


def test_as_many_sessions_as_there_are_threads_are_under_way_at_once_in_one_thread():
    n = 40
    here, all_here, seen = set(), asyncio.Event(), set()

    async def session(name):
        seen.add(threading.get_ident())
        here.add(name)
        if len(here) == n:
            all_here.set()
        await all_here.wait()
        return result(str(name))

    with SessionLoop() as sessions, ThreadPoolExecutor(n) as threads:
        found = list(threads.map(lambda name: sessions.run(session(name)), range(n)))
    assert [one.reason for one in found] == [str(name) for name in range(n)]
    assert len(seen) == 1
    assert threading.get_ident() not in seen


def test_a_session_has_its_share_of_the_time_that_was_spent_while_it_was_under_way():
    async def session(name, both, busy):
        both.add(name)
        while len(both) < 2:
            await asyncio.sleep(0)
        if busy:
            until_s = time.thread_time() + 0.05
            while time.thread_time() < until_s:
                pass
            both.add("spent")
        while "spent" not in both:
            await asyncio.sleep(0)
        return result(name)

    both = set()
    with SessionLoop() as sessions, ThreadPoolExecutor(2) as threads:
        one = threads.submit(sessions.run, session("a", both, True))
        other = threads.submit(sessions.run, session("b", both, False))
        spent = [one.result().compute_s, other.result().compute_s]
    assert 0.05 <= sum(spent) < 99.0
    assert min(spent) >= 0.025


def test_what_a_session_raises_is_raised_where_it_was_asked_for():
    async def session():
        raise ValueError("no audio")

    with SessionLoop() as sessions, pytest.raises(ValueError, match="no audio"):
        sessions.run(session())


def test_leaving_drops_what_is_under_way_and_takes_nothing_more():
    begun, dropped = threading.Event(), threading.Event()

    async def session():
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            dropped.set()

    with ThreadPoolExecutor(1) as threads:
        with SessionLoop() as sessions:
            waiting = threads.submit(sessions.run, session())
            assert begun.wait(10)
        with pytest.raises(CancelledError):
            waiting.result(10)
    assert dropped.is_set()
    with pytest.raises(CancelledError):
        sessions.run(session())
