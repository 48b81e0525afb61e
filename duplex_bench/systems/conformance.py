"""What every system must keep to, checked on random audio: run it on a new adapter before anything is scored."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.contract.types import (
    SYSTEM_ERRORS,
    HistoryPart,
    OpenRequest,
    Out,
    Prompt,
    Session,
    System,
    UnsupportedError,
)
from duplex_bench.rollout.outputs import DeclaredLatency, InvalidOutputError, check_lockstep, timed
from duplex_bench.rollout.playback import Samples
from duplex_bench.storage.digests import generator_from

N_UNITS: Final = 12
_LEVEL: Final = 0.1


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that the system breaks: ``rule`` is its name, ``message`` what was seen and what to do."""

    rule: str
    message: str


def check(system: System, n_units: int = N_UNITS) -> list[Finding]:
    """Run every rule on ``system``; an empty list means that it conforms.

    Args:
        system: The system; each rule opens sessions of its own, one after another.
        n_units: Units of noise fed per session, beyond priming; more where a system needs long to speak.

    Returns:
        One finding for each broken rule, in the order of ``RULES``.
    """
    findings: list[Finding] = []
    for name, rule in RULES.items():
        try:
            findings.extend(Finding(name, message) for message in rule(system, n_units))
        except SYSTEM_ERRORS as error:
            findings.append(Finding(name, f"raised {type(error).__name__}: {error}"))
    return findings


def _request(**changes: Any) -> OpenRequest:
    return OpenRequest(seed=7, stimulus_id="conformance", **changes)


def _noise(system: System, n_units: int) -> list[Samples]:
    generator = generator_from("conformance", system.spec.unit_in_samples)
    size = (n_units + system.spec.prime_units + system.spec.flush_units, system.spec.unit_in_samples)
    return list((generator.standard_normal(size) * _LEVEL).astype(np.float32))


def _feed(session: Session, units: list[Samples]) -> list[list[Out]]:
    return [session.step(unit) for unit in units]


def _outputs_keep_the_spec(system: System, n_units: int) -> Iterator[str]:
    spec = system.spec
    session = system.new_session()
    session.open(_request())
    for call, unit in enumerate(_noise(system, n_units)):
        outs: Any = session.step(unit)
        if not isinstance(outs, list):
            yield f"step returned {type(outs).__name__}: return a list of Out"
            break
        try:
            check_lockstep([timed(out, call, spec, DeclaredLatency()) for out in outs], spec)
        except InvalidOutputError as error:
            yield f"call {call}: {error}"
            break
    session.close()


def _counts_its_units(system: System, n_units: int) -> Iterator[str]:
    units = _noise(system, n_units)
    session = system.new_session()
    session.open(_request())
    _feed(session, units)
    stats = session.close()
    if stats.units != len(units):
        yield f"close reports {stats.units} units, {len(units)} were fed: count every call of step"


def _leaves_its_input_alone(system: System, n_units: int) -> Iterator[str]:
    units = _noise(system, n_units)
    session = system.new_session()
    session.open(_request())
    for unit in units:
        kept = unit.copy()
        session.step(unit)
        if not np.array_equal(kept, unit):
            yield "step changed the samples it was given: copy them first"
            break
    session.close()


def _refuses_a_partial_unit(system: System, n_units: int) -> Iterator[str]:
    del n_units
    for length in (system.spec.unit_in_samples - 1, system.spec.unit_in_samples + 1):
        session = system.new_session()
        session.open(_request())
        try:
            session.step(np.zeros(length, dtype=np.float32))
        except ValueError:
            pass
        else:
            yield f"a unit of {length} samples was taken: raise UnsupportedError (contract.types.checked_unit)"
        session.close()


def _refuses_what_is_not_finite(system: System, n_units: int) -> Iterator[str]:
    del n_units
    session = system.new_session()
    session.open(_request())
    try:
        session.step(np.full(system.spec.unit_in_samples, np.nan, dtype=np.float32))
    except ValueError:
        pass
    else:
        yield "a unit of NaN was taken: raise UnsupportedError (contract.types.checked_unit)"
    session.close()


def _closes_at_any_time(system: System, n_units: int) -> Iterator[str]:
    session = system.new_session()
    session.open(_request())
    _feed(session, _noise(system, n_units)[: max(1, n_units // 2)])
    first, second = session.close(), session.close()
    if first != second:
        yield "a second close returned other statistics: keep those of the first"
    again = system.new_session()
    again.open(_request())
    _feed(again, _noise(system, 1))
    again.close()


def _refuses_what_it_cannot_take(system: System, n_units: int) -> Iterator[str]:
    del n_units
    spec = system.spec
    pcm = np.zeros(spec.in_rate_hz, dtype=np.float32)
    requests = {
        "text_prompt": _request(prompt=Prompt(text="You are Aria.")),
        "voice_prompt": _request(prompt=Prompt(voice="no-such-voice")),
        "text_history": _request(history=(HistoryPart("user", "Hello.", 0.0, 1.0),)),
        "audio_history": _request(history=(HistoryPart("user", "", 0.0, 1.0, pcm),)),
        "force_history": _request(history=(HistoryPart("both", "", 0.0, 1.0, pcm, pcm),)),
        "sampling": _request(sampling={"temperature": 0.5}),
    }
    for capability, request in requests.items():
        if capability in spec.capabilities:
            continue
        session = system.new_session()
        try:
            session.open(request)
        except UnsupportedError:
            pass
        else:
            yield f"{capability} was taken but is not in the spec: raise UnsupportedError (refuse_unsupported)"
        session.close()


def _same_seed_same_output(system: System, n_units: int) -> Iterator[str]:
    if "seedable" not in system.spec.capabilities:
        return
    runs = []
    for _ in range(2):
        session = system.new_session()
        session.open(_request())
        runs.append(_feed(session, _noise(system, n_units)))
        session.close()
    if _content(runs[0]) != _content(runs[1]):
        yield "two sessions with one seed and one input differ: seed everything in open, or drop 'seedable'"


def _content(run: list[list[Out]]) -> list[list[tuple[object, ...]]]:
    return [
        [
            (out.kind, out.unit, None if out.pcm is None else out.pcm.tobytes(), out.text, out.state, out.response_id,
             out.model_time_s, out.available_s)
            for out in outs
        ]
        for outs in run
    ]  # fmt: skip


RULES: Final[dict[str, Callable[[System, int], Iterator[str]]]] = {
    "outputs keep the spec": _outputs_keep_the_spec,
    "counts its units": _counts_its_units,
    "leaves its input alone": _leaves_its_input_alone,
    "refuses a partial unit": _refuses_a_partial_unit,
    "refuses what is not finite": _refuses_what_is_not_finite,
    "closes at any time": _closes_at_any_time,
    "refuses what it cannot take": _refuses_what_it_cannot_take,
    "same seed, same output": _same_seed_same_output,
}
