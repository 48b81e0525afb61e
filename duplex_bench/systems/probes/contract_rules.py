"""Rules of the contract itself: what may cross, what must be refused, what close does."""

from typing import Any, Final

import numpy as np

from duplex_bench.contract.returned import checked_outs
from duplex_bench.contract.types import HistoryPart, InvalidOutputError, OpenRequest, Prompt, Spec, UnsupportedError
from duplex_bench.rollout.outputs import DeclaredLatency, check_lockstep, timed
from duplex_bench.systems.probes.bench import Bench, NotApplicableError, Rule, Said, content, feed, request

RATES_HZ: Final = (4_000, 192_000)
UNIT_S: Final = (0.001, 10.0)
LONGEST_HIDDEN_S: Final = 60.0
"""What a spec may plausibly say (ours): outside of it a run would take hours, or nothing could be heard."""


def spec_can_be_run(bench: Bench) -> Said:
    """Rates, unit, priming and flushing are such as audio has."""
    spec = bench.system.spec
    for name in ("in_rate_hz", "out_rate_hz"):
        if not RATES_HZ[0] <= getattr(spec, name) <= RATES_HZ[1]:
            yield f"spec.{name} is {getattr(spec, name)}: give {RATES_HZ[0]} to {RATES_HZ[1]} Hz"
    if not UNIT_S[0] <= spec.unit_s <= UNIT_S[1]:
        yield (
            f"spec.unit_in_samples is {spec.unit_in_samples}, a unit of {spec.unit_s:g} s: give {UNIT_S[0]:g} to "
            f"{UNIT_S[1]:g} s, the model's own step"
        )
    hidden_s = (spec.prime_units + spec.flush_units) * spec.unit_s
    if hidden_s > LONGEST_HIDDEN_S:
        yield f"spec.prime_units and flush_units are {hidden_s:g} s: at most {LONGEST_HIDDEN_S:g} s"


def outputs_keep_the_spec(bench: Bench) -> Said:
    """Kinds, shapes, rates and times are what the spec says."""
    spec = bench.system.spec
    session = bench.session()
    for call, unit in enumerate(bench.units):
        outs: Any = session.step(unit)
        try:
            checked_outs(outs)
            check_lockstep([timed(out, call, spec, DeclaredLatency()) for out in outs], spec)
        except InvalidOutputError as error:
            yield f"call {call}: {error}"
            break
    session.close()


def counts_its_units(bench: Bench) -> Said:
    """What close reports is what was fed."""
    units = bench.units
    _, stats = bench.run(units)
    if stats.units != len(units):
        yield f"close reports {stats.units} units, {len(units)} were fed: count every call of step"


def leaves_its_input_alone(bench: Bench) -> Said:
    """The samples it is given stay as they are."""
    session = bench.session()
    for unit in bench.units:
        kept = unit.copy()
        session.step(unit)
        if not np.array_equal(kept, unit):
            yield "step changed the samples it was given: copy them first"
            break
    session.close()


def refuses_a_partial_unit(bench: Bench) -> Said:
    """A unit that is too short or too long raises."""
    for length in (bench.system.spec.unit_in_samples - 1, bench.system.spec.unit_in_samples + 1):
        session = bench.session()
        try:
            session.step(np.zeros(length, dtype=np.float32))
        except ValueError:
            pass
        else:
            yield f"a unit of {length} samples was taken: raise UnsupportedError (contract.types.checked_unit)"
        session.close()


def refuses_what_is_not_finite(bench: Bench) -> Said:
    """NaN raises."""
    session = bench.session()
    try:
        session.step(np.full(bench.system.spec.unit_in_samples, np.nan, dtype=np.float32))
    except ValueError:
        pass
    else:
        yield "a unit of NaN was taken: raise UnsupportedError (contract.types.checked_unit)"
    session.close()


def closes_at_any_time(bench: Bench) -> Said:
    """In the middle, twice, after a step that failed, and the next session opens."""
    units = bench.units
    session = bench.session()
    feed(session, units[: len(units) // 2])
    first, second = session.close(), session.close()
    if first != second:
        yield "a second close returned other statistics: keep those of the first"
    failed = bench.session()
    feed(failed, units[:1])
    try:
        failed.step(np.zeros(0, dtype=np.float32))
    except ValueError:
        stats = failed.close()
        if stats.units != 1:
            yield f"one unit was taken and one refused, close reports {stats.units}: count those that were taken"
    bench.run(units[:1])


def unsupported_requests(spec: Spec) -> dict[str, OpenRequest]:
    """For every capability that ``spec`` does not have, a request that asks for it."""
    pcm = np.zeros(spec.in_rate_hz, dtype=np.float32)
    requests = {
        "text_prompt": request(prompt=Prompt(text="You are Aria.")),
        "voice_prompt": request(prompt=Prompt(voice="no-such-voice")),
        "text_history": request(history=(HistoryPart("user", "Hello.", 0.0, 1.0),)),
        "audio_history": request(history=(HistoryPart("user", "", 0.0, 1.0, pcm),)),
        "force_history": request(history=(HistoryPart("both", "", 0.0, 1.0, pcm, pcm),)),
        "sampling": request(sampling={"temperature": 0.5}),
    }
    return {name: asked for name, asked in requests.items() if name not in spec.capabilities}


def refuses_what_it_cannot_take(bench: Bench) -> Said:
    """A prompt, history or sampling that the spec does not offer raises."""
    for capability, asked in unsupported_requests(bench.system.spec).items():
        session = bench.system.new_session()
        try:
            session.open(asked)
        except UnsupportedError:
            pass
        else:
            yield f"{capability} was taken but is not in the spec: raise UnsupportedError (refuse_unsupported)"
        session.close()


def same_seed_same_output(bench: Bench) -> Said:
    """Two sessions with one seed and one input do the same."""
    bench.seedable_only()
    runs = [content(bench.run(bench.units)[0]) for _ in range(2)]
    if runs[0] != runs[1]:
        yield "two sessions with one seed and one input differ: seed everything in open, or drop 'seedable'"


def reset_equals_fresh(bench: Bench) -> Said:
    """A session after another one does what the first session of a system does."""
    bench.seedable_only()
    units = bench.units
    before, _ = bench.run(units)
    session = bench.session(seed=8, stimulus_id="another")
    feed(session, [np.clip(-9 * unit[::-1], -1, 1) for unit in reversed(units)])
    session.close()
    after, _ = bench.run(units)
    if content(before) != content(after):
        yield "a session after one on other audio does something else: what a conversation left must go in open"


def keeps_forced_history(bench: Bench) -> Said:
    """A forced history is taken as it is, and leaves the clock at unit 0."""
    spec = bench.system.spec
    if "force_history" not in spec.capabilities:
        raise NotApplicableError("the spec does not declare 'force_history'")
    user = bench.audio[: 2 * spec.in_rate_hz].copy()
    own = user[::-1].copy()
    part = HistoryPart("both", "", 0.0, len(user) / spec.in_rate_hz, user, own, (("hello", 0.1, 0.4),))
    kept = user.copy(), own.copy()
    units = bench.units
    outs, stats = bench.run(units, history=(part,))
    if not (np.array_equal(kept[0], user) and np.array_equal(kept[1], own)):
        yield "open changed the history it was given: copy it first"
    if stats.units != len(units):
        yield f"close reports {stats.units} units after a history, {len(units)} were fed: history is no unit"
    for call, said in enumerate(outs):
        for out in said:
            if not 0 <= out.unit <= call:
                yield f"after a history, call {call} returned an output of unit {out.unit}: leave the clock at unit 0"
                return


FIRST: Final = Rule("the spec can be run", "must", spec_can_be_run)
RULES: Final = (
    FIRST,
    Rule("outputs keep the spec", "must", outputs_keep_the_spec),
    Rule("counts its units", "must", counts_its_units),
    Rule("leaves its input alone", "must", leaves_its_input_alone),
    Rule("refuses a partial unit", "must", refuses_a_partial_unit),
    Rule("refuses what is not finite", "must", refuses_what_is_not_finite),
    Rule("closes at any time", "must", closes_at_any_time),
    Rule("refuses what it cannot take", "must", refuses_what_it_cannot_take),
    Rule("same seed, same output", "must", same_seed_same_output),
    Rule("reset equals fresh", "must", reset_equals_fresh),
    Rule("keeps a forced history", "must", keeps_forced_history),
)
