"""One event loop on a thread of its own for the sessions of many threads.

Who prepares, encodes and stores an item works beside the loop and not on it: nothing but sessions is on the audio path.
"""

import asyncio
import threading
import time
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any, Self

from duplex_bench.rollout.listener import RolloutResult


class SessionLoop:
    """Runs sessions from any number of threads until it is left; what is under way then is dropped.

    A session's ``compute_s`` is its share of the thread's processor time: what is spent while n sessions are under way
    counts for each by one nth.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sessions", daemon=True)
        self._shares: dict[object, float] = {}
        self._counted_s = 0.0
        self._is_over = False

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over = True
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def run(self, session: Coroutine[Any, Any, RolloutResult]) -> RolloutResult:
        """The result of ``session``, waited for.

        Raises:
            concurrent.futures.CancelledError: The loop was left meanwhile.
        """
        if self._is_over:
            session.close()
            raise CancelledError
        return asyncio.run_coroutine_threadsafe(self._told_apart(session), self._loop).result()

    async def _told_apart(self, session: Coroutine[Any, Any, RolloutResult]) -> RolloutResult:
        mine = object()
        self._share()
        self._shares[mine] = 0.0
        try:
            result = await session
        finally:
            self._share()
            share_s = self._shares.pop(mine)
        return replace(result, compute_s=share_s)

    def _share(self) -> None:
        now_s = time.thread_time()
        spent_s, self._counted_s = now_s - self._counted_s, now_s
        for session in self._shares:
            self._shares[session] += spent_s / len(self._shares)

    async def _end(self) -> None:
        # All of them: the tasks of connections that nobody is left to close too.
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
