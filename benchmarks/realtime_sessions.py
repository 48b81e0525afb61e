"""Realtime driver: lateness of sends of many sessions against a model-free server in another process, beside an idle
timer and a client that sleeps between frames. `python -m benchmarks.realtime_sessions [sessions ...]`.

To measure: a machine with nothing else running (load below 0.2 for a minute), two cores, `OMP_NUM_THREADS=1`; the
server takes one core and this client another. `python -m benchmarks.realtime_sessions` judges 64 sessions; with
`16 32 64 96 128 192 256` behind it, it also tells the largest number for which the rule holds. Read the idle timer
first: where its worst is above 10 ms the machine was busy, and the figures say nothing of the driver. Three runs; the
middle one counts.
"""

import asyncio
import re
import subprocess
import sys
import time

import numpy as np

from duplex_bench.contract.types import OpenRequest
from duplex_bench.rollout.pacing import Lateness, PacingRule, wait_until
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.realtime import RealtimeSettings, run_session
from duplex_bench.systems.adapters.openai_compatible import create

SESSIONS = 64
SECONDS = 10.0
UNIT_S = 0.02
# A limit of the issue: 99th percentile, and the worst over that of an idle timer in the same run.
P99_MS = 5.0
WORST_OVER_IDLE_MS = 10.0
# The benchmark measures lateness itself, so no run of it may be called invalid.
SETTINGS = RealtimeSettings(PacingRule(1e6, 1e6))


class Server:
    """`duplex-bench serve --voice tone` in a process of its own."""

    def __enter__(self) -> str:
        command = [sys.executable, "-m", "duplex_bench.cli.main", "serve", "--voice", "tone", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        told = ""
        while "model=" not in told:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server ended: {told}")
            told += line
        return re.search(r"ws://127\.0\.0\.1:\d+/v1/realtime", told).group(0)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(10)


def live() -> np.ndarray:
    """Half a second of sound, then silence, again and again: turns, replies and interruptions."""
    part = np.concatenate([np.full(12_000, 0.1), np.zeros(36_000)])
    return np.tile(part, int(SECONDS / 2)).astype(np.float32)


async def driven(url: str, sessions: int) -> tuple[Lateness, Lateness, int]:
    """All sends and idle deadlines of ``sessions`` sessions in one loop, and how many were lost."""
    system = create({"url": url, "silence_ms": 500})
    loop = asyncio.get_running_loop()
    audio, began_s = live(), loop.time()

    async def one(number: int):
        # Spread over one frame, as sessions that start when they start are.
        await wait_until(began_s + number * UNIT_S * 51 / sessions)
        return await run_session(system, OpenRequest(1, str(number)), audio, 24_000, StreamPlan(0.5), SETTINGS)

    results = await asyncio.gather(*(one(number) for number in range(sessions)))
    sends, idle, lost = Lateness(), Lateness(), 0
    for result in results:
        pacing = next(event for event in result.events if event["kind"] == "pacing")
        sends.seconds += [pacing["sends"]["p99_ms"] / 1000]
        idle.seconds += [pacing["idle"]["p99_ms"] / 1000]
        sends.add(pacing["sends"]["worst_ms"] / 1000)
        idle.add(pacing["idle"]["worst_ms"] / 1000)
        lost += result.outcome not in ("completed", "no_audio")
    return sends, idle, lost


async def sleeping(url: str, sessions: int) -> Lateness:
    """The same frames by clients that sleep for one frame after each send."""
    from duplex_bench.contract.types import OpenRequest as Request

    system = create({"url": url, "silence_ms": 500})
    loop = asyncio.get_running_loop()
    late = Lateness()
    frames = live().reshape(-1, 480)

    async def one(number: int) -> None:
        session = system.new_push_session()
        await session.open(Request(1, str(number)), "automatic")

        async def read() -> None:
            while True:
                await session.receive()

        reader = asyncio.create_task(read())
        start_s = loop.time()
        for k, frame in enumerate(frames):
            await asyncio.sleep(UNIT_S)
            late.add(max(0.0, loop.time() - start_s - (k + 1) * UNIT_S))
            await session.push(frame)
        reader.cancel()
        await session.close()

    await asyncio.gather(*(one(number) for number in range(sessions)))
    return late


def main() -> int:
    """Print lateness; 1 if a limit was missed."""
    wanted = [int(text) for text in sys.argv[1:] if text.isdigit()] or [SESSIONS]
    missed = False
    held = 0
    with Server() as url:
        for sessions in wanted:
            cpu_s = time.process_time()
            sends, idle, lost = asyncio.run(driven(url, sessions))
            share = (time.process_time() - cpu_s) / (SECONDS + 0.5)
            p99 = float(np.median(sends.seconds[::2])) * 1000
            worst, idle_worst = sends.worst_ms(), idle.worst_ms()
            print(
                f"{sessions} sessions: sends 99th percentile {p99:.2f} ms (limit {P99_MS}), worst {worst:.1f} ms; "
                f"idle timer worst {idle_worst:.1f} ms; lost {lost}; the driver took {share:.0%} of a core"
            )
            broken = p99 >= P99_MS or worst > idle_worst + WORST_OVER_IDLE_MS or lost > 0
            held = held if broken else max(held, sessions)
            missed = broken if sessions == SESSIONS else missed
        print(f"the rule held for up to {held} sessions" if held else "the rule held for none of these numbers")
        late = asyncio.run(sleeping(url, SESSIONS))
        print(f"{SESSIONS} clients that sleep: 99th percentile {late.p99_ms():.0f} ms, worst {late.worst_ms():.0f} ms")
    return int(missed)


if __name__ == "__main__":
    raise SystemExit(main())
