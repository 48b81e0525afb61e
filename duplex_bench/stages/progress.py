"""Progress of items inside a stage, told to whoever listens: a terminal, a Dagster log, nobody."""

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


def tell(progress: Progress) -> None:
    """Tell every listener."""
    for listener in tuple(_listeners):
        listener(progress)
