"""Progress of items inside a stage, told to whoever listens: a terminal, a Dagster log, nobody."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """``done`` of ``total`` items of ``stage`` are finished, ``reused`` of them without work, ``failed`` not."""

    stage: str
    done: int
    total: int
    reused: int = 0
    failed: int = 0


Listener = Callable[[Progress], None]

_listeners: list[Listener] = []


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` about progress within the block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class EngineClock:
    """Wall seconds spent on the work itself (engines, systems, audio): the rest of a run is orchestration."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._depth = 0

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the block as work; a block inside another is counted once."""
        began = time.perf_counter()
        self._depth += 1
        try:
            yield
        finally:
            self._depth -= 1
            if self._depth == 0:
                self.spent_s += time.perf_counter() - began


engine_clock = EngineClock()


def tell(progress: Progress) -> None:
    """Tell every listener."""
    for listener in tuple(_listeners):
        listener(progress)
