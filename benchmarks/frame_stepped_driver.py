"""Frame-stepped driver: what it adds to a model that takes 10 ms for each 80 ms frame, how many times faster than
realtime policies run on the virtual clock, and what a thousand rollouts leave behind in memory.

`python -m benchmarks.frame_stepped_driver`. The model burns processor time, so every figure is processor time of this
thread: other programs on the machine stretch the wall clock and not these shares. Side by side in one run: the same
model called in a bare loop.
"""

import gc
import time
import tracemalloc

import numpy as np

from duplex_bench.contract.types import OpenRequest, Out, SessionStats, Spec
from duplex_bench.rollout import realtime
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.systems.adapters import always_speak, never_speak
from duplex_bench.systems.serving.loopback import create as loopback

RATE, UNIT = 24_000, 1920
MODEL_MS = 10.0
SECONDS = 8.0
# Limits of the issue.
OVERHEAD_SHARE = 0.02
TIMES_REALTIME = 500.0
ROLLOUTS = 1000
# What a thousand rollouts may leave (ours): far less than the audio of one.
GROWTH_BYTES = 256 * 1024
# Of a session, over the float32 audio it is fed and plays (ours): resampled input, rendered track, a frame of each.
SESSION_FACTOR = 6.0


class Burning:
    """Answers every frame with a frame, after ``ms`` milliseconds of processor time."""

    spec = Spec(RATE, RATE, UNIT, UNIT, lockstep=True)

    def __init__(self, ms):
        self.ms, self.frame = ms, np.full(UNIT, 0.1, dtype=np.float32)

    def new_session(self):
        return self

    def open(self, request):
        del request
        self.units = 0

    def step(self, unit):
        del unit
        until = time.thread_time_ns() + int(self.ms * 1e6)
        while time.thread_time_ns() < until:
            pass
        self.units += 1
        return [Out("audio", self.units - 1, pcm=self.frame)]

    def close(self):
        return SessionStats(units=self.units)


def live(seconds=SECONDS):
    return np.random.default_rng(1).standard_normal(int(seconds * RATE)).astype(np.float32) * np.float32(0.1)


def cpu_s(call):
    began = time.thread_time()
    call()
    return time.thread_time() - began


def overhead():
    """Share of the driver in a rollout of a model of 10 ms a frame: measured whole, and from the driver's own time.

    The first holds what the driver does to the model's caches and needs a quiet machine; the second subtracts two runs
    of a model that takes no time.
    """
    audio, request, plan = live(), OpenRequest(1, "x"), StreamPlan(1.0)
    units = int((SECONDS + 1.0) * RATE / UNIT + 0.999)
    silent = np.zeros(UNIT, dtype=np.float32)

    def both(ms):
        model = Burning(ms)
        model.open(request)
        bare = cpu_s(lambda: [model.step(silent) for _ in range(units)])
        return cpu_s(lambda: run(Burning(ms), request, audio, RATE, plan)), bare

    whole = min(driven / bare - 1.0 for driven, bare in (both(MODEL_MS) for _ in range(5)))
    own = min(driven - bare for driven, bare in (both(0.0) for _ in range(5)))
    return whole, own / (units * MODEL_MS / 1000)


def times_realtime(system, plan):
    """Seconds of audio a second of processor time on the virtual clock."""
    audio, request = live(60.0), OpenRequest(1, "x")
    run(system, request, audio, RATE, plan)
    return 61.0 / cpu_s(lambda: run(system, request, audio, RATE, plan))


def growth():
    """Bytes that rollouts of either driver leave behind, by tracemalloc after a collection."""
    audio, request, plan = live(0.5), OpenRequest(1, "x"), StreamPlan(0.2)
    stepped = Burning(0.0)
    pushed = loopback({"protocol": "openai-realtime", "voice_behind": "tone", "silence_ms": 100})

    def rollouts(number):
        for _ in range(number):
            run(stepped, request, audio, RATE, plan)
        for _ in range(number // 10):
            realtime.run(pushed, request, audio, RATE, plan)

    rollouts(50)
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.take_snapshot()
    rollouts(ROLLOUTS)
    gc.collect()
    after = tracemalloc.take_snapshot()
    tracemalloc.stop()
    return sum(stat.size_diff for stat in after.compare_to(before, "filename"))


def session_factor():
    """Peak memory of a rollout over the float32 audio that it hears and plays."""
    audio, request, plan = live(60.0), OpenRequest(1, "x"), StreamPlan(1.0)
    system = Burning(0.0)
    run(system, request, audio, RATE, plan)
    gc.collect()
    tracemalloc.start()
    run(system, request, audio, RATE, plan)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak / (2 * 61.0 * RATE * 4)


def main() -> int:
    """Print the figures; 1 if a limit was missed."""
    share, own = overhead()
    never = times_realtime(never_speak.create({}), StreamPlan(1.0))
    always = times_realtime(always_speak.create({}), StreamPlan(1.0))
    left, factor = growth(), session_factor()
    print(f"driver on a model of {MODEL_MS:g} ms a frame: {share:.2%} (limit {OVERHEAD_SHARE:.0%}), own time {own:.2%}")
    print(
        f"virtual clock: never-speak {never:.0f}, always-speak {always:.0f} times realtime (limit {TIMES_REALTIME:g})"
    )
    print(f"{ROLLOUTS} rollouts leave {left / 1024:.0f} KiB (limit {GROWTH_BYTES // 1024} KiB)")
    print(f"a session's peak is {factor:.1f} times the audio it hears and plays (limit {SESSION_FACTOR:g})")
    return int(
        share > OVERHEAD_SHARE or min(never, always) < TIMES_REALTIME or left > GROWTH_BYTES or factor > SESSION_FACTOR
    )


if __name__ == "__main__":
    raise SystemExit(main())
