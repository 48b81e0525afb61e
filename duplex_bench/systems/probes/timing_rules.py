"""Rules of time: where units and frames lie, how many there are, and what may depend on what."""

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from duplex_bench.audio.time import to_samples
from duplex_bench.contract.types import OpenRequest, Out, Session, SessionStats, Spec, System
from duplex_bench.records.outcome import SCORED_OUTCOMES
from duplex_bench.rollout.frame_stepped import run
from duplex_bench.rollout.outputs import DeclaredLatency, TimedOut, timed
from duplex_bench.rollout.plan import StreamPlan
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.digests import generator_from
from duplex_bench.systems.probes.bench import Bench, NotApplicableError, Note, Rule, Said, content, request

_TAIL_S: Final = 1.0
_CLICK: Final = 0.9


@dataclass
class _Tapped:
    """A system that notes what passes between the driver and another one."""

    system: System
    fed: list[Samples] = field(default_factory=list)
    outs: list[list[Out]] = field(default_factory=list)

    @property
    def spec(self) -> Spec:
        return self.system.spec

    def new_session(self) -> Session:
        return _TappedSession(self, self.system.new_session())


@dataclass
class _TappedSession:
    tap: _Tapped
    session: Session

    def open(self, asked: OpenRequest) -> None:
        self.session.open(asked)

    def step(self, unit: Samples) -> list[Out]:
        self.tap.fed.append(unit.copy())
        outs = self.session.step(unit)
        self.tap.outs.append(list(outs))
        return outs

    def close(self) -> SessionStats:
        return self.session.close()


def clicks_land_where_they_were_sent(bench: Bench) -> Said:
    """A click in the first and the last sample reaches the system there, and its frames reach the listener in place."""
    spec = bench.system.spec
    live = bench.audio[: len(bench.audio) // spec.unit_in_samples * spec.unit_in_samples].copy()
    live[[0, -1]] = _CLICK
    tap = _Tapped(bench.system)
    result = run(tap, request(), live, spec.in_rate_hz, StreamPlan(_TAIL_S))
    if result.outcome not in SCORED_OUTCOMES:
        yield f"the rollout ended as {result.outcome.value}: {result.reason}"
        return
    heard = np.concatenate(tap.fed)[spec.prime_units * spec.unit_in_samples :]
    if heard[0] != np.float32(_CLICK) or heard[len(live) - 1] != np.float32(_CLICK) or np.any(heard[len(live) :]):
        yield "the clicks of the user's track did not reach the system at their samples: is unit_in_samples right?"
    expected = spec.prime_units + spec.flush_units + -(-to_samples(result.timeline_s, spec.in_rate_hz) //
                                                       spec.unit_in_samples)  # fmt: skip
    if len(tap.fed) != expected:
        yield f"{len(tap.fed)} units were fed where {expected} were due"
    if spec.lockstep:
        yield from _misplaced(tap, result.listener, result.timeline_s)


def _misplaced(tap: _Tapped, listener: Samples, timeline_s: float) -> Said:
    spec = tap.spec
    track = np.zeros(to_samples(timeline_s, spec.out_rate_hz), dtype=np.float32)
    track[: len(listener)] = listener
    frames = [out for out in _audio(tap.outs, spec) if out.placed_s >= 0]
    for frame in frames:
        start = to_samples(frame.placed_s, spec.out_rate_hz)
        pcm = frame.out.pcm if frame.out.pcm is not None else np.zeros(0, dtype=np.float32)
        shown = track[start : start + len(pcm)]
        if not np.array_equal(shown, pcm[: len(shown)]):
            yield f"the frame of second {frame.placed_s:.3f} is not heard there: two frames overlap, or one is too long"
            return


def silence_is_written(bench: Bench) -> Said:
    """In lockstep every unit from the first frame to the last has one: a gap would be silence that nobody wrote."""
    spec = bench.system.spec
    if not spec.lockstep or spec.unit_out_samples is None:
        raise NotApplicableError("not in lockstep: audio comes when it comes")
    outs, _ = bench.run(bench.units)
    places = sorted(round(out.placed_s / spec.unit_s) for out in _audio(outs, spec))
    if not places:
        raise NotApplicableError("it returned no audio")
    missing = places[-1] - places[0] + 1 - len(places)
    if missing:
        yield f"{missing} of {places[-1] - places[0] + 1} units have no frame: return silence as frames of zeros"
    yield Note(f"{len(places)} frames for {len(outs)} units")


def nothing_before_its_cause(bench: Bench) -> Said:
    """First-effect probe: inputs that differ from unit k on give outputs that differ only from that time on."""
    bench.seedable_only()
    spec, units = bench.system.spec, bench.units
    changed_at = spec.prime_units + (len(units) - spec.prime_units - spec.flush_units) // 3
    other = [*units[:changed_at], *(_other(unit, number) for number, unit in enumerate(units[changed_at:]))]
    one, _ = bench.run(units)
    two, _ = bench.run(other)
    if content(one[:changed_at]) != content(two[:changed_at]):
        yield f"outputs before unit {changed_at} differ although the inputs do so only from there on"
        return
    since_s = (changed_at - spec.prime_units) * spec.unit_s
    first = _first_difference_s(one, two, spec)
    if first is None:
        yield Note("what changed in the input changed nothing in the output")
    elif first < since_s - 1e-9:
        yield (
            f"output of second {first:.3f} depends on input of second {since_s:.3f}: model_shift_units or the unit of "
            "outputs is wrong"
        )
    else:
        yield Note(f"first effect {1000 * (first - since_s):.0f} ms after its cause")


def _other(unit: Samples, number: int) -> Samples:
    return (generator_from("changed", number).standard_normal(len(unit)) * 0.2).astype(np.float32)


def _first_difference_s(one: list[list[Out]], two: list[list[Out]], spec: Spec) -> float | None:
    """Where the outputs of two runs differ first, on the stream's clock."""
    found: list[set[tuple[float, tuple[object, ...]]]] = [
        {(out.placed_s, content([[out.out]])[0][0]) for out in _placed(run, spec)} for run in (one, two)
    ]
    return min((placed for placed, _ in found[0] ^ found[1]), default=None)


def _placed(outs: list[list[Out]], spec: Spec) -> list[TimedOut]:
    return [timed(out, call, spec, DeclaredLatency()) for call, said in enumerate(outs) for out in said]


def _audio(outs: list[list[Out]], spec: Spec) -> list[TimedOut]:
    return [placed for placed in _placed(outs, spec) if placed.out.kind == "audio"]


RULES: Final = (
    Rule("clicks land where they were sent", "must", clicks_land_where_they_were_sent),
    Rule("nothing before its cause", "must", nothing_before_its_cause),
    Rule("silence is written", "should", silence_is_written),
)
