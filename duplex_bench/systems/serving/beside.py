"""Work beside a conversation: tasks of which the first error ends it, and that end with it."""

import asyncio
from collections.abc import Coroutine
from typing import Any

from duplex_bench.systems.serving.peers import CloseConnection


class Beside:
    """Tasks of one conversation. ``failure`` fails with the first error of any of them."""

    def __init__(self) -> None:
        self.failure: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Run ``work`` beside the rest."""
        task = asyncio.create_task(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def end(self) -> None:
        """Cancel what still runs, and wait for it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guarded(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except (CloseConnection, ConnectionError, ValueError) as error:
            if not self.failure.done():
                self.failure.set_exception(error)
