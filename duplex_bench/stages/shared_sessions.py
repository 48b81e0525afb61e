"""Rollouts on a system whose sessions only wait: one process, one loop, as many sessions as the card allows."""

import contextlib
import threading
from pathlib import Path
from typing import Self

from duplex_bench.contract.push import PushSystem
from duplex_bench.contract.types import System
from duplex_bench.rollout.session_loop import SessionLoop
from duplex_bench.stages.rollout_tasks import RolloutTask, run_on
from duplex_bench.systems.card import SystemCard
from duplex_bench.systems.environments import open_system

# Our own adapters do nothing on the audio path but send and receive; what others do there is not known.
ADAPTERS = "duplex_bench.systems.adapters."


def shares_a_loop(card: SystemCard) -> bool:
    """Whether a card's sessions can run side by side in one loop: in this process, over sockets, by our adapters."""
    here = card.environment.kind == "none" and not card.uses_cache
    return here and card.driver == "realtime" and card.adapter.startswith(ADAPTERS)


class SharedSessions:
    """Runs tasks from any number of threads. Leaving it drops the sessions that are under way."""

    def __init__(self, data: Path, card: SystemCard) -> None:
        self._data = data
        self._card = card
        self._opened = contextlib.ExitStack()
        self._opening = threading.Lock()
        self._system: System | PushSystem | None = None
        self._sessions = SessionLoop()

    def run(self, task: RolloutTask) -> str:
        """The RolloutRecord of ``task`` as JSON."""
        return run_on(self._the_system(), str(self._data), self._card.name, task, self._sessions)

    def __enter__(self) -> Self:
        self._opened.enter_context(self._sessions)
        return self

    def __exit__(self, *exception: object) -> None:
        self._opened.close()

    def _the_system(self) -> System | PushSystem:
        with self._opening:
            if self._system is None:
                opened = open_system(self._card, cache_folder=self._data / "cache")
                self._system = self._opened.enter_context(opened)
            return self._system
