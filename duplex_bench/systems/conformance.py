"""What every system must keep to: run it on a new adapter before anything is scored."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from duplex_bench.audio.time import to_samples
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

_LEVEL: Final = 0.1
_NOISE_S: Final = 1.0
_SILENCE_S: Final = 2.0
_MIN_UNITS: Final = 8


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that the system breaks: ``rule`` is its name, ``message`` what was seen and what to do."""

    rule: str
    message: str


def check(system: System, audio: Samples | None = None) -> list[Finding]:
    """Run every rule on ``system``; an empty list means that it conforms.

    Args:
        system: The system; each rule opens sessions of its own, one after another.
        audio: What it hears in each, float32 (n,) at its ``in_rate_hz``: something that makes it speak, or its outputs
            stay unchecked. A second of noise and two of silence by default.

    Returns:
        One finding for each broken rule, in the order of ``RULES``.
    """
    units = _units(system, _noise(system) if audio is None else audio)
    findings: list[Finding] = []
    for name, rule in RULES.items():
        try:
            findings.extend(Finding(name, message) for message in rule(system, units))
        except SYSTEM_ERRORS as error:
            findings.append(Finding(name, f"raised {type(error).__name__}: {error}"))
    return findings


def _request(**changes: Any) -> OpenRequest:
    return OpenRequest(seed=7, stimulus_id="conformance", **changes)


def _noise(system: System) -> Samples:
    generator = generator_from("conformance", system.spec.in_rate_hz)
    noise = generator.standard_normal(to_samples(_NOISE_S, system.spec.in_rate_hz)) * _LEVEL
    silence = np.zeros(to_samples(_SILENCE_S, system.spec.in_rate_hz))
    return np.concatenate([noise, silence]).astype(np.float32)


def _units(system: System, audio: Samples) -> list[Samples]:
    spec = system.spec
    n_units = max(_MIN_UNITS, -(-len(audio) // spec.unit_in_samples))
    padded = np.zeros((spec.prime_units + n_units + spec.flush_units) * spec.unit_in_samples, dtype=np.float32)
    start = spec.prime_units * spec.unit_in_samples
    padded[start : start + len(audio)] = audio
    return list(padded.reshape(-1, spec.unit_in_samples))


def _feed(session: Session, units: list[Samples]) -> list[list[Out]]:
    return [session.step(unit) for unit in units]


def _outputs_keep_the_spec(system: System, units: list[Samples]) -> Iterator[str]:
    spec = system.spec
    session = system.new_session()
    session.open(_request())
    for call, unit in enumerate(units):
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


def _counts_its_units(system: System, units: list[Samples]) -> Iterator[str]:
    session = system.new_session()
    session.open(_request())
    _feed(session, units)
    stats = session.close()
    if stats.units != len(units):
        yield f"close reports {stats.units} units, {len(units)} were fed: count every call of step"


def _leaves_its_input_alone(system: System, units: list[Samples]) -> Iterator[str]:
    session = system.new_session()
    session.open(_request())
    for unit in units:
        kept = unit.copy()
        session.step(unit)
        if not np.array_equal(kept, unit):
            yield "step changed the samples it was given: copy them first"
            break
    session.close()


def _refuses_a_partial_unit(system: System, units: list[Samples]) -> Iterator[str]:
    del units
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


def _refuses_what_is_not_finite(system: System, units: list[Samples]) -> Iterator[str]:
    del units
    session = system.new_session()
    session.open(_request())
    try:
        session.step(np.full(system.spec.unit_in_samples, np.nan, dtype=np.float32))
    except ValueError:
        pass
    else:
        yield "a unit of NaN was taken: raise UnsupportedError (contract.types.checked_unit)"
    session.close()


def _closes_at_any_time(system: System, units: list[Samples]) -> Iterator[str]:
    session = system.new_session()
    session.open(_request())
    _feed(session, units[: len(units) // 2])
    first, second = session.close(), session.close()
    if first != second:
        yield "a second close returned other statistics: keep those of the first"
    again = system.new_session()
    again.open(_request())
    _feed(again, units[:1])
    again.close()


def _refuses_what_it_cannot_take(system: System, units: list[Samples]) -> Iterator[str]:
    del units
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


def _same_seed_same_output(system: System, units: list[Samples]) -> Iterator[str]:
    if "seedable" not in system.spec.capabilities:
        return
    runs = []
    for _ in range(2):
        session = system.new_session()
        session.open(_request())
        runs.append(_feed(session, units))
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


RULES: Final[dict[str, Callable[[System, list[Samples]], Iterator[str]]]] = {
    "outputs keep the spec": _outputs_keep_the_spec,
    "counts its units": _counts_its_units,
    "leaves its input alone": _leaves_its_input_alone,
    "refuses a partial unit": _refuses_a_partial_unit,
    "refuses what is not finite": _refuses_what_is_not_finite,
    "closes at any time": _closes_at_any_time,
    "refuses what it cannot take": _refuses_what_it_cannot_take,
    "same seed, same output": _same_seed_same_output,
}
