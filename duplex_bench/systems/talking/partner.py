"""One live conversation with a system of either kind: sound in as it comes, sound and events out as they come."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from duplex_bench.contract.push import PushEvent, PushSystem
from duplex_bench.contract.types import SYSTEM_ERRORS, OpenRequest, Out, System
from duplex_bench.rollout.playback import Samples

TALK_RATE_HZ: Final = 24_000


@dataclass(frozen=True, slots=True)
class Said:
    """What came from a system: audio (float32 (n,) at ``TALK_RATE_HZ``) or an event by name, with its words."""

    kind: str
    pcm: Samples | None = None
    text: str | None = None
    data: dict[str, Any] = field(default_factory=dict)


class Partner(Protocol):
    """A conversation. ``hear`` and ``said`` belong to two tasks."""

    async def open(self, request: OpenRequest) -> None:
        """Begin; raises what the system raises."""
        ...

    async def hear(self, samples: Samples) -> None:
        """Take sound, float32 (n,) at ``TALK_RATE_HZ``, of any length."""
        ...

    def said(self) -> AsyncIterator[Said]:
        """What the system says, until it is closed; raises what the system raises."""
        ...

    async def close(self) -> None:
        """End; a second call does nothing."""
        ...


class RateStream:
    """Sound at one rate to another, chunk by chunk, as one stream."""

    def __init__(self, from_hz: int, to_hz: int) -> None:
        import soxr

        self._stream = soxr.ResampleStream(from_hz, to_hz, 1, dtype="float32") if from_hz != to_hz else None

    def take(self, samples: Samples) -> Samples:
        """What is ready of it by now."""
        if self._stream is None or not len(samples):
            return samples
        ready: Samples = self._stream.resample_chunk(samples)
        return ready


class _Units:
    """Sound of any length as whole units."""

    def __init__(self, unit: int) -> None:
        self._unit = unit
        self._rest = np.zeros(0, dtype=np.float32)

    def take(self, samples: Samples) -> Sequence[Samples]:
        held = np.concatenate([self._rest, samples])
        whole = len(held) // self._unit * self._unit
        self._rest = held[whole:]
        return list(held[:whole].reshape(-1, self._unit))


class SteppedPartner:
    """A frame-stepped system: each whole unit is one step, on a thread of its own so that sound goes on coming."""

    def __init__(self, system: System) -> None:
        spec = system.spec
        self._system = system
        self._session = system.new_session()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="talk")
        self._in = RateStream(TALK_RATE_HZ, spec.in_rate_hz)
        self._out = RateStream(spec.out_rate_hz, TALK_RATE_HZ)
        self._units = _Units(spec.unit_in_samples)
        self._due: asyncio.Queue[list[Out]] = asyncio.Queue()
        self._closed = False

    async def open(self, request: OpenRequest) -> None:
        """Open and prime the session."""
        spec = self._system.spec
        await self._do(self._session.open, request)
        for _ in range(spec.prime_units):
            await self._do(self._session.step, np.zeros(spec.unit_in_samples, dtype=np.float32))

    async def hear(self, samples: Samples) -> None:
        """Step through every unit that is whole by now."""
        for unit in self._units.take(self._in.take(samples)):
            await self._due.put(await self._do(self._session.step, np.ascontiguousarray(unit)))

    async def said(self) -> AsyncIterator[Said]:
        """Outputs in order."""
        while True:
            for out in await self._due.get():
                pcm = None if out.pcm is None else self._out.take(out.pcm)
                data = {} if out.state is None else {"state": out.state}
                yield Said(out.kind, pcm, out.text, data)

    async def close(self) -> None:
        """Close the session and its thread."""
        if self._closed:
            return
        self._closed = True
        with contextlib.suppress(*SYSTEM_ERRORS):
            await self._do(self._session.close)
        self._thread.shutdown(wait=False)

    async def _do(self, call: Any, *arguments: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)


class PushPartner:
    """A realtime system, with its own detection where it has one."""

    def __init__(self, system: PushSystem) -> None:
        spec = system.spec
        self._system = system
        self._session = system.new_push_session()
        self._in = RateStream(TALK_RATE_HZ, spec.in_rate_hz)
        self._out = RateStream(spec.out_rate_hz, TALK_RATE_HZ)
        self._units = _Units(spec.unit_in_samples)

    async def open(self, request: OpenRequest) -> None:
        """Connect; a system that has no detection of its own cannot be talked to."""
        await self._session.open(request, "automatic")

    async def hear(self, samples: Samples) -> None:
        """Push every frame that is whole by now."""
        for unit in self._units.take(self._in.take(samples)):
            await self._session.push(np.ascontiguousarray(unit))

    async def said(self) -> AsyncIterator[Said]:
        """Events in order."""
        while True:
            for event in await self._session.receive():
                yield self._meant(event)

    async def close(self) -> None:
        """Close the connection."""
        with contextlib.suppress(*SYSTEM_ERRORS):
            await self._session.close()

    def _meant(self, event: PushEvent) -> Said:
        pcm = None if event.pcm is None else self._out.take(event.pcm)
        return Said(event.kind, pcm, event.text, event.data)


def partner_for(system: System | PushSystem) -> Partner:
    """A fresh conversation with ``system``."""
    return PushPartner(system) if isinstance(system, PushSystem) else SteppedPartner(system)
