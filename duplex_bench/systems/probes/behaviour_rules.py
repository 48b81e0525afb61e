"""What a system should do, and what is good to have: reacting, flushing, telling its words."""

from typing import Final

import numpy as np

from duplex_bench.audio.time import to_samples
from duplex_bench.contract.types import Out
from duplex_bench.rollout.outputs import DeclaredLatency, timed
from duplex_bench.rollout.playback import Samples
from duplex_bench.systems.probes.bench import Bench, NotApplicableError, Note, Rule, Said, content

_QUEUED_S: Final = 0.5
_PATIENCE_S: Final = 2.0


def reacts_to_content(bench: Bench) -> Said:
    """Sound and silence of one length do not give the same."""
    if bench.policy:
        raise NotApplicableError("a reference policy need not listen")
    units = bench.units
    heard, _ = bench.run(units)
    silent, _ = bench.run([np.zeros_like(unit) for unit in units])
    if content(heard) == content(silent):
        yield "sound and silence give the same output: does the input reach the model?"


def flushes_when_interrupted(bench: Bench) -> Said:
    """Audio that is queued when the user speaks again is dropped."""
    spec = bench.system.spec
    if spec.lockstep:
        raise NotApplicableError("in lockstep nothing is queued")
    session = bench.session()
    left_s = queued_s = 0.0
    for call, unit in enumerate(bench.units):
        queued_s = _played_until(session.step(unit), call, queued_s, bench)
        left_s = queued_s - (call + 1 - spec.prime_units) * spec.unit_s
        if left_s >= _QUEUED_S:
            break
    else:
        session.close()
        raise NotApplicableError(f"it never had {_QUEUED_S:g} s queued")
    for unit in _speech_again(bench):
        if any(out.kind == "flush" for out in session.step(unit)):
            break
    else:
        yield (
            f"{left_s:.1f} s of audio were queued, the user spoke again, and no flush came in {_PATIENCE_S:g} s: "
            "return Out('flush', ...) when the system gives way"
        )
    session.close()


def _speech_again(bench: Bench) -> list[Samples]:
    spec = bench.system.spec
    wanted = max(1, to_samples(_PATIENCE_S, spec.in_rate_hz) // spec.unit_in_samples)
    loud = [unit for unit in bench.units if float(np.sqrt(np.mean(unit**2))) > 0.01]
    return (loud * (wanted // max(1, len(loud)) + 1))[:wanted]


def _played_until(outs: list[Out], call: int, queued_s: float, bench: Bench) -> float:
    spec = bench.system.spec
    for out in outs:
        placed = timed(out, call, spec, DeclaredLatency())
        if out.kind == "flush":
            queued_s = min(queued_s, placed.available_s)
        elif out.kind == "audio" and out.pcm is not None:
            queued_s = max(queued_s, placed.available_s) + len(out.pcm) / spec.out_rate_hz
    return queued_s


def repeats_itself(bench: Bench) -> Said:
    """The spec declares ``seedable``: the same seed gives the same output."""
    if "seedable" not in bench.system.spec.capabilities:
        yield "the spec does not declare 'seedable': two runs of one item may differ"


def tells_its_words(bench: Bench) -> Said:
    """Audio comes with the words the system says it says."""
    outs = [out for said in bench.run(bench.units)[0] for out in said]
    if not any(out.kind == "audio" and out.pcm is not None and out.pcm.any() for out in outs):
        raise NotApplicableError("it said nothing")
    if not any(out.kind == "text" for out in outs):
        yield "audio came without text: the log cannot show what the system meant to say"


def names_its_responses(bench: Bench) -> Said:
    """Queued audio belongs to a named response, so that late audio of a cut one can be dropped."""
    if bench.system.spec.lockstep:
        raise NotApplicableError("in lockstep nothing is queued")
    audio = [out for said in bench.run(bench.units)[0] for out in said if out.kind == "audio"]
    if not audio:
        raise NotApplicableError("it said nothing")
    if any(out.response_id is None for out in audio):
        yield "audio came without response_id: what arrives after a flush is heard"


def tells_its_context(bench: Bench) -> Said:
    """A system with a limit says how much of it a session used."""
    spec = bench.system.spec
    if spec.context_s is None:
        raise NotApplicableError("the spec names no context limit")
    stats = bench.run(bench.units)[1]
    if stats.context_used_s is None:
        yield "close does not say how much of the context was used"
    else:
        yield Note(f"{stats.context_used_s:.1f} of {spec.context_s:g} s")


RULES: Final = (
    Rule("reacts to content", "should", reacts_to_content),
    Rule("flushes when interrupted", "should", flushes_when_interrupted),
    Rule("names its responses", "should", names_its_responses),
    Rule("repeats itself", "optional", repeats_itself),
    Rule("tells its words", "optional", tells_its_words),
    Rule("tells its context", "optional", tells_its_context),
)
