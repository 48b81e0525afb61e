"""What happens while work is done, told to whoever listens: logs and metrics. Where nobody listens it costs nothing."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

Value = str | int | float | bool | None | list[float] | list[int]


@dataclass(frozen=True, slots=True)
class Happening:
    """One thing that happened.

    Attributes:
        kind: ``item`` (a piece of work ended), ``stage`` (all of a stage's did), ``paid`` (a call that costs),
            ``run`` (a run began or ended).
        fields: what is known of it, by name; times in seconds, money in US dollars.
    """

    kind: str
    fields: dict[str, Value] = field(default_factory=dict)


Listener = Callable[[Happening], None]

_listeners: list[Listener] = []


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Tell ``listener`` of everything that happens in this process within the block, whatever thread it happens in."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


def listen(listener: Listener) -> None:
    """Tell ``listener`` of everything from now on, once."""
    if listener not in _listeners:
        _listeners.append(listener)


def anyone_listens() -> bool:
    """Whether it is worth finding out more about what happened."""
    return bool(_listeners)


def tell(kind: str, **fields: Value) -> None:
    """Tell every listener."""
    if _listeners:
        happening = Happening(kind, fields)
        for listener in tuple(_listeners):
            listener(happening)
