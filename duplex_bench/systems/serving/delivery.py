"""How a server sends a reply: in uneven chunks, faster than it is heard; and where its heavy work runs."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from duplex_bench.rollout.pacing import wait_until
from duplex_bench.rollout.playback import Samples

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Manner:
    """How replies come (ours, within what recorded sessions show).

    Attributes:
        speed: Times realtime at which audio is sent.
        think_s: From the end of a turn to the first audio, beside what recognition really takes.
        shortest_ms: Shortest chunk of audio.
        longest_ms: Longest.
    """

    speed: float = 4.0
    think_s: float = 0.3
    shortest_ms: int = 30
    longest_ms: int = 600


@dataclass
class Desk:
    """Where recognition and synthesis run: here, which costs no virtual time, or on ``executor``, one at a time."""

    executor: Executor | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def do(self, work: Callable[..., Result], *arguments: object) -> Result:
        """The result of ``work(*arguments)``."""
        if self.executor is None:
            return work(*arguments)
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self.executor, work, *arguments)


def chunks(audio: Samples, rate_hz: int, manner: Manner, rng: np.random.Generator) -> Iterator[Samples]:
    """``audio`` in pieces of random length."""
    at = 0
    while at < len(audio):
        length = int(rng.integers(manner.shortest_ms, manner.longest_ms + 1)) * rate_hz // 1000
        yield audio[at : at + length]
        at += length


async def delivered(audio: Samples, rate_hz: int, manner: Manner, rng: np.random.Generator) -> AsyncIterator[Samples]:
    """Chunks of ``audio``, each at its time."""
    due_s = asyncio.get_running_loop().time()
    for chunk in chunks(audio, rate_hz, manner, rng):
        await wait_until(due_s)
        yield chunk
        due_s += len(chunk) / rate_hz / manner.speed
