"""Deadlines on the loop's monotonic clock, how late they were met, and when that makes a rollout invalid."""

import asyncio
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

# Upper edges of the lateness histogram, in milliseconds; the last bin is open.
HISTOGRAM_EDGES_MS: Final = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)


@dataclass(frozen=True, slots=True)
class PacingRule:
    """When late frames make a rollout a ``pacing_violation`` (all ours).

    Attributes:
        p99_ms: The 99th percentile of send lateness may not be above this.
        worst_ms: No frame may be later than this.
    """

    p99_ms: float = 20.0
    worst_ms: float = 200.0

    def __post_init__(self) -> None:
        if not 0 < self.p99_ms <= self.worst_ms:
            raise ValueError(f"pacing rule: 0 < p99_ms <= worst_ms, got {self.p99_ms} and {self.worst_ms}")


async def wait_until(deadline_s: float) -> float:
    """Wait for ``deadline_s`` of the running loop's clock; seconds by which it was missed, 0 or more.

    Absolute: a frame that was late does not make the next one late.
    """
    loop = asyncio.get_running_loop()
    if deadline_s > loop.time():
        reached = loop.create_future()
        timer = loop.call_at(deadline_s, _set, reached)
        try:
            await reached
        finally:
            timer.cancel()
    else:
        # Others get their turn even when we are behind.
        await asyncio.sleep(0)
    return max(0.0, loop.time() - deadline_s)


def _set(reached: "asyncio.Future[None]") -> None:
    if not reached.done():
        reached.set_result(None)


@dataclass
class Lateness:
    """By how much deadlines were missed, in seconds."""

    seconds: list[float] = field(default_factory=list)

    def add(self, seconds: float) -> None:
        """Note one."""
        self.seconds.append(seconds)

    def p99_ms(self) -> float:
        """99th percentile in milliseconds, 0 if nothing was noted."""
        return float(np.percentile(self.seconds, 99)) * 1000 if self.seconds else 0.0

    def worst_ms(self) -> float:
        """The greatest, in milliseconds, 0 if nothing was noted."""
        return max(self.seconds, default=0.0) * 1000

    def as_data(self) -> dict[str, Any]:
        """Count, percentiles and histogram (upper edges in ``HISTOGRAM_EDGES_MS``, the last bin open)."""
        edges = [0.0, *(edge / 1000 for edge in HISTOGRAM_EDGES_MS), np.inf]
        counts, _ = np.histogram(self.seconds, bins=edges)
        return {
            "n": len(self.seconds),
            "p50_ms": round(float(np.median(self.seconds)) * 1000, 3) if self.seconds else 0.0,
            "p99_ms": round(self.p99_ms(), 3),
            "worst_ms": round(self.worst_ms(), 3),
            "edges_ms": list(HISTOGRAM_EDGES_MS),
            "counts": [int(count) for count in counts],
        }


def violation(sends: Lateness, idle: Lateness, rule: PacingRule) -> str | None:
    """Why a rollout's pacing was not valid, or None. The idle timer tells a slow machine from a slow sender."""
    p99, worst = sends.p99_ms(), sends.worst_ms()
    if p99 <= rule.p99_ms and worst <= rule.worst_ms:
        return None
    return (
        f"frames were sent late: 99th percentile {p99:.1f} ms (limit {rule.p99_ms:g}), worst {worst:.1f} ms (limit "
        f"{rule.worst_ms:g}); an idle timer beside it was late by {idle.p99_ms():.1f} and {idle.worst_ms():.1f} ms: "
        "run fewer sessions at once, or on a quieter machine"
    )


async def idle_timer(start_s: float, unit_s: float, lateness: Lateness) -> None:
    """Keep the same deadlines as a sender and do nothing at them, until cancelled."""
    number = 1
    while True:
        lateness.add(await wait_until(start_s + number * unit_s))
        number += 1
