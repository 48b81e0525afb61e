"""Systems for the conformance suite: the contract and numpy alone, so that they also run in a foreign environment."""

import numpy as np

from duplex_bench.contract.types import Out, SessionStats, Spec, checked_unit, refuse_unsupported


class _Session:
    def __init__(self, system):
        self.system = system
        self.calls = 0
        self.empty = 0
        self.stats = None

    def open(self, request):
        refuse_unsupported(request, self.system.spec)
        self.generator = np.random.default_rng(request.seed)
        self.calls = 0
        self.start()

    def start(self):
        pass

    def step(self, unit):
        checked_unit(unit, self.system.spec)
        outs = self.react(self.calls, unit)
        self.calls += 1
        self.empty += not outs
        return outs

    def close(self):
        if self.stats is None:
            self.stats = SessionStats(units=self.calls, empty_steps=self.empty)
        return self.stats


class LockstepSession(_Session):
    """Like PersonaPlex: 80 ms units, one priming unit, the frame returned at call c belongs to unit c - 1."""

    def start(self):
        self.frame = np.zeros(1920, dtype=np.float32)

    def react(self, call, unit):
        frame = self.frame
        noise = self.generator.standard_normal(1920).astype(np.float32) * np.float32(0.001)
        self.frame = (unit * np.float32(0.5) + noise).astype(np.float32)
        return [] if call == 0 else [Out("audio", call, pcm=frame), Out("state", call, state="speak")]


class Lockstep:
    spec = Spec(
        24_000, 24_000, 1920, 1920, lockstep=True, prime_units=1, flush_units=1, model_shift_units=-1,
        context_s=240.0, capabilities=frozenset({"seedable"}),
    )  # fmt: skip

    def new_session(self):
        return LockstepSession(self)


class OneSecondSession(_Session):
    """Like MiniCPM-o: decides once a second, speaks in blocks, and flushes what is queued when it hears speech."""

    def react(self, call, unit):
        loud = float(np.sqrt(np.mean(unit**2))) > 0.05
        if loud:
            self.heard = call
            return [Out("flush", call), Out("state", call, state="listen")]
        if self.heard is None or call != self.heard + 1:
            return []
        block = np.full(60_000, 0.25, dtype=np.float32) * self.generator.choice([-1.0, 1.0])
        return [
            Out("state", call, state="speak", response_id=f"r{call}"),
            Out("text", call, text="two and a half seconds", response_id=f"r{call}"),
            Out("audio", call, pcm=block.astype(np.float32), response_id=f"r{call}"),
        ]

    def start(self):
        self.heard = None


class OneSecond:
    spec = Spec(16_000, 24_000, 16_000, capabilities=frozenset({"seedable"}))

    def new_session(self):
        return OneSecondSession(self)


def lockstep(settings):
    return Lockstep()


def one_second(settings):
    return OneSecond()


def numpy_folder(settings):
    """Not a system: says where it would run."""
    import sys

    raise ValueError(f"prefix={sys.prefix} polars={'polars' in _importable()}")


def _importable():
    import importlib.util

    return [name for name in ("polars", "pydantic") if importlib.util.find_spec(name)]
