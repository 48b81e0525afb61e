"""An asyncio loop on virtual time: waiting costs nothing, and the same program takes the same times in every run."""

import asyncio
import selectors
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

Result = TypeVar("Result")


class VirtualTimeError(RuntimeError):
    """Every task waits and no timer is set: in real time the program would hang."""


class _JumpingSelector(selectors.BaseSelector):
    """Never waits: moves the clock to when the next timer is due."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self._real = selectors.DefaultSelector()

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise VirtualTimeError(
                "on virtual time nothing is left to happen: a task waits for an event without timeout"
            )
        self.now_s += max(0.0, timeout)
        return self._real.select(0)

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        return self._real.register(fileobj, events, data)

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._real.unregister(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._real.get_map()

    def close(self) -> None:
        self._real.close()


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """Its ``time()`` is virtual. For programs that talk through memory alone; sockets and threads would not keep up."""

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        """Virtual seconds since the loop was made."""
        return self._jumping.now_s


def run_on_virtual_time(program: Coroutine[Any, Any, Result]) -> Result:
    """Run ``program`` to its end without waiting.

    Raises:
        VirtualTimeError: It would have waited for ever.
    """
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(program)
