"""Rollouts on a system in an environment of its own: as many workers as it may have sessions, each started when due."""

import contextlib
import queue
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import System
from duplex_bench.stages.rollout_tasks import RolloutTask, run_on
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import open_system
from duplex_bench.systems.workers import Launch, SystemStartError


@dataclass
class _Place:
    """Where one worker sits; empty until it is first needed."""

    system: System | PushSystem | None = None
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)


class WorkerRollouts:
    """Runs tasks from any number of threads, each on a worker that is free. Leaving it ends the workers.

    A system that cannot be made at all is tried once: what was said then fails every other task at once, rather than
    each after its own wait for weights that do not load.
    """

    def __init__(self, data: Path, card: SystemCard, launch: Launch) -> None:
        self._data = data
        self._card = card
        self._launch = launch
        self._places = [_Place() for _ in range(card.max_inflight)]
        self._free: queue.SimpleQueue[_Place] = queue.SimpleQueue()
        for place in self._places:
            self._free.put(place)
        self._never: SystemStartError | None = None

    def run(self, task: RolloutTask) -> str:
        """The RolloutRecord of ``task`` as JSON.

        Raises:
            SystemStartError: The system could not be made.
        """
        place = self._free.get()
        try:
            return run_on(self._system(place), str(self._data), self._card.name, task)
        finally:
            self._free.put(place)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        for place in self._places:
            place.opened.close()

    def _system(self, place: _Place) -> System | PushSystem:
        if self._never is not None:
            raise SystemStartError(str(self._never))
        if place.system is None:
            opened = open_system(self._card, cache_folder=self._data / "cache", launch=self._launch)
            try:
                place.system = place.opened.enter_context(opened)
            except SystemStartError as error:
                self._never = error
                raise
        return place.system
